"""Describes memory writes as data: decided by the manager, applied when a question ends."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field


class Append(BaseModel, frozen=True, extra="forbid"):
    """Append to a list and keep its newest `keep` entries."""

    kind: Literal["append"] = "append"
    key: str
    values: tuple[str, ...]
    keep: int = Field(gt=0)
    ttl_seconds: int = Field(gt=0)


class SetFields(BaseModel, frozen=True, extra="forbid"):
    """Set fields of a hash."""

    kind: Literal["set_fields"] = "set_fields"
    key: str
    fields: dict[str, str]
    ttl_seconds: int = Field(gt=0)


class Increment(BaseModel, frozen=True, extra="forbid"):
    """Add to numeric fields of a hash."""

    kind: Literal["increment"] = "increment"
    key: str
    fields: dict[str, float]
    ttl_seconds: int = Field(gt=0)


class Delete(BaseModel, frozen=True, extra="forbid"):
    """Delete a key."""

    kind: Literal["delete"] = "delete"
    key: str


MemoryWrite = Annotated[Append | SetFields | Increment | Delete, Field(discriminator="kind")]
