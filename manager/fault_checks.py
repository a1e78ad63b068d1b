"""The six faults that are looked for in the work behind an answer, and the names of one model."""

from collections.abc import Mapping
from enum import StrEnum

from pydantic import BaseModel

ANY_MODEL = "*"
"""The alias of a model behind a server that answers with names of its choice."""


class FaultKind(StrEnum):
    """The faults that are looked for."""

    LOST_RESULT = "lost_result"
    ALTERED_RESULT = "altered_result"
    INVENTED_SOURCE = "invented_source"
    WRONG_MODEL = "wrong_model"
    SKIPPED_WORK = "skipped_work"
    STALE_CONTEXT = "stale_context"


class FoundFault(BaseModel, frozen=True, extra="forbid"):
    """One fault; `subject` is the id of the work or of the source."""

    kind: FaultKind
    stage: str
    subject: str
    detail: str = ""


def is_same_model(requested: str, answered_by: str, aliases: Mapping[str, str]) -> bool:
    """Return whether two names are those of one model; an alias may be followed by a date."""
    if not requested or not answered_by:
        return requested == answered_by
    if aliases.get(requested) == ANY_MODEL or aliases.get(requested.partition("@")[0]) == ANY_MODEL:
        return True
    bare = [name.partition("@")[0].rpartition("/")[2] for name in (requested, answered_by)]
    wanted, got = (aliases.get(name, name).rpartition("/")[2].casefold() for name in bare)
    wanted = wanted.removesuffix("-latest")
    rest = got.removeprefix(wanted)
    is_dated = rest != got and rest.lstrip("-@:").replace("-", "").isdigit() and len(rest) > 6
    return wanted == got or is_dated
