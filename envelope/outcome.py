"""Says how a hop ended, and how a question ended."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from pydantic import BaseModel

W = TypeVar("W", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Wrote(Generic[W]):
    """The agent did its work; these are its writes."""

    writes: W


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """The agent could not work yet: deliver the same envelope again after `seconds`."""

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The agent cannot do this work, and trying again would not help."""

    reason: str


HopOutcome = Wrote[W] | RetryAfter | GaveUp


class Outcome(StrEnum):
    """What a person sees of a question; every accepted question ends in exactly one."""

    ANSWERED = "answered"
    CLARIFICATION = "clarification"
    REFUSED = "refused"
    SUPERSEDED = "superseded"
    FAILED = "failed"
