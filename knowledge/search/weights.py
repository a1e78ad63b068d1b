"""The weights of a search; they are equal for every index, language and question.

`docs/measurements/evaluation.md` describes how they were chosen and the results.
"""

from dataclasses import dataclass, replace

import numpy as np

from knowledge.index.queries import Floats


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of levels are factors of z-scores over all chunks; a bonus is added as it is.

    `keywords_stated` is the bonus of a page whose stated metadata alone has the whole question.
    `hierarchical` is the bonus of a section whose heading is the question. `summary_lead`,
    `summary_text` and `summary_centre` make up the summary level: the section's first chunk, the
    summary with the key points, and the middle of the page's chunks. `related_*` and `previous_*`
    weigh earlier turns and the last answer against the question itself. `listing_pages` is the
    factor of changelogs and indexes that the question does not ask for. `best_chunks` are the
    factors of the chunks of a page that make its score.
    """

    keywords: float = 1.0
    keywords_bend: float = 4.0
    keywords_stated: float = 12.0
    semantic: float = 2.4
    hierarchical: float = 12.0
    summary_lead: float = 0.2
    summary_text: float = 0.1
    summary_centre: float = 0.8
    related_terms: float = 0.2
    related_vector: float = 0.3
    previous_terms: float = 0.05
    previous_vector: float = 0.2
    listing_pages: float = 0.8
    best_chunks: tuple[float, ...] = (1.0,)

    def weigh_words(self, values: Floats, *, is_english: bool) -> Floats:
        """Return what z-scores of keywords add to the sum of the levels."""
        if is_english:
            bend = np.float32(self.keywords_bend)
            values = np.where(values > 0, bend * np.log1p(np.maximum(values, 0) / bend), values)
        weighed: Floats = self.keywords * values
        return weighed

    def weigh_meaning(self, values: Floats) -> Floats:
        """Return what z-scores of cosines add to the sum of the levels."""
        weighed: Floats = self.semantic * values
        return weighed


def weigh_levels_alone() -> dict[str, Weights]:
    """Return weights that leave one level each."""
    usual = Weights()
    nothing = replace(
        usual,
        keywords=0.0,
        keywords_stated=0.0,
        semantic=0.0,
        hierarchical=0.0,
        summary_lead=0.0,
        summary_text=0.0,
        summary_centre=0.0,
    )
    return {
        "keywords": replace(
            nothing, keywords=usual.keywords, keywords_stated=usual.keywords_stated
        ),
        "semantic": replace(nothing, semantic=usual.semantic),
        "hierarchical": replace(nothing, hierarchical=usual.hierarchical),
        "summary": replace(
            nothing,
            summary_lead=usual.summary_lead,
            summary_text=usual.summary_text,
            summary_centre=usual.summary_centre,
        ),
    }
