"""The outcome of a hop, and the outcome of a message."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from pydantic import BaseModel

W = TypeVar("W", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Wrote(Generic[W]):
    """The agent succeeded and wrote these attributes."""

    writes: W


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The agent cannot succeed, and a retry would not help."""

    reason: str


@dataclass(frozen=True, slots=True)
class RetryAfter(Generic[W]):
    """The agent cannot succeed yet; the broker delivers the same envelope again after `seconds`.

    `otherwise` is the outcome if the deadline is too close to wait; None means `GaveUp`.
    """

    seconds: float
    reason: str
    otherwise: Wrote[W] | GaveUp | None = None


HopOutcome = Wrote[W] | RetryAfter[W] | GaveUp


class Outcome(StrEnum):
    """How a message ended for the user; every accepted message has exactly one outcome."""

    ANSWERED = "answered"
    CLARIFICATION = "clarification"
    REFUSED = "refused"
    SUPERSEDED = "superseded"
    FAILED = "failed"
