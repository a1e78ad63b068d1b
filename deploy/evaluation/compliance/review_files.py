"""Reads reviewed documents from three kinds of folders.

- `contracts.jsonl`, `requirements.jsonl`, `labels.jsonl`, and `citations.jsonl` if there are any:
  agreements and what each says about every requirement;
- `policies.jsonl`, `requirements.jsonl`, `labels.jsonl`: notices and what each discloses;
- `cases.jsonl` and `units.jsonl`: reported acts, and the law that permits or forbids them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from compliance.verdicts.sections import SectionUnit
from compliance.verdicts.verdict import Status

from compliance.requirements.requirement import TextPlace
from deploy.evaluation.questions import UnknownFormatError, rows

ReviewKind = Literal["agreements", "notices", "cases"]
_FILES: Mapping[ReviewKind, tuple[str, ...]] = {
    "agreements": ("contracts.jsonl", "requirements.jsonl", "labels.jsonl"),
    "notices": ("policies.jsonl", "requirements.jsonl", "labels.jsonl"),
    "cases": ("cases.jsonl", "units.jsonl"),
}
_STATUSES = {
    "Entailment": Status.COMPLIANT,
    "Contradiction": Status.VIOLATION,
    "NotMentioned": Status.GAP,
    "disclosed": Status.COMPLIANT,
    "denied": Status.VIOLATION,
    "missing": Status.GAP,
}


@dataclass(frozen=True, slots=True)
class LabelledDocument:
    """A document as passages; the place of passage `n` has the unit id `str(n)`."""

    name: str
    passages: tuple[tuple[TextPlace, str], ...]


@dataclass(frozen=True, slots=True)
class LabelledVerdict:
    """What people said about a requirement and a document, with the numbers of the passages."""

    document: str
    requirement: str
    status: Status
    evidence: frozenset[int]


@dataclass(frozen=True, slots=True)
class LabelledCitation:
    """A claim that cites a passage; `is_true` when the passage says so."""

    document: str
    requirement: str
    claim: str
    passage: int
    is_true: bool


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """A reported act; `label` is empty where the law does not apply."""

    name: str
    text: str
    label: str
    sections: frozenset[str]


@dataclass(frozen=True, slots=True)
class ReviewData:
    """All of a folder; requirements by id; `cases` and `units` only of the third kind."""

    kind: ReviewKind
    requirements: Mapping[str, str]
    documents: tuple[LabelledDocument, ...] = ()
    verdicts: tuple[LabelledVerdict, ...] = ()
    citations: tuple[LabelledCitation, ...] = ()
    cases: tuple[LabelledCase, ...] = ()
    units: tuple[SectionUnit, ...] = ()


def load_reviews(folder: Path) -> ReviewData:
    """Return the data of a folder; raises `UnknownFormatError`."""
    for kind, names in _FILES.items():
        if all((folder / name).is_file() for name in names):
            data = _READERS[kind](folder)
            if not (data.documents and data.verdicts) and not (data.cases and data.units):
                raise UnknownFormatError(f"expected reviewed documents in {folder}, found none")
            return data
    expected = "; or ".join(", ".join(names) for names in _FILES.values())
    raise UnknownFormatError(f"expected {expected} in {folder}")


def _read_agreements(folder: Path) -> ReviewData:
    requirements = {
        _need(row, "req_id"): _need(row, "requirement")
        for row in rows(folder / "requirements.jsonl")
    }
    documents = tuple(
        _make_document(_need(row, "doc_id"), [_need(row, "text")[s:e] for s, e in row["spans"]])
        for row in rows(folder / "contracts.jsonl")
    )
    return ReviewData(
        kind="agreements",
        requirements=requirements,
        documents=documents,
        verdicts=tuple(_read_verdicts(folder)),
        citations=tuple(_read_citations(folder / "citations.jsonl")),
    )


def _read_notices(folder: Path) -> ReviewData:
    requirements = {
        _need(row, "req_id"): _need(row, "name") for row in rows(folder / "requirements.jsonl")
    }
    documents = tuple(
        _make_document(_need(row, "doc_id"), [str(one["text"]) for one in row["passages"]])
        for row in rows(folder / "policies.jsonl")
    )
    return ReviewData(
        kind="notices",
        requirements=requirements,
        documents=documents,
        verdicts=tuple(_read_verdicts(folder)),
    )


def _read_cases(folder: Path) -> ReviewData:
    cases = tuple(
        LabelledCase(
            name=_need(row, "case_id"),
            text=_need(row, "text"),
            label=label if (label := _need(row, "label")) in {"Permit", "Forbid"} else "",
            sections=frozenset(map(str, row.get("gold_sections") or ())),
        )
        for row in rows(folder / "cases.jsonl")
    )
    units = tuple(
        SectionUnit(
            unit_id=_need(row, "unit_id"),
            section=_need(row, "section"),
            text=_need(row, "text"),
            heading=str((row.get("crumbs") or [""])[-1]),
        )
        for row in rows(folder / "units.jsonl")
    )
    return ReviewData(kind="cases", requirements={}, cases=cases, units=units)


_READERS = {"agreements": _read_agreements, "notices": _read_notices, "cases": _read_cases}


def _make_document(name: str, texts: Sequence[str]) -> LabelledDocument:
    passages = tuple(
        (TextPlace(document_id=name, unit_id=str(number), start=0, end=len(text)), text)
        for number, text in enumerate(texts)
        if text.strip()
    )
    return LabelledDocument(name, passages)


def _read_verdicts(folder: Path) -> Iterator[LabelledVerdict]:
    for row in rows(folder / "labels.jsonl"):
        label = _need(row, "label")
        if label not in _STATUSES:
            raise UnknownFormatError(f"expected one of {', '.join(_STATUSES)}, found {label!r:.60}")
        yield LabelledVerdict(
            document=_need(row, "doc_id"),
            requirement=_need(row, "req_id"),
            status=_STATUSES[label],
            evidence=frozenset(int(one) for one in row.get("evidence") or ()),
        )


def _read_citations(path: Path) -> Iterator[LabelledCitation]:
    for row in rows(path) if path.is_file() else ():
        yield LabelledCitation(
            document=_need(row, "doc_id"),
            requirement=_need(row, "req_id"),
            claim=_need(row, "claim"),
            passage=int(row["cited_span"]),
            is_true=row.get("verdict") == "supports",
        )


def _need(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise UnknownFormatError(f"expected a text under {key!r}, found {value!r:.60}")
    return value
