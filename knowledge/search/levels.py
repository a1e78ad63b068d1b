"""The four levels: for every chunk, how well it answers in one respect."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from knowledge.index.port import Floats, Terms
from knowledge.search.mirror import Mirror
from knowledge.search.query import Query
from knowledge.search.weights import Weights

KEYWORDS = "keywords"
SEMANTIC = "semantic"
HIERARCHICAL = "hierarchical"
SUMMARY = "summary"
NAMES = (KEYWORDS, SEMANTIC, HIERARCHICAL, SUMMARY)


@dataclass(frozen=True, slots=True)
class Scores:
    """What each level gives to each chunk, ready to be added up.

    `bm25` and `cosine` are what the first two were before, `match` is the likeness of question
    and heading, 0 to 1. `cosine` is None when the question could not be embedded.
    """

    levels: Mapping[str, Floats]
    bm25: Floats
    cosine: Floats | None
    match: Floats


def score(mirror: Mirror, query: Query, weights: Weights) -> Scores:
    """Score all chunks on all levels that can be had."""
    bm25 = mirror.keywords.scores(query.terms, query.weights)
    cosine = _cosine(mirror, query)
    match = _match(mirror, query)
    levels: dict[str, Floats] = {
        KEYWORDS: weights.keywords * _bent(standardise(bm25), query, weights)
        + np.float32(weights.keywords_stated) * _weigh_stated(mirror, query),
        HIERARCHICAL: np.float32(weights.hierarchical) * match**3,
        SUMMARY: _summary(mirror, query, cosine, weights),
    }
    if cosine is not None:
        levels[SEMANTIC] = weights.semantic * standardise(cosine)
    return Scores(levels, bm25, cosine, match)


def standardise(values: Floats) -> Floats:
    """Return z-scores; nothing but zeros when all values are alike."""
    deviation = float(values.std()) if len(values) else 0.0
    if deviation < 1e-9:
        return np.zeros_like(values)
    standard: Floats = (values - values.mean()) / np.float32(deviation)
    return standard


def _bent(values: Floats, query: Query, weights: Weights) -> Floats:
    if not query.is_english:
        return values
    bend = np.float32(weights.keywords_bend)
    bent: Floats = np.where(values > 0, bend * np.log1p(np.maximum(values, 0) / bend), values)
    return bent


def _weigh_stated(mirror: Mirror, query: Query) -> Floats:
    """Return for the first chunk of each page how much of the question its metadata alone has.

    The value is the share of the question's terms, by IDF, that the metadata adds to the page's
    text, 0 to 1, of the best wording. A term counts the less, the more other chunks contain it.
    Chunks other than the first one of a page have 0.
    """
    best = np.zeros(mirror.labels.count, dtype=np.float32)
    for phrase in query.phrases:
        idf = mirror.keywords.idf(phrase)
        share = np.zeros(mirror.labels.count, dtype=np.float32)
        for term, weight in zip(phrase, idf, strict=True):
            pages = mirror.labels.rows_of(term)
            share[pages] += weight * len(pages) / max(len(mirror.keywords.rows_of(term)), 1)
        best = np.maximum(best, share / max(float(idf.sum()), 1e-6))
    stated = np.zeros(len(mirror), dtype=np.float32)
    stated[mirror.chunk_starts] = best
    return stated


def cosines(vectors: Floats, vector: Floats) -> Floats:
    """Return the products of all rows with one vector.

    `einsum` takes one thread: a product shared between threads waits for the slower one, up to a
    hundred times as long on a busy machine.
    """
    products: Floats = np.einsum("ij,j->i", vectors, vector)
    return products


def _cosine(mirror: Mirror, query: Query) -> Floats | None:
    return None if query.vector is None else cosines(mirror.vectors, query.vector)


def _match(mirror: Mirror, query: Query) -> Floats:
    """Return for each chunk the F1 of the question and the best of its names, by IDF."""
    best = np.zeros(mirror.names.count, dtype=np.float32)
    for phrase in query.phrases:
        best = np.maximum(best, _likeness(mirror, phrase))
    match = np.zeros(len(mirror), dtype=np.float32)
    np.maximum.at(match, mirror.named_chunk, best[mirror.named_name])
    return match


def _likeness(mirror: Mirror, phrase: Terms) -> Floats:
    idf = mirror.keywords.idf(phrase)
    common = np.zeros(mirror.names.count, dtype=np.float32)
    for term, weight in zip(phrase, idf, strict=True):
        common[mirror.names.rows_of(term)] += weight
    both = mirror.name_weight + idf.sum()
    likeness: Floats = 2 * common / np.maximum(both, np.float32(1e-6))
    return likeness


def _summary(mirror: Mirror, query: Query, cosine: Floats | None, weights: Weights) -> Floats:
    text = mirror.summary.scores(query.terms, query.weights)[mirror.document_of]
    total: Floats = weights.summary_text * standardise(text)
    if cosine is None:
        return total
    lead = cosine[mirror.lead_of][mirror.section_of]
    centre = (mirror.mean_by_document(cosine) / mirror.centre_length)[mirror.document_of]
    total += weights.summary_lead * standardise(lead)
    total += weights.summary_centre * standardise(centre)
    return total
