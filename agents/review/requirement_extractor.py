"""Turns laws into a checklist: what they demand, with the place of each requirement."""

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts
from agents.review.listed_requirements import (
    UNREAD,
    list_unaccounted,
    list_units_as_requirements,
    read_listed,
)
from agents.review.requirements.requirement import Extraction, RuleUnit
from agents.review.requirements.units import (
    DocumentUnits,
    cut_document,
    join_digests,
    list_units,
    name_documents,
    plan_parts,
)
from agents.review.specialist import LoopTurns, NoOutput, TeamSettings, Toolbox, add_focus
from agents.review.stored_results import ExtractedPart, join_extractions
from envelope.conversation import Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.ways.specialists import (
    Extracted,
    PartPlan,
    SpecialistError,
    StoredChecklist,
    StoredPart,
)
from llm.tasks.specialists.material import TextUnit
from llm.tasks.specialists.requirement_extractor import TASK, Inputs, Output

_ROUNDS = 2
"""Parts without a result are tried once more."""
_NO_LAW = "expected a law or rule to read, found none: name it, or add it to the documents"


class Reads(BaseModel, frozen=True):
    """The laws, and the parts that were read so far; in a branch, the part to read."""

    canonical_question: str
    text: str = ""
    history: tuple[Turn, ...] = ()
    round_focus: str = ""
    language: str = "en"
    groups: tuple[str, ...] = ()
    extracted: Extracted | None = None
    part: PartPlan | None = None
    part_plan: tuple[PartPlan, ...] = ()
    part_round: int = 0
    stored_parts: dict[str, StoredPart] = {}
    plan_messages: tuple[dict[str, JsonValue], ...] = ()
    multi_tool_results: dict[str, JsonValue] = {}


class Writes(BaseModel, frozen=True):
    """The parts to read; the result of a part; or the checklist of all parts."""

    checklist: StoredChecklist | None = None
    part_plan: tuple[PartPlan, ...] = ()
    part_round: int = 0
    stored_parts: dict[str, StoredPart] = {}
    errors: tuple[SpecialistError, ...] = ()
    tool_calls: tuple[dict[str, JsonValue], ...] = ()
    plan_messages: tuple[dict[str, JsonValue], ...] = ()


class RequirementExtractorAgent(Agent[Reads, Writes]):
    """Divides laws into parts that have every unit once, reads each part, and joins the results.

    Every unit is accounted for: with its requirements, without any, or as unread. A unit that a
    model leaves out is asked for once more. Without a model every unit is listed as it stands.
    """

    role = Role.REQUIREMENT_EXTRACTOR
    reads = Reads
    writes = Writes

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    @classmethod
    def make(cls, parts: AgentParts[TeamSettings]) -> Self:
        return cls(Toolbox.make(parts, TASK.name))

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if reads.part is not None:
            return Wrote(await self._read_part(reads, reads.part))
        laws = await self._cut_laws(reads)
        if self._toolbox.is_offline and laws:
            listed = list_units_as_requirements(list_units(laws))
            return Wrote(Writes(checklist=await self._store(laws, listed, ())))
        parts = plan_parts(laws)
        if not parts:
            return Wrote(Writes(errors=(self._toolbox.make_error(_NO_LAW),)))
        missing = tuple(one for one in parts if one.key not in reads.stored_parts)
        if missing and reads.part_round < _ROUNDS:
            return Wrote(Writes(part_plan=missing, part_round=reads.part_round + 1))
        return Wrote(await self._join(laws, parts, reads.stored_parts))

    async def _cut_laws(self, reads: Reads) -> list[DocumentUnits]:
        found = reads.extracted if reads.extracted is not None else Extracted()
        names = [one.document_id for one in found.against]
        return [cut_document(one) for one in await self._toolbox.library.read(names, reads.groups)]

    async def _read_part(self, reads: Reads, part: PartPlan) -> Writes:
        read = await self._toolbox.library.read(part.documents, reads.groups)
        laws = [cut_document(one) for one in read]
        if len(laws) != len(part.documents) or join_digests(laws) != part.digest:
            text = f"the document {part.document_id!r} changed while it was read: {part.label}"
            return Writes(errors=(self._toolbox.make_error(text),))
        units = list_units(laws)[part.first : part.last + 1]
        inputs = self._make_inputs(reads, laws, units)
        turns = LoopTurns.parse(reads.plan_messages, reads.multi_tool_results)
        given = await self._toolbox.consult(TASK, inputs, turns, reads)
        if isinstance(given, NoOutput):
            return Writes(tool_calls=given.calls, plan_messages=given.messages, errors=given.errors)
        outputs: list[Output] = [given.output]
        errors = given.errors
        if lost := list_unaccounted(outputs, units):
            again = await self._toolbox.consult(
                TASK, self._make_inputs(reads, laws, lost), reads=reads
            )
            outputs += [] if isinstance(again, NoOutput) else [again.output]
            errors += again.errors
        found = read_listed(outputs, units)
        stored = StoredPart(
            reference=await self._toolbox.store(found),
            items=len(found.requirements),
            units=len(found.units),
            decided_by=given.decided_by,
        )
        return Writes(stored_parts={part.key: stored}, errors=errors)

    def _make_inputs(
        self, reads: Reads, laws: Sequence[DocumentUnits], units: Sequence[RuleUnit]
    ) -> Inputs:
        found = reads.extracted if reads.extracted is not None else Extracted()
        return Inputs(
            question=add_focus(reads.canonical_question, reads.round_focus),
            language=reads.language,
            target_law=name_documents([one.title for one in laws]),
            units=tuple(
                TextUnit(
                    id=one.unit_id,
                    heading=" > ".join(one.heading_path),
                    text=one.text,
                    language=one.language,
                )
                for one in units
            ),
            document_language=found.documents[0].language if found.documents else reads.language,
        )

    async def _join(
        self,
        laws: Sequence[DocumentUnits],
        parts: Sequence[PartPlan],
        stored: Mapping[str, StoredPart],
    ) -> Writes:
        read = [one for one in parts if one.key in stored]
        loaded = [
            await self._toolbox.load(stored[one.key].reference, ExtractedPart) for one in read
        ]
        joined = join_extractions(loaded)
        unread = _list_unread(laws, joined)
        errors: tuple[SpecialistError, ...] = ()
        if unread:
            text = f"{len(unread)} of {sum(len(one.units) for one in laws)} units were not read"
            errors = (self._toolbox.make_error(text),)
        decided_by = tuple(sorted({stored[one.key].decided_by for one in read}))
        return Writes(checklist=await self._store(laws, joined, decided_by), errors=errors)

    async def _store(
        self, laws: Sequence[DocumentUnits], joined: Extraction, decided_by: tuple[str, ...]
    ) -> StoredChecklist:
        unread = _list_unread(laws, joined)
        return StoredChecklist(
            reference=await self._toolbox.store(joined),
            target_law=name_documents([one.title for one in laws]),
            requirements=len(joined.rules),
            definitions=len(joined.requirements) - len(joined.rules),
            units_read=sum(len(one.units) for one in laws) - len(unread),
            units_unread=tuple(one.unit_id for one in unread),
            units_without=sum(
                not one.requirement_ids and one.reason != UNREAD for one in joined.units
            ),
            notes=joined.notes,
            decided_by=decided_by,
        )


def _list_unread(laws: Sequence[DocumentUnits], joined: Extraction) -> list[RuleUnit]:
    known = {one.unit_id for one in joined.units if one.reason != UNREAD}
    return [unit for unit in list_units(laws) if unit.text.strip() and unit.unit_id not in known]
