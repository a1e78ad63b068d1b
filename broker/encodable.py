"""Defines the interface of the objects that frames decode to."""

from dataclasses import dataclass
from typing import Any, Protocol

LONG_FRAME = 1500
"""Shorter frames (bytes) are always sent whole."""


class Encodable(Protocol):
    """An object that a frame decodes to."""

    def encode(self) -> bytes:
        """Return the frame."""
        ...

    def delta_from(self, base: Any) -> bytes | None:
        """Return the changes since the frame of `base`, or None where they cannot be expressed."""
        ...


class FrameHolder:
    """An object with a frame, or with the object that the frame decodes to."""

    __slots__ = ()
    frame: bytes
    decoded: Encodable | None

    def whole(self) -> bytes:
        """Return the frame."""
        return self.frame or (b"" if self.decoded is None else self.decoded.encode())


@dataclass(frozen=True, slots=True)
class BaseFrame:
    """A frame that Redis keeps for a question: only changes of it are sent afterwards."""

    name: str
    decoded: Encodable
    size: int
