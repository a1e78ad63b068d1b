"""A location in the documents."""

from typing import Any

from pydantic import BaseModel, Field


class Place(BaseModel, frozen=True):
    """A location in a document; the base class of everything that is found or cited.

    In JSON, the fields of the location are at the same level as the fields of the subclass.
    """

    title: str = Field(examples=["Configure SMS routing rules"])
    crumbs: tuple[str, ...] = Field(default=(), description="folders and pages above this page")
    heading_path: tuple[str, ...] = Field(default=(), description="headings above the cited part")
    anchor: str | None = Field(default=None, examples=["create-a-routing-rule"])
    url: str | None = Field(default=None, description="URL of the page, if it has one")
    path: str | None = Field(default=None, examples=["routing/configure-routing-rules.md"])
    language: str | None = Field(
        default=None, description="language of the page, ISO 639-1", examples=["en"]
    )
    version: str | None = Field(
        default=None, description="version stated on the page", examples=["1.4"]
    )

    @property
    def trail(self) -> str:
        """The distinct pages and headings above it, joined by " > ", or the title if there are
        none.
        """
        return " > ".join(dict.fromkeys((*self.crumbs, *self.heading_path))) or self.title

    def list_fields(self) -> dict[str, Any]:
        """Return only the fields of the location, to create another value with the same
        location.
        """
        return {name: getattr(self, name) for name in Place.model_fields}
