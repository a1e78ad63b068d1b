"""Converts laws into a checklist of requirements with their locations."""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field

from agents.agent import AgentRole, ProgressStep
from agents.review.passages import (
    DocumentUnits,
    cut_document,
    find_words,
    join_digests,
    list_units,
    name_documents,
    plan_parts,
)
from agents.review.requirements import (
    Extraction,
    Requirement,
    RuleKind,
    RuleUnit,
    TextPlace,
    UnitAccount,
)
from agents.review.specialist import (
    LoopReads,
    LoopWrites,
    NoOutput,
    ReadsScope,
    SpecialistAgent,
)
from agents.review.verdicts import ExtractedPart, join_extractions
from envelope.outcome import Wrote
from envelope.role import Role
from envelope.specialists import (
    PartPlan,
    SpecialistError,
    StoredChecklist,
    StoredPart,
)
from llm.tasks.review import (
    REQUIREMENT_EXTRACTOR,
    ListedRequirement,
    RequirementExtractorInputs,
    RequirementExtractorOutput,
    TextUnit,
)

_LONGEST_REASON = 300
_NO_TEXT = "no text"
INTRODUCTION = "the unit is an introduction above the first heading"
"""The reason for a unit that is not listed if there is no model."""
UNREAD = "the model did not state its requirement"
"""The reason for a unit that a model has neither listed nor set aside."""
_ROUNDS = 2
"""Parts without a result are retried once."""
_NO_LAW = "there is no law or rule to read; name it, or add it to the documents"


class Reads(LoopReads, ReadsScope, frozen=True):
    """The laws, and the parts read so far; in a branch, the part to read."""

    part: PartPlan | None = None
    part_plan: tuple[PartPlan, ...] = ()
    part_round: int = 0
    stored_parts: dict[str, StoredPart] = Field({})


class Writes(LoopWrites, frozen=True):
    """The parts to read, the result of a part, or the checklist from all parts."""

    checklist: StoredChecklist | None = None
    part_plan: tuple[PartPlan, ...] = ()
    part_round: int = 0
    stored_parts: dict[str, StoredPart] = Field({})


class RequirementExtractorAgent(SpecialistAgent[Reads, Writes]):
    """Divides laws into parts that contain every unit once, reads each part, and joins the results.

    Every unit is accounted for: with its requirements, without any, or as unread. A unit that a
    model omits is requested once more. Without a model, every unit is listed unchanged.
    """

    role = Role.REQUIREMENT_EXTRACTOR
    step = ProgressStep.SEARCH
    model_task = REQUIREMENT_EXTRACTOR
    agent_role = AgentRole.EXTRACT
    reads = Reads
    writes = Writes

    async def examine(self, reads: Reads) -> Wrote[Writes]:
        if reads.part is not None:
            return Wrote(await self._read_part(reads, reads.part))
        laws = await self._cut_laws(reads)
        if self.toolbox.is_offline and laws:
            listed = list_units_as_requirements(list_units(laws))
            return Wrote(Writes(checklist=await self._store(laws, listed, ())))
        parts = plan_parts(laws)
        if not parts:
            return Wrote(Writes(errors=(self.toolbox.make_error(_NO_LAW),)))
        missing = tuple(part for part in parts if part.key not in reads.stored_parts)
        if missing and reads.part_round < _ROUNDS:
            return Wrote(Writes(part_plan=missing, part_round=reads.part_round + 1))
        return Wrote(await self._join(laws, parts, reads.stored_parts))

    async def _cut_laws(self, reads: Reads) -> list[DocumentUnits]:
        names = [document.document_id for document in reads.scope.against]
        return [
            cut_document(document)
            for document in await self.toolbox.read_documents(names, reads.groups)
        ]

    async def _read_part(self, reads: Reads, part: PartPlan) -> Writes:
        read = await self.toolbox.read_documents(part.documents, reads.groups)
        laws = [cut_document(document) for document in read]
        if len(laws) != len(part.documents) or join_digests(laws) != part.digest:
            text = f"the document changed while it was read: {part.label}"
            return Writes(errors=(self.toolbox.make_error(text),))
        units = list_units(laws)[part.first : part.last + 1]
        inputs = self._make_inputs(reads, laws, units)
        turns = reads.turns
        given = await self.toolbox.consult(REQUIREMENT_EXTRACTOR, inputs, turns, reads)
        if isinstance(given, NoOutput):
            refused = {}
            if given.is_refused:
                failure = given.errors[-1].text
                refused = {part.key: StoredPart(failure=failure, is_refused=True)}
            return Writes(**given.as_writes(), stored_parts=refused)
        outputs: list[RequirementExtractorOutput] = [given.output]
        errors = given.errors
        if lost := list_unaccounted(outputs, units):
            again = await self.toolbox.consult(
                REQUIREMENT_EXTRACTOR, self._make_inputs(reads, laws, lost), reads=reads
            )
            outputs += [] if isinstance(again, NoOutput) else [again.output]
            errors += again.errors
        extracted_part = read_listed(outputs, units)
        stored = StoredPart(
            reference=await self.toolbox.store(extracted_part),
            items=len(extracted_part.requirements),
            units=len(extracted_part.units),
            decided_by=given.decided_by,
        )
        return Writes(stored_parts={part.key: stored}, errors=errors)

    def _make_inputs(
        self, reads: Reads, laws: Sequence[DocumentUnits], units: Sequence[RuleUnit]
    ) -> RequirementExtractorInputs:
        return RequirementExtractorInputs(
            question=reads.question,
            language=reads.language,
            target_law=name_documents([law.title for law in laws]),
            units=tuple(
                TextUnit(
                    id=unit.unit_id,
                    heading=" > ".join(unit.heading_path),
                    text=unit.text,
                    language=unit.language,
                )
                for unit in units
            ),
            document_language=reads.scope.documents[0].language
            if reads.scope.documents
            else reads.language,
        )

    async def _join(
        self,
        laws: Sequence[DocumentUnits],
        parts: Sequence[PartPlan],
        stored: Mapping[str, StoredPart],
    ) -> Writes:
        read = [part for part in parts if part.key in stored and not stored[part.key].failure]
        loaded = [
            await self.toolbox.load(stored[plan.key].reference, ExtractedPart) for plan in read
        ]
        joined = join_extractions(loaded)
        unread = _list_unread(laws, joined)
        errors: tuple[SpecialistError, ...] = ()
        if unread:
            text = f"{len(unread)} of {sum(len(law.units) for law in laws)} units were not read"
            errors = (self.toolbox.make_error(text),)
        decided_by = tuple(sorted({stored[plan.key].decided_by for plan in read}))
        return Writes(checklist=await self._store(laws, joined, decided_by), errors=errors)

    async def _store(
        self, laws: Sequence[DocumentUnits], joined: Extraction, decided_by: tuple[str, ...]
    ) -> StoredChecklist:
        unread = _list_unread(laws, joined)
        return StoredChecklist(
            reference=await self.toolbox.store(joined),
            target_law=name_documents([law.title for law in laws]),
            requirements=len(joined.rules),
            definitions=len(joined.requirements) - len(joined.rules),
            units_read=sum(len(law.units) for law in laws) - len(unread),
            units_unread=tuple(unit.unit_id for unit in unread),
            units_without=sum(
                not unit.requirement_ids and unit.reason != UNREAD for unit in joined.units
            ),
            notes=joined.notes,
            decided_by=decided_by,
        )


def list_units_as_requirements(units: Iterable[RuleUnit]) -> Extraction:
    """Return every unit that contains text as a requirement, in order, for use without a model.

    Text above the first heading of a law introduces the law. It is accounted for, but is not a
    requirement.
    """
    texts = [rule_unit for rule_unit in units if rule_unit.text.strip()]
    above = _count_introduction(texts)
    own = texts[above:]
    return Extraction(
        requirements=tuple(
            Requirement(
                id=f"REQ-{number:03d}",
                kind=RuleKind.UNIT,
                statement=" ".join(unit.text.split()),
                quotation=unit.text,
                place=_make_place(unit, 0, len(unit.text)),
                severity="unjudged",
                granularity="unit",
            )
            for number, unit in enumerate(own, start=1)
        ),
        units=(
            *(UnitAccount(unit_id=text.unit_id, reason=INTRODUCTION) for text in texts[:above]),
            *(
                UnitAccount(unit_id=unit.unit_id, requirement_ids=(f"REQ-{number:03d}",))
                for number, unit in enumerate(own, start=1)
            ),
        ),
    )


def list_unaccounted(
    outputs: Iterable[RequirementExtractorOutput], units: Sequence[RuleUnit]
) -> list[RuleUnit]:
    """Return the units with text that no output mentions."""
    named = set()
    for output in outputs:
        named |= {requirement.source_section for requirement in output.checklist}
        named |= {unit_without.source_section for unit_without in output.without}
    return [unit for unit in units if unit.text.strip() and unit.unit_id not in named]


def read_listed(
    outputs: Sequence[RequirementExtractorOutput], units: Sequence[RuleUnit]
) -> ExtractedPart:
    """Return the requirements in the order of their units, and the result for every unit.

    Duplicates, and entries that do not refer to a unit, are omitted with a note.
    """
    listed = [requirement for output in outputs for requirement in output.checklist]
    reasons = {
        unit_without.source_section: unit_without.reason
        for out in outputs
        for unit_without in out.without
    }
    names = {unit.unit_id for unit in units}
    known: list[Requirement] = []
    taken: set[tuple[str, str]] = set()
    unproved = 0
    for unit in units:
        for requirement in listed:
            key = (unit.unit_id, requirement.requirement)
            if requirement.source_section != unit.unit_id or key in taken:
                continue
            taken.add(key)
            span = find_words(unit.text, requirement.quotation)
            unproved += span is None
            known.append(_make_requirement(requirement, unit, span, f"REQ-{len(known) + 1:03d}"))
    foreign = sum(requirement.source_section not in names for requirement in listed)
    notes = [f"{foreign} entries of the checklist name no unit that was read"] if foreign else []
    if unproved:
        notes.append(
            f"{unproved} quotations of the checklist are not in the law word for word, so the "
            f"whole unit is shown instead"
        )
    return ExtractedPart(
        requirements=tuple(known),
        units=tuple(_account(unit, known, reasons) for unit in units),
        notes=tuple(notes),
    )


def _count_introduction(units: Sequence[RuleUnit]) -> int:
    """Return the number of units above the first heading, or 0 if there are none.

    A law with one file per article has no introduction, because the text below a title is the
    article.
    """
    if len({unit.document_id for unit in units}) > 1:
        return 0
    return next((place for place, unit in enumerate(units) if unit.heading_path), 0)


def _make_requirement(
    requirement: ListedRequirement, unit: RuleUnit, span: tuple[int, int] | None, name: str
) -> Requirement:
    start, end = (0, len(unit.text)) if span is None else span
    return Requirement(
        id=name,
        kind=RuleKind(requirement.kind),
        statement=" ".join(requirement.requirement.split()),
        quotation=unit.text[start:end],
        place=_make_place(unit, start, end),
        addressee=requirement.addressee,
        condition=requirement.applicability,
        severity=requirement.severity,
        granularity=requirement.granularity,
        wordings=tuple(
            filter(None, (requirement.fulfilled_by.strip(), requirement.broken_by.strip()))
        ),
    )


def _make_place(unit: RuleUnit, start: int, end: int) -> TextPlace:
    return TextPlace(
        document_id=unit.document_id,
        unit_id=unit.unit_id,
        heading_path=unit.heading_path,
        start=start,
        end=end,
    )


def _account(unit: RuleUnit, known: Sequence[Requirement], reasons: dict[str, str]) -> UnitAccount:
    own = tuple(
        requirement.id for requirement in known if requirement.place.unit_id == unit.unit_id
    )
    reason = "" if own else reasons.get(unit.unit_id, UNREAD)
    if not unit.text.strip():
        reason = _NO_TEXT
    return UnitAccount(unit_id=unit.unit_id, requirement_ids=own, reason=reason[:_LONGEST_REASON])


def _list_unread(laws: Sequence[DocumentUnits], joined: Extraction) -> list[RuleUnit]:
    known = {account.unit_id for account in joined.units if account.reason != UNREAD}
    return [unit for unit in list_units(laws) if unit.text.strip() and unit.unit_id not in known]
