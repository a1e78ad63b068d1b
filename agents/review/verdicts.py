"""The values that specialists store: parts of a checklist, verdicts, risks, and gaps.

This module also shortens the outputs that specialists pass to each other, and selects the context
for each specialist.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from agents.review.requirements import Extraction, Requirement, TextPlace, UnitAccount
from envelope.conversation import Turn
from envelope.json_values import map_texts
from envelope.specialists import Extracted
from llm.port import I
from llm.tasks.review import ClauseReading, KnownRequirement, KnownVerdict, SpecialistInputs

GapKind = Literal["regulatory", "coverage", "consistency", "citation", "temporal"]
LONGEST = 1_500
"""Maximum number of characters of a text that is passed on."""
BATCH = 40
"""Maximum number of findings that a model reads in one call."""
_FIRST_SHARE, _LAST_SHARE = 0.6, 0.35
OUTPUTS = ("extracted", "classification", "checklist", "verdicts", "citation_audit")
"""The attributes that contain the outputs of specialists, in order.

The report generator, which alone also reads the risks and gaps, receives all of them.
"""
LAST_TURNS = 3
_LONGEST_TURN, _LONGEST_TEXT, _LONGEST_OUTPUTS = 300, 300, 4_000
_MOST_DOCUMENTS, _MOST_PLACES = 20, 10
REMOVED = frozenset(
    {"reference", "chunks_data", "chunk_ids", "citations", "decided_by", "retrieval_method",
     "offers", "units_unread", "undecided"}
)  # fmt: skip
"""The names of stored values, ids that a specialist could only repeat, and passages that it
receives in another way.
"""


class Status(StrEnum):
    """Whether a document fulfils a requirement; `UNDECIDED` means that it was not judged."""

    COMPLIANT = "COMPLIANT"
    VIOLATION = "VIOLATION"
    GAP = "GAP"
    UNDECIDED = "UNDECIDED"


class VerdictEvidence(BaseModel, frozen=True):
    """A literal quotation from the reviewed document, and its location."""

    place: TextPlace
    text: str


class RuleVerdict(BaseModel, frozen=True):
    """A status with its evidence and reason. `confidence` is reported by the model, from 0 to 1.

    `closest` contains the passages that a search found if the requirement was not judged or is a
    gap. `comparisons` lists the amounts and periods that occur in both texts, compared without a
    model.
    """

    requirement_id: str
    status: Status
    confidence: float | None = Field(default=None, ge=0.0, le=1.0)
    evidence: tuple[VerdictEvidence, ...] = ()
    closest: tuple[VerdictEvidence, ...] = ()
    comparisons: tuple[str, ...] = ()
    note: str = ""


class ReviewResult(BaseModel, frozen=True):
    """Verdicts in the order of the requirements."""

    verdicts: tuple[RuleVerdict, ...]
    notes: tuple[str, ...] = ()
    passages: int = 0

    def of_status(self, status: Status) -> tuple[RuleVerdict, ...]:
        """Return the verdicts with this status."""
        return tuple(verdict for verdict in self.verdicts if verdict.status is status)

    @property
    def findings(self) -> tuple[RuleVerdict, ...]:
        """The violations, followed by the gaps."""
        return (*self.of_status(Status.VIOLATION), *self.of_status(Status.GAP))


class RiskCategory(StrEnum):
    """The type of damage."""

    LEGAL = "Legal"
    FINANCIAL = "Financial"
    OPERATIONAL = "Operational"
    COMPLIANCE = "Compliance"
    REPUTATIONAL = "Reputational"


class Risk(BaseModel, frozen=True):
    """A risk; severity and likelihood are from 1 to 5, and `score` is their product."""

    requirement_id: str
    category: RiskCategory
    severity: int = Field(ge=1, le=5)
    likelihood: int = Field(ge=1, le=5)
    reason: str
    mitigation: str

    @property
    def score(self) -> int:
        """The product of severity and likelihood, 1 to 25."""
        return self.severity * self.likelihood


class SynthesizedGap(BaseModel, frozen=True):
    """A gap; `requirement_ids` and `places` identify what it concerns."""

    kind: GapKind
    summary: str
    requirement_ids: tuple[str, ...] = ()
    places: tuple[TextPlace, ...] = ()


class ExtractedPart(BaseModel, frozen=True):
    """The requirements in a part of a law, and the result for each of its units, in order."""

    requirements: tuple[Requirement, ...]
    units: tuple[UnitAccount, ...]
    notes: tuple[str, ...] = ()


class ReadClauses(BaseModel, frozen=True):
    """How clauses of the document affect the requirements."""

    readings: tuple[ClauseReading, ...] = ()
    notes: tuple[str, ...] = ()


class DecidedPart(BaseModel, frozen=True):
    """The verdicts of some requirements."""

    verdicts: tuple[RuleVerdict, ...]
    notes: tuple[str, ...] = ()
    passages: int = 0


class RankedRisks(BaseModel, frozen=True):
    """The risks of a review, with the greatest first."""

    risks: tuple[Risk, ...]


class CollectedGaps(BaseModel, frozen=True):
    """The gaps of a review, in the order of their kinds."""

    gaps: tuple[SynthesizedGap, ...]


def join_extractions(parts: Sequence[ExtractedPart]) -> Extraction:
    """Return the parts as one, with requirements numbered in order and every unit exactly once.

    Definitions are numbered separately, so that the numbers of the requirements have no gaps.

    Raises `ValueError` if a unit occurs twice.
    """
    requirements: list[Requirement] = []
    accounts: list[UnitAccount] = []
    counts = {"REQ": 0, "DEF": 0}
    for part in parts:
        names: dict[str, str] = {}
        for requirement in part.requirements:
            prefix = "DEF" if requirement.is_definition else "REQ"
            counts[prefix] += 1
            names[requirement.id] = f"{prefix}-{counts[prefix]:03d}"
        requirements += [
            requirement.model_copy(update={"id": names[requirement.id]})
            for requirement in part.requirements
        ]
        accounts += [
            unit.model_copy(
                update={"requirement_ids": tuple(names[name] for name in unit.requirement_ids)}
            )
            for unit in part.units
        ]
    seen = [account.unit_id for account in accounts]
    if len(set(seen)) != len(seen):
        twice = next(requirement_id for requirement_id in seen if seen.count(requirement_id) > 1)
        raise ValueError(f"expected every unit once, found {twice!r} twice")
    notes = _list_once(note for part in parts for note in part.notes)
    return Extraction(requirements=tuple(requirements), units=tuple(accounts), notes=notes)


def join_decisions(parts: Sequence[DecidedPart]) -> ReviewResult:
    """Return the verdicts from all parts as one result. If a requirement has several verdicts, the
    first one is used.
    """
    verdicts = {
        verdict.requirement_id: verdict for part in reversed(parts) for verdict in part.verdicts
    }
    order = _list_once(verdict.requirement_id for part in parts for verdict in part.verdicts)
    return ReviewResult(
        verdicts=tuple(verdicts[name] for name in order),
        notes=_list_once(note for part in parts for note in part.notes),
        passages=max((part.passages for part in parts), default=0),
    )


def compress_output(value: JsonValue, longest: int = LONGEST) -> JsonValue:
    """Return an output with long texts shortened in the middle."""
    return map_texts(value, lambda text: shorten_middle(text, longest))


def shorten_middle(text: str, longest: int = LONGEST) -> str:
    """Return the text shortened to about `longest` characters: its first 60 %, a marker, and its
    last 35 %.
    """
    if len(text) <= longest:
        return text
    head, tail = int(longest * _FIRST_SHARE), int(longest * _LAST_SHARE)
    return f"{text[:head]} [... {len(text) - head - tail} characters ...] {text[-tail:]}"


def compress_requirements(
    requirements: Iterable[Requirement], wanted: Iterable[str] | None = None
) -> tuple[KnownRequirement, ...]:
    """Return requirements in the form that other specialists read: all of them, or those with the
    given ids.
    """
    names = None if wanted is None else frozenset(wanted)
    return tuple(
        KnownRequirement(
            id=requirement.id,
            statement=shorten_middle(requirement.statement),
            kind=requirement.kind.value,
            severity=requirement.severity,
            addressee=requirement.addressee,
            condition=shorten_middle(requirement.condition),
            heading=" > ".join(requirement.place.heading_path),
            quotation=shorten_middle(requirement.quotation),
        )
        for requirement in requirements
        if names is None or requirement.id in names
    )


def divide_findings(findings: Sequence[KnownVerdict]) -> Iterator[tuple[KnownVerdict, ...]]:
    """Yield findings in batches that a model can process in one call."""
    for first in range(0, len(findings), BATCH):
        yield tuple(findings[first : first + BATCH])


def compress_verdicts(verdicts: Iterable[RuleVerdict]) -> tuple[KnownVerdict, ...]:
    """Return verdicts with their evidence, shortened."""
    return tuple(
        KnownVerdict(
            requirement_id=verdict.requirement_id,
            status=verdict.status.value,
            confidence=verdict.confidence,
            note=verdict.note,
            evidence=tuple(map(_describe, verdict.evidence[:2])),
        )
        for verdict in verdicts
    )


def describe_risk(risk: Risk) -> str:
    """Return a risk on one line, with the id of the requirement that is not met."""
    return f"{risk.requirement_id} ({risk.category.value}, {risk.score} of 25): {risk.reason}"


def add_context(inputs: I, reads: BaseModel | None) -> I:
    """Return the inputs of a specialist with its context, which is limited to the attributes that
    it reads.
    """
    if reads is None or not isinstance(inputs, SpecialistInputs):
        return inputs
    values: dict[str, object] = {name: getattr(reads, name) for name in type(reads).model_fields}
    extracted = values.get("extracted")
    return inputs.model_copy(
        update={
            "original_query": _read_text(values.get("text")),
            "recent_turns": tuple(_list_turns(values.get("history"))),
            "previous_outputs": write_outputs(values),
            "retrieved": tuple(
                _list_retrieved(extracted) if isinstance(extracted, Extracted) else ()
            ),
        }
    )


def write_outputs(values: Mapping[str, object]) -> str:
    """Return the other specialists' outputs as compact JSON without unused fields, or ""."""
    shown: dict[str, JsonValue] = {}
    for name in OUTPUTS:
        value = values.get(name)
        if not value:
            continue
        dumped = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        plain: JsonValue = json.loads(json.dumps(dumped))
        kept = compress_output(plain, _LONGEST_TEXT)
        if isinstance(kept, dict):
            kept = {key: item for key, item in kept.items() if item and key not in REMOVED}
        shown[name] = kept
    if not shown:
        return ""
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return shorten_middle(text, _LONGEST_OUTPUTS)


def _list_once(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _describe(evidence: VerdictEvidence) -> str:
    """Return a quotation, preceded by the heading above it."""
    place = " > ".join(evidence.place.heading_path)
    words = shorten_middle(evidence.text, LONGEST // 3)
    return f"{place}: {words}" if place else words


def _list_turns(history: object) -> Iterator[str]:
    turns: Sequence[object] = history if isinstance(history, tuple) else ()
    for turn in turns[-LAST_TURNS:]:
        if isinstance(turn, Turn):
            meant = turn.meant or turn.text
            yield f"{turn.speaker}: {shorten_middle(' '.join(meant.split()), _LONGEST_TURN)}"


def _list_retrieved(extracted: Extracted) -> Iterator[str]:
    """Yield a line for each document of the review, and one for the locations of passages."""
    for role, documents in (("document", extracted.documents), ("rules", extracted.against)):
        for document in documents[:_MOST_DOCUMENTS]:
            yield f"{role}: {document.title} ({document.units} units, {document.language})"
    for place in extracted.citations[:_MOST_PLACES]:
        yield f"passage: {place}"


def _read_text(value: object) -> str:
    return shorten_middle(value) if isinstance(value, str) else ""
