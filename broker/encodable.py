"""What frames decode to, as far as the broker needs to know."""

from dataclasses import dataclass
from typing import Any, Protocol

LONG_FRAME = 1500
"""Shorter frames (bytes) always travel whole."""


class Encodable(Protocol):
    """What a frame decodes to."""

    def encode(self) -> bytes:
        """Return the frame."""
        ...

    def delta_from(self, base: Any) -> bytes | None:
        """Return what its frame changes in that of `base`; None when that cannot be told."""
        ...


class FrameHolder:
    """Something with a frame, or with what it decodes to."""

    __slots__ = ()
    frame: bytes
    decoded: Encodable | None

    def whole(self) -> bytes:
        """Return the frame."""
        return self.frame or (b"" if self.decoded is None else self.decoded.encode())


@dataclass(frozen=True, slots=True)
class BaseFrame:
    """A frame that Redis keeps for a question: of what follows only what changed travels."""

    name: str
    decoded: Encodable
    size: int
