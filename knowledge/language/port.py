"""The port of language detectors."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

PRIOR_SHARE = 0.97
"""The probability that a text is in a language of its conversation."""


class Detection(NamedTuple):
    """A language (ISO 639-1), and the confidence in it, from 0 to 1.

    A confidence of 0 means that the text contains no evidence; `language` is then the most likely
    one in the prior.
    """

    language: str
    confidence: float


class Detector(Protocol):
    """Detects the language of a text; the same arguments always lead to the same result."""

    def detect(
        self,
        text: str,
        *,
        prior: Mapping[str, float] | None = None,
        prior_share: float = PRIOR_SHARE,
        candidates: Sequence[str] | None = None,
    ) -> Detection:
        """Return the language of `text`.

        `prior` contains weights of languages (from the conversation or a preference), which can be
        any positive numbers. `prior_share` is the probability, below 1, that the text is in one of
        the languages in the prior. `candidates` limits the result to these languages (ISO 639-1).
        """
        ...
