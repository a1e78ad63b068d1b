"""The frames of the simulation: a word, and in a branch its path."""

from dataclasses import dataclass

from pydantic_core import from_json

from broker.values import LONG_FRAME, Delivery
from envelope.encoding import to_json

PADDING = "-" * LONG_FRAME


@dataclass(frozen=True, slots=True)
class Long:
    """A long frame with one word that changes."""

    word: str

    def encode(self) -> bytes:
        return to_json({"word": self.word, "payload": {"text": PADDING}})

    def delta_from(self, _base: "Long") -> bytes:
        return to_json({"word": self.word, "payload": {}})


def word_of(delivery: Delivery) -> str:
    """Return the word of a frame, long or not."""
    return words_in(delivery.whole())


def words_in(frame: bytes) -> str:
    """Return the words of a frame, long or not."""
    return str(from_json(frame)["word"]) if frame.startswith(b"{") else frame.decode()


def path_of(frame: bytes) -> str:
    """Return the path of the branch that a frame names after its word, or ''."""
    return words_in(frame).partition(" ")[2]
