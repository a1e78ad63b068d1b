"""Names what a language detector gives, whichever is behind it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

PRIOR_SHARE = 0.97
"""The probability that a text is in a language of its conversation."""


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
        prior_share: float = PRIOR_SHARE,
        candidates: Sequence[str] | None = None,
    ) -> Detection:
        """Return the language of `text`.

        `prior` weighs languages by what is known beforehand (the conversation, a preference): any
        positive numbers. `prior_share` is the probability, below 1, that the text is in one of the
        languages of the prior. `candidates` limits the answer to these languages, ISO 639-1.
        """
        ...
