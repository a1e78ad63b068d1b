"""Where something stands in the documents."""

from typing import Any

from pydantic import BaseModel, Field


class Place(BaseModel, frozen=True):
    """A place in a document; everything that is found or cited has one, beside its own fields.

    In JSON, the fields of a place stand among those of what has it.
    """

    title: str = Field(examples=["Configure SMS routing rules"])
    crumbs: tuple[str, ...] = Field(default=(), description="folders and pages above this page")
    heading_path: tuple[str, ...] = Field(default=(), description="headings above the cited part")
    anchor: str | None = Field(default=None, examples=["create-a-routing-rule"])
    url: str | None = Field(default=None, description="address of the page, if it has one")
    path: str | None = Field(default=None, examples=["routing/configure-routing-rules.md"])
    language: str | None = Field(
        default=None, description="language of the page, ISO 639-1", examples=["en"]
    )
    version: str | None = Field(
        default=None, description="version that the page states", examples=["1.4"]
    )

    @property
    def trail(self) -> str:
        """The pages and headings that lead to it, each once; its title where there are none."""
        return " > ".join(dict.fromkeys((*self.crumbs, *self.heading_path))) or self.title

    def list_fields(self) -> dict[str, Any]:
        """Return the fields of the place alone, for something else that stands there."""
        return {name: getattr(self, name) for name in Place.model_fields}
