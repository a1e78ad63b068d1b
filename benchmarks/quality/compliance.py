"""The suite `compliance`: measures whether the right clause is among those shown for a requirement.

Two kinds of folders are supported:

- `contracts.jsonl`, `requirements.jsonl`, `labels.jsonl`: agreements, and where each of them
  addresses a requirement;
- `policies.jsonl`, `requirements.jsonl`, `labels.jsonl`: notices, and where each of them makes
  the required disclosures.

Reviews without a model make no judgements, so there are no figures for verdicts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from agents.review.passages import PassageSearch, cut_passages
from agents.review.requirements import RuleUnit
from cli.evaluation.questions import UnknownFormatError, rows
from knowledge.embedding import Embedder

Figures = dict[str, object]
SHOWN = 3
"""Number of passages that a report without a model shows for a requirement."""
_AGREEMENTS = ("contracts.jsonl", "requirements.jsonl", "labels.jsonl")
_NOTICES = ("policies.jsonl", "requirements.jsonl", "labels.jsonl")
Span = tuple[str, int, int]
"""A unit, and the first and last character of text in it."""


@dataclass(frozen=True, slots=True)
class LabelledDocument:
    """A document as units, and the locations of labelled evidence by requirement."""

    units: tuple[RuleUnit, ...]
    evidence: Mapping[str, Sequence[Span]]


@dataclass(frozen=True, slots=True)
class ShownEvidence:
    """How much of the evidence for a requirement is among the passages shown."""

    position: int
    recall: float


async def evaluate(data: Path, *, embedder: Embedder | None = None) -> Figures:
    """Return the figures of a folder; raises `UnknownFormatError` for another kind of folder."""
    if all((data / name).is_file() for name in _AGREEMENTS):
        kind, documents = "agreements", list(_read_agreements(data))
    elif all((data / name).is_file() for name in _NOTICES):
        kind, documents = "notices", list(_read_notices(data))
    else:
        expected = "; or ".join(", ".join(names) for names in (_AGREEMENTS, _NOTICES))
        raise UnknownFormatError(f"expected {expected} in {data}")
    requirements = {
        str(row["req_id"]): (
            " ".join(
                str(row[key]) for key in ("name", "legal_text", "requirement") if row.get(key)
            ),
            str(row.get("name") or ""),
        )
        for row in rows(data / "requirements.jsonl")
    }
    shown = [
        evidence
        for position, document in enumerate(documents)
        for evidence in _show(position, document, requirements)
    ]
    halves = {
        "all": shown,
        "even positions": [evidence for evidence in shown if evidence.position % 2 == 0],
        "odd positions": [evidence for evidence in shown if evidence.position % 2 == 1],
    }
    figures = {name: _compute(own) for name, own in halves.items()}
    return {"suite": "compliance", "data": data.name, "kind": kind, **figures}


def _show(
    position: int, document: LabelledDocument, requirements: Mapping[str, tuple[str, str]]
) -> Iterator[ShownEvidence]:
    search = PassageSearch(cut_passages(document.units))
    for name, spans in document.evidence.items():
        text, heading = requirements[name]
        places = [passage.place for passage in search.find(text, "en", SHOWN, heading)]
        hits = [
            any(
                place.unit_id == unit and place.start < end and start < place.end
                for place in places
            )
            for unit, start, end in spans
        ]
        yield ShownEvidence(position, sum(hits) / len(hits))


def _compute(shown: Sequence[ShownEvidence]) -> Figures:
    count = max(len(shown), 1)
    return {
        "requirements with evidence": len(shown),
        "right passage among three": round(
            sum(evidence.recall > 0 for evidence in shown) / count, 4
        ),
        "evidence recall": round(sum(evidence.recall for evidence in shown) / count, 4),
    }


def _read_agreements(folder: Path) -> Iterator[LabelledDocument]:
    labels = _read_labels(folder)
    for row in rows(folder / "contracts.jsonl"):
        name = str(row["doc_id"])
        unit = RuleUnit(name, f"{name}#u1", str(row["text"]))
        spans = [(unit.unit_id, int(start), int(end)) for start, end in row["spans"]]
        yield LabelledDocument((unit,), _locate(labels.get(name, {}), spans))


def _read_notices(folder: Path) -> Iterator[LabelledDocument]:
    labels = _read_labels(folder)
    for row in rows(folder / "policies.jsonl"):
        name = str(row["doc_id"])
        units, spans = _join_sections(name, row["passages"])
        yield LabelledDocument(tuple(units), _locate(labels.get(name, {}), spans))


def _join_sections(
    name: str, passages: Sequence[Mapping[str, Any]]
) -> tuple[list[RuleUnit], list[Span]]:
    """Return the text below each heading as a unit, as documents are read, and its passages."""
    units: list[RuleUnit] = []
    spans: list[Span] = []
    for crumbs, group in groupby(passages, key=lambda passage: tuple(passage.get("crumbs") or ())):
        unit_id, text = f"{name}#u{len(units)}", ""
        for passage in group:
            start = len(text)
            text = f"{text}{passage['text']}\n\n"
            spans.append((unit_id, start, len(text)))
        units.append(RuleUnit(name, unit_id, text, crumbs))
    return units, spans


def _locate(
    labels: Mapping[str, Sequence[int]], spans: Sequence[Span]
) -> dict[str, Sequence[Span]]:
    return {name: [spans[at] for at in places] for name, places in labels.items() if places}


def _read_labels(folder: Path) -> dict[str, dict[str, list[int]]]:
    """Return the numbers of the passages that are evidence, by document and requirement."""
    labels: dict[str, dict[str, list[int]]] = {}
    for row in rows(folder / "labels.jsonl"):
        own = labels.setdefault(_need(row, "doc_id"), {})
        own[_need(row, "req_id")] = [int(number) for number in row.get("evidence") or ()]
    return labels


def _need(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise UnknownFormatError(f"expected a string under {key!r}, found {value!r:.60}")
    return value
