"""Runs the suite `compliance`: our verdicts, citations and sections against people's labels.

Labels are read only to compare: no function that decides receives one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from compliance.auditing.claim_support import score_citation
from compliance.verdicts.conduct import judge_conduct
from compliance.verdicts.deciding import select_within_budget
from compliance.verdicts.matching import RequirementQuery, make_query, match_passages
from compliance.verdicts.passages import DocumentPassage, PreparedDocument, Vector
from compliance.verdicts.review import review_requirement
from compliance.verdicts.sections import SectionRanking

from deploy.evaluation.compliance.extraction_figures import is_rule_folder, measure_extraction
from deploy.evaluation.compliance.review_figures import (
    Figures,
    JudgedCase,
    JudgedVerdict,
    ScoredCitation,
    compute_case_figures,
    compute_citation_figures,
    compute_verdict_figures,
    measure_halves,
)
from deploy.evaluation.compliance.review_files import (
    LabelledDocument,
    LabelledVerdict,
    ReviewData,
    load_reviews,
)
from knowledge.embedding import Embedder, local_embedder

SPANS_OF_A_REQUIREMENT = 2
"""The budget of evidence: passages of a document for each requirement, shared by all."""
SECTIONS = 5
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class PreparedReview:
    """A document with the position in its file, ready for comparing."""

    position: int
    document: PreparedDocument
    numbers: tuple[int, ...]
    """Of each passage, its number in the file: empty ones are left out."""


async def evaluate(data: Path, *, embedder: Embedder | None = None) -> Figures:
    """Return the figures of a folder; raises `UnknownFormatError` for another kind of folder."""
    if is_rule_folder(data):
        figures = measure_extraction(data)
        return {"suite": "compliance", "data": data.name, "kind": "rules", **figures}
    loaded = load_reviews(data)
    model = local_embedder() if embedder is None else embedder
    named: Figures = {"suite": "compliance", "data": data.name, "kind": loaded.kind}
    if loaded.kind == "cases":
        judged = await _judge_cases(loaded, model)
        return {**named, **measure_halves(judged, compute_case_figures)}
    queries = await prepare_queries(loaded, model)
    reviews = await prepare_reviews(loaded, model)
    verdicts = list(_judge_verdicts(loaded, queries, reviews))
    named["verdicts"] = measure_halves(verdicts, compute_verdict_figures)
    if loaded.citations:
        scored = list(_score_citations(loaded, queries, reviews))
        named["citations"] = measure_halves(scored, compute_citation_figures)
    return named


async def prepare_queries(data: ReviewData, model: Embedder) -> Mapping[str, RequirementQuery]:
    """Return the requirements by id, embedded."""
    vectors = await embed_texts(model, tuple(data.requirements.values()))
    return {
        name: make_query(text, vector=vectors[text]) for name, text in data.requirements.items()
    }


async def prepare_reviews(data: ReviewData, model: Embedder) -> Mapping[str, PreparedReview]:
    """Return the documents by name, embedded."""
    found = {}
    for position, one in enumerate(data.documents):
        if one.passages:
            vectors = await embed_texts(model, [text for _, text in one.passages])
            found[one.name] = _prepare(position, one, vectors)
    return found


async def embed_texts(model: Embedder, texts: Sequence[str]) -> dict[str, Vector]:
    """Return the vector of each different text."""
    different = list(dict.fromkeys(texts))
    found: dict[str, Vector] = {}
    for start in range(0, len(different), _AT_ONCE):
        own = different[start : start + _AT_ONCE]
        found.update(zip(own, await model.embed_documents(own), strict=True))
    return found


def _prepare(position: int, one: LabelledDocument, vectors: Mapping[str, Vector]) -> PreparedReview:
    passages = [DocumentPassage(place, text, vectors[text]) for place, text in one.passages]
    numbers = tuple(int(place.unit_id) for place, _ in one.passages)
    return PreparedReview(position, PreparedDocument(passages), numbers)


def _judge_verdicts(
    data: ReviewData, queries: Mapping[str, RequirementQuery], reviews: Mapping[str, PreparedReview]
) -> Iterator[JudgedVerdict]:
    by_document: dict[str, list[LabelledVerdict]] = {}
    for one in data.verdicts:
        by_document.setdefault(one.document, []).append(one)
    for name, labelled in by_document.items():
        if name in reviews:
            yield from _judge_document(reviews[name], labelled, queries)


def _judge_document(
    review: PreparedReview,
    labelled: Sequence[LabelledVerdict],
    queries: Mapping[str, RequirementQuery],
) -> Iterator[JudgedVerdict]:
    matches = [match_passages(query, review.document) for query in queries.values()]
    budget = SPANS_OF_A_REQUIREMENT * len(queries)
    shown = {review.numbers[at] for at in select_within_budget(matches, budget)}
    for one in labelled:
        verdict, _ = review_requirement(one.requirement, queries[one.requirement], review.document)
        recall = len(one.evidence & shown) / len(one.evidence) if one.evidence else None
        yield JudgedVerdict(
            position=review.position,
            gold=one.status,
            found=verdict.status,
            confidence=verdict.confidence,
            recall=recall,
        )


def _score_citations(
    data: ReviewData, queries: Mapping[str, RequirementQuery], reviews: Mapping[str, PreparedReview]
) -> Iterator[ScoredCitation]:
    for one in data.citations:
        review = reviews.get(one.document)
        if review is None:
            continue
        if one.passage not in review.numbers:  # it has no text, and supports nothing
            yield ScoredCitation(review.position, one.is_true, 0.0)
            continue
        at = review.numbers.index(one.passage)
        query = queries[one.requirement]
        if query.text != one.claim:
            query = replace(make_query(one.claim), vector=query.vector)
        score = score_citation(query, review.document, at)
        yield ScoredCitation(review.position, one.is_true, score)


async def _judge_cases(data: ReviewData, model: Embedder) -> list[JudgedCase]:
    texts = [unit.text for unit in data.units] + [case.text for case in data.cases]
    vectors = await embed_texts(model, texts)
    ranking = SectionRanking([replace(unit, vector=vectors[unit.text]) for unit in data.units])
    judged = []
    for position, case in enumerate(data.cases):
        recall = None
        if case.sections:
            first = ranking.rank_sections(case.text, vectors[case.text])[:SECTIONS]
            recall = len(case.sections & set(first)) / len(case.sections)
        found = judge_conduct(case.text).label if case.label else ""
        judged.append(JudgedCase(position, case.label, found, recall))
    return judged
