"""Measures which questions the desk accepts: the suite `scope`.

The folder contains `queries.jsonl` with `text` and `label`: questions labelled `in_scope` should be
accepted, all others rejected. The documents are in the same folder, or in the sibling folder
`docs_PRODUCT` that the rows name (`product`). The real agent gets every question without a
model: it rejects those like which the search found nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.question.guardrails import GuardrailsAgent, Reads
from benchmarks.quality.collection import open_collection
from config.settings import Settings, load_settings
from deploy.assembly.knowledge import Knowledge
from deploy.evaluation.questions import UnknownFormatError, corpus_of, rows
from envelope.outcome import Wrote
from knowledge.embedding import Embedder

Figures = dict[str, object]
IN_SCOPE = "in_scope"
ACCEPTED = 0.95


@dataclass(frozen=True, slots=True)
class ScopeVerdict:
    """The agent's confidence that a question is within scope, and whether it accepted it."""

    label: str
    inside: float
    accepted: bool


async def evaluate(
    data: Path, *, settings: Settings | None = None, embedder: Embedder | None = None
) -> Figures:
    """Return the figures of a folder; raises `UnknownFormatError` when it holds something else."""
    questions = _questions(data)
    corpus = corpus_of(_documents(data, questions))
    chosen = load_settings() if settings is None else settings
    async with open_collection(corpus, chosen, embedder) as knowledge:
        usual = await _verdicts(_agent(chosen, knowledge), questions)
    return {
        "suite": "scope",
        "data": data.name,
        "questions": len(questions),
        "configured": compute_rejection(usual),
        "at_95_percent_acceptance": compute_rejection(at_acceptance(usual, ACCEPTED)),
    }


def compute_rejection(verdicts: Sequence[ScopeVerdict]) -> dict[str, float]:
    """Return the accepted share of questions in scope, and the rejected share of other labels."""
    labels = sorted({verdict.label for verdict in verdicts})
    shares: dict[str, float] = {}
    for label in labels:
        accepted = [verdict.accepted for verdict in verdicts if verdict.label == label]
        share = sum(accepted) / len(accepted)
        shares[f"{'accepted' if label == IN_SCOPE else 'rejected'}_{label}"] = round(
            share if label == IN_SCOPE else 1 - share, 4
        )
    return shares


def at_acceptance(verdicts: Sequence[ScopeVerdict], share: float) -> list[ScopeVerdict]:
    """Return the verdicts at the threshold that accepts at least `share` of questions in scope."""
    inside = sorted((v.inside for v in verdicts if v.label == IN_SCOPE), reverse=True)
    least = inside[min(-int(-len(inside) * share // 1), len(inside)) - 1]
    return [ScopeVerdict(v.label, v.inside, v.inside >= least) for v in verdicts]


def _agent(settings: Settings, knowledge: Knowledge) -> GuardrailsAgent:
    return GuardrailsAgent(
        model=None,
        searcher=knowledge.searcher,
        domain_name=settings.domain_name,
        domain_scope=settings.domain_scope,
    )


async def _verdicts(
    agent: GuardrailsAgent, questions: Sequence[Mapping[str, Any]]
) -> list[ScopeVerdict]:
    return [await _verdict(agent, row["text"], row["label"]) for row in questions]


async def _verdict(agent: GuardrailsAgent, text: str, label: str) -> ScopeVerdict:
    outcome = await agent.work(Reads(canonical_question=text, text=text, language="en"))
    if not isinstance(outcome, Wrote):
        raise TypeError(f"expected a verdict on {text!r}, found {outcome.reason}")
    writes = outcome.writes
    sure = writes.guardrails_confidence
    return ScopeVerdict(label, sure if writes.within_scope else 1 - sure, writes.within_scope)


def _documents(folder: Path, questions: Sequence[Mapping[str, Any]]) -> Path:
    products = sorted({str(row["product"]) for row in questions if row.get("product")})
    beside = [folder.parent / f"docs_{name}" for name in products if name.isidentifier()]
    return next((place for place in beside if place.is_dir()), folder)


def _questions(folder: Path) -> list[Mapping[str, Any]]:
    path = folder / "queries.jsonl"
    if not path.is_file():
        raise UnknownFormatError(f"expected queries.jsonl in {folder}, found no such file")
    found = [
        row
        for row in rows(path)
        if isinstance(row.get("text"), str) and isinstance(row.get("label"), str)
    ]
    if not any(row["label"] == IN_SCOPE for row in found):
        raise UnknownFormatError(
            f"expected lines with `text` and `label`, some of them {IN_SCOPE!r}, in {path}, "
            "found none"
        )
    return found
