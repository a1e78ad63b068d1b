"""The shape of every agent: typed reads in, typed writes out, and nothing else in hand."""

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel

from envelope.outcome import HopOutcome
from envelope.role import Role

R = TypeVar("R", bound=BaseModel)
W = TypeVar("W", bound=BaseModel)


class Agent(ABC, Generic[R, W]):
    """Does one role's work on one envelope's payload.

    An agent never holds the envelope. It returns `Wrote`, `RetryAfter` or `GaveUp`; an exception
    is a failure, never a success. One instance serves many envelopes at once and keeps nothing
    between them.
    """

    role: ClassVar[Role]
    reads: type[R]
    writes: type[W]

    @abstractmethod
    async def work(self, reads: R) -> HopOutcome[W]:
        """Return what the payload gains."""
