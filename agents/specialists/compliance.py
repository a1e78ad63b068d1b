"""Decides for each requirement whether the reviewed documents fulfil it or break it."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts
from agents.specialists.specialist import (
    CallsTools,
    GivenOutput,
    LoopTurns,
    TeamSettings,
    Toolbox,
    add_focus,
)
from compliance.requirements.requirement import Extraction, Requirement
from compliance.team.compression import compress_requirements
from compliance.team.frameworks import identify_frameworks
from compliance.team.named_passages import NamedPassages, name_passages
from compliance.team.stored_results import DecidedPart, join_decisions
from compliance.team.units import cut_document, divide_sizes, name_documents
from compliance.verdicts.review import ClauseFinding
from compliance.verdicts.verdict import Status, Verdict
from compliance.wording.cues import RuleKind
from compliance.wording.thesaurus import list_compared_languages
from envelope.conversation import Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.ways.specialists import (
    Extracted,
    PartPlan,
    SpecialistError,
    StoredChecklist,
    StoredPart,
    StoredVerdicts,
)
from llm.offline.model import OfflineModel
from llm.tasks.specialists.compliance import TASK, Inputs, Output

_ROUNDS = 2
_PART_ITEMS, _PART_CHARACTERS = 10, 5_000
_MOST_PARTS = 200
_LANGUAGES = (
    "the document is in {found!r} and the rule in {expected!r}: without a model no missing passage "
    "can be claimed, so a person has to decide"
)
_UNKNOWN = (
    "texts in {language!r} were compared by equal words only, without words of the same meaning: a "
    "passage in other words can be missed"
)

_DISAGREEMENT = (
    "{name}: {model} finds it fulfilled, and the rules read a contradiction, so a person has to "
    "decide; {reason}"
)


class Reads(BaseModel, frozen=True):
    """The checklist and the documents; in a branch, the requirements to decide."""

    canonical_question: str
    text: str = ""
    history: tuple[Turn, ...] = ()
    round_focus: str = ""
    language: str = "en"
    groups: tuple[str, ...] = ()
    extracted: Extracted | None = None
    checklist: StoredChecklist | None = None
    part: PartPlan | None = None
    part_plan: tuple[PartPlan, ...] = ()
    part_round: int = 0
    stored_parts: dict[str, StoredPart] = {}
    plan_messages: tuple[dict[str, JsonValue], ...] = ()
    multi_tool_results: dict[str, JsonValue] = {}


class Writes(BaseModel, frozen=True):
    """The parts to decide; the verdicts of a part; or those of all parts."""

    verdicts: StoredVerdicts | None = None
    part_plan: tuple[PartPlan, ...] = ()
    part_round: int = 0
    stored_parts: dict[str, StoredPart] = {}
    errors: tuple[SpecialistError, ...] = ()
    tool_calls: tuple[dict[str, JsonValue], ...] = ()
    plan_messages: tuple[dict[str, JsonValue], ...] = ()


class ComplianceAgent(Agent[Reads, Writes]):
    """Decides in parts of a few requirements; a verdict that a model leaves out is given by rules.

    Evidence is a passage of the documents: one that a model invents is left out, and the claims
    of a document about itself are no evidence.
    """

    role = Role.COMPLIANCE
    reads = Reads
    writes = Writes

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    @classmethod
    def make(cls, parts: AgentParts[TeamSettings]) -> Self:
        return cls(Toolbox.make(parts, TASK.name))

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        problem = _find_problem(reads)
        if problem or reads.checklist is None:
            return Wrote(Writes(errors=(self._toolbox.make_error(problem),)))
        rules = _list_rules(await self._toolbox.load(reads.checklist.reference, Extraction))
        if reads.part is not None:
            return Wrote(await self._decide_part(reads, reads.part, rules))
        parts = _plan_parts(rules, reads.checklist.reference, _list_languages(reads))
        missing = tuple(one for one in parts if one.key not in reads.stored_parts)
        if missing and reads.part_round < _ROUNDS:
            return Wrote(Writes(part_plan=missing, part_round=reads.part_round + 1))
        return Wrote(await self._join(rules, parts, reads))

    async def _decide_part(
        self, reads: Reads, part: PartPlan, rules: Sequence[Requirement]
    ) -> Writes:
        passages = await self._name_passages(reads)
        if not passages.texts:
            text = "expected a document with text to review, found an empty one"
            return Writes(errors=(self._toolbox.make_error(text),))
        own = rules[part.first : part.last + 1]
        inputs = self._make_inputs(reads, own, passages)
        turns = LoopTurns.parse(reads.plan_messages, reads.multi_tool_results)
        given = await self._toolbox.consult(TASK, inputs, turns, reads)
        if isinstance(given, CallsTools):
            return Writes(
                tool_calls=given.calls, plan_messages=(given.message,), errors=given.errors
            )
        decided = await self._complete(given, inputs, own, passages)
        stored = StoredPart(
            reference=await self._toolbox.store(decided),
            items=len(decided.verdicts),
            decided_by=given.decided_by,
        )
        return Writes(stored_parts={part.key: stored}, errors=given.errors)

    async def _name_passages(self, reads: Reads) -> NamedPassages:
        found = reads.extracted if reads.extracted is not None else Extracted()
        names = [one.document_id for one in found.documents]
        read = await self._toolbox.library.read(names, reads.groups)
        return name_passages([cut_document(one) for one in read])

    def _make_inputs(
        self, reads: Reads, own: Sequence[Requirement], passages: NamedPassages
    ) -> Inputs:
        found = reads.extracted if reads.extracted is not None else Extracted()
        language = _find_language(reads, own)
        shown: tuple[str, ...] = ()
        if not self._toolbox.is_offline:
            shown = passages.choose_shown([one.statement for one in own], language)
        return Inputs(
            question=add_focus(reads.canonical_question, reads.round_focus),
            language=reads.language,
            document=name_documents([one.title for one in found.documents]),
            document_language=passages.language,
            rule_language=language,
            requirements=compress_requirements(own),
            passages=passages.texts,
            shown=shown,
        )

    async def _complete(
        self,
        given: GivenOutput[Output],
        inputs: Inputs,
        own: Sequence[Requirement],
        passages: NamedPassages,
    ) -> DecidedPart:
        """Return a verdict for each requirement; those that a model left out are given by rules."""
        by_id = {one.requirement_id: one for one in reversed(given.output.verdicts)}
        lost = [one for one in own if one.id not in by_id]
        notes = list(given.output.notes)
        if lost:
            wanted = compress_requirements(lost)
            rules = await self._toolbox.ask_rules(
                TASK, inputs.model_copy(update={"requirements": wanted})
            )
            by_id |= {one.requirement_id: one for one in rules.verdicts}
            names = ", ".join(one.id for one in lost[:10])
            notes.append(f"{given.decided_by} gave no verdict for {names}: rules decided")
        is_by_rules = given.decided_by == OfflineModel.name
        if not is_by_rules:
            notes += await self._list_contradictions(given, inputs)
        by_rules = {one.id for one in (own if is_by_rules else lost)}
        if by_rules:
            notes += _describe_languages(inputs)
        verdicts, clauses = [], []
        for one in own:
            found = by_id[one.id]
            status = Status(found.status)
            if one.id in by_rules and _is_undecidable(status, inputs):
                continue
            evidence = passages.find_evidence(found.evidence)
            if status is not Status.GAP and not evidence:
                status = Status.GAP
                notes.append(f"{one.id}: a status without a passage that exists is a gap")
            if status is Status.VIOLATION:
                clauses += [
                    ClauseFinding(requirement_id=one.id, evidence=read, reason=found.note)
                    for read in evidence[:1]
                ]
            is_gap = status is Status.GAP
            searched = passages.list_searched(one.statement, inputs.rule_language) if is_gap else ()
            verdicts.append(
                Verdict(
                    requirement_id=one.id,
                    status=status,
                    confidence=found.confidence,
                    evidence=() if is_gap else evidence,
                    searched=searched,
                    note=found.note,
                )
            )
        return DecidedPart(
            verdicts=tuple(verdicts),
            clauses=tuple(clauses),
            notes=tuple(notes),
            passages=len(passages.texts),
        )

    async def _list_contradictions(self, given: GivenOutput[Output], inputs: Inputs) -> list[str]:
        """Return notes on requirements that a model finds fulfilled, and that words contradict."""
        fulfilled = {
            one.requirement_id for one in given.output.verdicts if one.status == Status.COMPLIANT
        }
        wanted = tuple(one for one in inputs.requirements if one.id in fulfilled)
        if not wanted or inputs.document_language != inputs.rule_language:
            return []
        read = await self._toolbox.ask_rules(
            TASK, inputs.model_copy(update={"requirements": wanted})
        )
        return [
            _DISAGREEMENT.format(name=one.requirement_id, model=given.decided_by, reason=one.note)
            for one in read.verdicts
            if one.status == Status.VIOLATION and one.note
        ]

    async def _join(
        self,
        rules: Sequence[Requirement],
        parts: Sequence[PartPlan],
        reads: Reads,
    ) -> Writes:
        stored = reads.stored_parts
        read = [one for one in parts if one.key in stored]
        loaded = [await self._toolbox.load(stored[one.key].reference, DecidedPart) for one in read]
        if not loaded:
            return Writes(errors=(self._toolbox.make_error("no requirement could be decided"),))
        joined = join_decisions(loaded)
        decided = {one.requirement_id for one in joined.verdicts}
        undecided = tuple(one.id for one in rules if one.id not in decided)
        errors: tuple[SpecialistError, ...] = ()
        if undecided:
            text = f"{len(undecided)} of {len(rules)} requirements were not decided"
            errors = (self._toolbox.make_error(text),)
        total = len(joined.verdicts)
        confidence = sum(one.confidence for one in joined.verdicts) / max(total, 1)
        verdicts = StoredVerdicts(
            reference=await self._toolbox.store(joined),
            requirements=len(rules),
            compliant=total - len(joined.violations) - len(joined.gaps),
            violations=len(joined.violations),
            gaps=len(joined.gaps),
            undecided=undecided,
            confidence=round(confidence, 4),
            frameworks=_identify_frameworks(reads),
            notes=joined.notes,
            decided_by=tuple(sorted({stored[one.key].decided_by for one in read})),
        )
        return Writes(verdicts=verdicts, errors=errors)


def _find_problem(reads: Reads) -> str:
    """Return the missing input as a sentence; empty: nothing is missing."""
    if reads.checklist is None:
        return (
            "expected the output of requirement_extractor, found none: the order is extractor, "
            "requirement_extractor, compliance"
        )
    if not reads.checklist.requirements:
        return f"expected requirements in {reads.checklist.target_law!r}, found none"
    if reads.extracted is None or not reads.extracted.documents:
        return "expected a document to review, found none: name it, or add it to the documents"
    return ""


def _identify_frameworks(reads: Reads) -> tuple[str, ...]:
    """Return the frameworks that the question, or a title of the rules, names."""
    found = reads.extracted if reads.extracted is not None else Extracted()
    return identify_frameworks(reads.canonical_question, *(one.title for one in found.against))


def _list_rules(extraction: Extraction) -> list[Requirement]:
    return [one for one in extraction.requirements if one.kind is not RuleKind.DEFINITION]


def _plan_parts(
    rules: Sequence[Requirement], reference: str, languages: Mapping[str, str]
) -> tuple[PartPlan, ...]:
    """Return parts that have every requirement once; no part has requirements in two languages."""
    sizes = [len(one.statement) for one in rules]
    longest = max(_PART_CHARACTERS, 2 * sum(sizes) // _MOST_PARTS)
    most = max(_PART_ITEMS, 2 * len(rules) // _MOST_PARTS)
    parts, start = [], 0
    for _, own in groupby(rules, key=lambda one: languages.get(one.place.document_id)):
        count = len(list(own))
        for first, last in divide_sizes(sizes[start : start + count], longest, most):
            ends = (rules[start + first].id, rules[start + last].id)
            parts.append(
                PartPlan(
                    key=str(start + first),
                    label=" - ".join(dict.fromkeys(ends)),
                    reference=reference,
                    first=start + first,
                    last=start + last,
                )
            )
        start += count
    return tuple(parts)


def _list_languages(reads: Reads) -> dict[str, str]:
    """Return the languages of the laws by their ids."""
    found = reads.extracted if reads.extracted is not None else Extracted()
    return {one.document_id: one.language for one in found.against}


def _find_language(reads: Reads, own: Sequence[Requirement]) -> str:
    return _list_languages(reads).get(own[0].place.document_id, "en") if own else "en"


def _is_undecidable(status: Status, inputs: Inputs) -> bool:
    """Return whether rules cannot give this status, because the languages differ.

    Of two languages with concepts, shared ones show what fulfils or breaks a requirement; that they
    are missing shows nothing.
    """
    languages = {inputs.document_language, inputs.rule_language}
    if len(languages) == 1:
        return False
    return status is Status.GAP or not languages <= list_compared_languages()


def _describe_languages(inputs: Inputs) -> list[str]:
    """Return what the rules cannot do with these languages."""
    notes = []
    if inputs.document_language != inputs.rule_language:
        languages = {"found": inputs.document_language, "expected": inputs.rule_language}
        notes.append(_LANGUAGES.format(**languages))
    languages_read = dict.fromkeys((inputs.document_language, inputs.rule_language))
    unknown = (one for one in languages_read if one not in list_compared_languages())
    return [*notes, *(_UNKNOWN.format(language=one) for one in unknown)]
