"""The four levels: for every candidate, how well it answers in one respect."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from knowledge.index.queries import Floats
from knowledge.search.candidates.found_candidates import Candidates
from knowledge.search.query import Query
from knowledge.search.statistics.corpus import CorpusView
from knowledge.search.statistics.postings import find_members
from knowledge.search.statistics.sample import Moments
from knowledge.search.weights import Weights

KEYWORDS = "keywords"
SEMANTIC = "semantic"
HIERARCHICAL = "hierarchical"
SUMMARY = "summary"
NAMES = (KEYWORDS, SEMANTIC, HIERARCHICAL, SUMMARY)


@dataclass(frozen=True, slots=True)
class Scores:
    """What each level gives to each candidate, ready to be added up.

    `bm25` and `cosine` are what the first two were before, `match` is the likeness of question
    and heading, 0 to 1. `cosine` is None when the question could not be embedded. `words` and
    `meaning` are the moments of `bm25` and `cosine` over all chunks.
    """

    levels: Mapping[str, Floats]
    bm25: Floats
    cosine: Floats | None
    match: Floats
    words: Moments
    meaning: Moments | None


class NameMatches:
    """The names of candidates that share a term with the question; others are not like it.

    `terms` are those of all names one after the other; `name_of` says to which name each belongs,
    `chunk_of` to which candidate each name belongs.
    """

    def __init__(self, candidates: Candidates, query: Query) -> None:
        lengths = [chunk.name_lengths for chunk in candidates.chunks]
        every = np.concatenate([chunk.name_terms for chunk in candidates.chunks])
        counts = [len(one) for one in lengths]
        name_of = np.repeat(np.arange(sum(counts)), np.concatenate(lengths))
        chunk_of = np.repeat(np.arange(len(lengths)), counts)
        named = name_of[find_members(every, query.own)]
        shared = np.bincount(named, minlength=len(chunk_of)) > 0
        chosen = shared[name_of]
        self.terms = every[chosen]
        self.name_of = (np.cumsum(shared) - 1)[name_of[chosen]]
        self.chunk_of = chunk_of[shared]


def score(
    candidates: Candidates,
    names: NameMatches,
    query: Query,
    view: CorpusView,
    weights: Weights,
    stated: Floats,
) -> Scores:
    """Score all candidates on all levels that can be had; `stated` is from `find_stated`."""
    raw = candidates.raw
    moments = raw.moments
    words = moments.words.standardise(raw.bm25)
    match = _match(candidates, names, query, view)
    summary: Floats = weights.summary_text * moments.about.standardise(raw.summary)
    levels: dict[str, Floats] = {
        KEYWORDS: weights.weigh_words(words, is_english=query.is_english)
        + np.float32(weights.keywords_stated) * stated,
        HIERARCHICAL: np.float32(weights.hierarchical) * match**3,
        SUMMARY: summary,
    }
    meaning, centres = moments.meaning, moments.centres
    if raw.cosine is not None and meaning is not None and centres is not None:
        levels[SEMANTIC] = weights.weigh_meaning(meaning.standardise(raw.cosine))
        summary += weights.summary_lead * meaning.standardise(_must(raw.lead))
        summary += weights.summary_centre * centres.standardise(_must(raw.centre))
    return Scores(levels, raw.bm25, raw.cosine, match, moments.words, meaning)


def _must(values: Floats | None) -> Floats:
    if values is None:
        raise ValueError("expected scores of leads and centres where there are cosines")
    return values


def _match(candidates: Candidates, names: NameMatches, query: Query, view: CorpusView) -> Floats:
    """Return for each candidate the F1 of the question and the best of its names, by IDF."""
    match = np.zeros(len(candidates), dtype=np.float32)
    count = len(names.chunk_of)
    if not count:
        return match
    different, at = np.unique(names.terms, return_inverse=True)
    idf = view.idf(different)[at]
    weight = np.bincount(names.name_of, idf, count)
    for phrase in query.phrases:
        held = np.isin(different, phrase)[at]
        common = np.bincount(names.name_of, np.where(held, idf, 0.0), count)
        both = weight + float(view.idf(phrase).sum())
        likeness = (2 * common / np.maximum(both, 1e-6)).astype(np.float32)
        np.maximum.at(match, names.chunk_of, likeness)
    return match
