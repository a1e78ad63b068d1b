"""The port of language detectors."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

PRIOR_SHARE = 0.97
"""The probability that a text is in a language of its conversation."""


class Detection(NamedTuple):
    """A language, ISO 639-1, and the confidence in it, 0 to 1.

    Confidence 0 means that the text contains no evidence; `language` is then the most likely one of
    the prior.
    """

    language: str
    confidence: float


class Detector(Protocol):
    """Detects the language of a text; the same arguments always give the same detection."""

    def detect(
        self,
        text: str,
        *,
        prior: Mapping[str, float] | None = None,
        prior_share: float = PRIOR_SHARE,
        candidates: Sequence[str] | None = None,
    ) -> Detection:
        """Return the language of `text`.

        `prior` has weights of languages (of the conversation, of a preference): any positive
        numbers. `prior_share` is the probability, below 1, that the text is in one of the languages
        of the prior. `candidates` limits the answer to these languages, ISO 639-1.
        """
        ...
