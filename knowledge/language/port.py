"""Names what a language detector gives, whichever is behind it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class Detection(NamedTuple):
    """A language, ISO 639-1, and how sure the detector is, 0 to 1.

    Confidence 0 says that the text tells nothing: `language` is then the likeliest of the prior.
    """

    language: str
    confidence: float


class Detector(Protocol):
    """Tells the language of a text. The same arguments always give the same detection."""

    def detect(
        self,
        text: str,
        *,
        prior: Mapping[str, float] | None = None,
        candidates: Sequence[str] | None = None,
    ) -> Detection:
        """Return the language of `text`.

        `prior` weighs languages by what is known beforehand (the conversation, a preference): any
        positive numbers. `candidates` limits the answer to these languages, ISO 639-1.
        """
        ...
