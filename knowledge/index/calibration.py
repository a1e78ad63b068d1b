"""The calibration of an embedding model's cosines for documents in one language.

The weights in `knowledge.answerability` were fitted to the cosines of the shipped model. Other
models have different scales: e5 returns 0.7 where the shipped model returns 0.1. A calibration is
the line that converts the cosines of a model to the scale of the shipped model.
"""

from collections.abc import Mapping
from dataclasses import dataclass

LEAST_SEPARATION = 0.9
"""For comparison, the shipped model reaches 0.96 to 1.00 on nine English collections, and 0.86 on
Russian ones.
"""

EVERY_LANGUAGE = "*"


@dataclass(frozen=True, slots=True)
class Calibration:
    """The line for one embedding model and language.

    `separation` is the share of pairs in which a query generated from the documents is more similar
    to them than a foreign question; `chunks` is the number of chunks in that language when it was
    learned. `compared` contains the languages of questions whose meaning the model finds in texts
    in this language, with `EVERY_LANGUAGE` if that applies to all tested ones. It is None if an
    earlier release learned the line without testing.
    """

    slope: float
    offset: float
    separation: float
    chunks: int
    compared: tuple[str, ...] | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the model separates queries about the documents from foreign questions."""
        return self.separation >= LEAST_SEPARATION and self.slope > 0

    def compares(self, language: str) -> bool:
        """Return whether a question in a language can be compared with texts in this language."""
        compared = self.compared or ()
        return language in compared or EVERY_LANGUAGE in compared

    def rescale(self, features: Mapping[str, float]) -> dict[str, float]:
        """Return the features of a search with its cosine converted to the scale of the shipped
        model.
        """
        if "dense1" not in features:
            return dict(features)
        return {**features, "dense1": self.slope * features["dense1"] + self.offset}


Calibrations = Mapping[str, Calibration]
"""Calibrations by language (ISO 639-1)."""


def choose_language(asked: str | None, languages: Mapping[str, int] | tuple[str, ...]) -> str:
    """Return the language whose calibration is used to judge a search.

    This is the language of the question if there are documents in it, English if there are English
    documents, or the first language of the documents.
    """
    if asked in languages:
        return str(asked)
    return "en" if "en" in languages else next(iter(languages), "")
