"""How journals are written: what a settlement tells, several notes maybe, is one stream entry."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol


class JournalEvent(Protocol):
    """What a settlement tells of its question."""

    @property
    def kind(self) -> str:
        """What happened."""
        ...

    def encode(self) -> bytes:
        """Return its fields as JSON; raises `ValueError` for what JSON cannot say."""
        ...


@dataclass(slots=True)
class EncodedEvent:
    """A note that was said as it was made: cheaper than to keep its fields until it is sent.

    Hundreds of questions have their turn in between, and what was at hand no longer is.
    """

    kind: str
    json: bytes

    def encode(self) -> bytes:
        """Return the fields as JSON."""
        return self.json


@lru_cache(64)
def note_fields(place: int) -> tuple[str, str]:
    """Return the names of the fields for kind and JSON of the note at this place of an entry."""
    return (f"k{place + 1}", f"j{place + 1}") if place else ("k", "j")
