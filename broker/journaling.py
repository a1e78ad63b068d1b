"""How journals are written: what a settlement tells, several notes maybe, is one stream entry."""

from dataclasses import dataclass
from functools import lru_cache

from broker.port import JournalEntry


@dataclass(slots=True)
class SaidEntry(JournalEntry):
    """An entry whose fields were said already, by whoever made it."""

    json: bytes = b""

    def said(self) -> bytes:
        """Return the fields as JSON."""
        return self.json


@lru_cache(64)
def note_fields(place: int) -> tuple[str, str]:
    """Return the names of the fields for kind and JSON of the note at this place of an entry."""
    return (f"k{place + 1}", f"j{place + 1}") if place else ("k", "j")
