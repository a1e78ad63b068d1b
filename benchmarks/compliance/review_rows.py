"""Reads the rows that weights are fitted on: documents at even positions, and no others."""

from dataclasses import dataclass
from pathlib import Path

from compliance.auditing.claim_support import compute_support_features
from compliance.verdicts.conduct import compute_conduct_features
from compliance.verdicts.features import compute_features
from compliance.verdicts.matching import match_passages
from compliance.verdicts.weights import STATUSES
from deploy.evaluation.compliance.checklist_suite import prepare_queries, prepare_reviews
from deploy.evaluation.compliance.review_files import ReviewData, load_reviews
from knowledge.embedding import local_embedder


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """Features with the label of people."""

    features: dict[str, float]
    label: int
    is_topic: bool = False


async def list_verdict_rows(folder: Path) -> list[ReviewRow]:
    """Return a row per requirement and document; labels are indices of `STATUSES`."""
    data = load_reviews(folder)
    model = local_embedder()
    queries = await prepare_queries(data, model)
    fitted = _keep_even(data)
    reviews = await prepare_reviews(fitted, model)
    rows = []
    for one in data.verdicts:
        if one.document in reviews:
            query, document = queries[one.requirement], reviews[one.document].document
            features = compute_features(query, document, match_passages(query, document))
            rows.append(ReviewRow(features, STATUSES.index(one.status), query.kind is None))
    return rows


async def list_citation_rows(folder: Path) -> list[ReviewRow]:
    """Return a row per citation; the label is 1 for a true one."""
    data = load_reviews(folder)
    if not data.citations:
        return []
    model = local_embedder()
    queries = await prepare_queries(data, model)
    reviews = await prepare_reviews(_keep_even(data), model)
    rows = []
    for one in data.citations:
        review = reviews.get(one.document)
        if review is not None and one.passage in review.numbers:
            at = review.numbers.index(one.passage)
            features = compute_support_features(queries[one.requirement], review.document, at)
            rows.append(ReviewRow(features, int(one.is_true)))
    return rows


def list_conduct_rows(folder: Path) -> list[ReviewRow]:
    """Return a row per case that the law applies to; the label is 1 for a forbidden act."""
    return [
        ReviewRow(compute_conduct_features(case.text), int(case.label == "Forbid"))
        for case in load_reviews(folder).cases[::2]
        if case.label
    ]


def _keep_even(data: ReviewData) -> ReviewData:
    return ReviewData(kind=data.kind, requirements=data.requirements, documents=data.documents[::2])
