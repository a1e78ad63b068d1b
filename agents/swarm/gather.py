"""Takes the facts that workers need from the words of the user, and asks for the others at once."""

from collections.abc import Mapping, Sequence
from typing import Self

import structlog
from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts, AgentTexts
from envelope.conversation import InputField, PauseQuestion, Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from llm.answer_checks.wording import find_asking_fault
from swarm.information.extraction import gather
from swarm.information.fields import FieldType, RequiredInfoField, TypedQuestion
from swarm.planning.plan import SwarmPlan
from swarm.way.identifying import find_bare_subject, identify_required
from swarm.workers.worker_type import WorkerRegistry, make_registry

log = structlog.get_logger("agents")
_WORDED = {"aspect": "ask_aspect", "programming_language": "ask_programming_language"}
"""The fixed texts that ask for fields; others are asked in the words of their worker."""
_INPUT_TYPES: Mapping[FieldType, str] = {
    FieldType.NUMBER: "number",
    FieldType.DATE: "date",
    FieldType.CHOICE: "choice",
    FieldType.YES_NO: "choice",
}


class Reads(BaseModel, frozen=True):
    """The plan, the words of the user, and the values that they gave in a pause."""

    canonical_question: str
    language: str = "en"
    history: tuple[Turn, ...] = ()
    swarm_plan: dict[str, JsonValue] = {}
    required_info: dict[str, JsonValue] = {}
    collected_info: dict[str, JsonValue] = {}
    user_inputs: dict[str, JsonValue] = {}


class Writes(BaseModel, frozen=True):
    """The facts so far; the questions for those that are missing."""

    required_info: dict[str, JsonValue]
    collected_info: dict[str, JsonValue]
    needs_input: tuple[PauseQuestion, ...] = ()


class GatherAgent(Agent[Reads, Writes]):
    """Asks a field once, even if several workers need it, and nothing that the user has given."""

    role = Role.GATHER
    reads = Reads
    writes = Writes

    def __init__(self, *, texts: AgentTexts, registry: WorkerRegistry | None = None) -> None:
        self._texts = texts
        self._registry = make_registry() if registry is None else registry

    @classmethod
    def make(cls, parts: AgentParts[object]) -> Self:
        return cls(texts=parts.texts)

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        plan = SwarmPlan.model_validate(reads.swarm_plan)
        fields = identify_required(plan, self._registry, _read_fields(reads.required_info))
        turns = [turn.text for turn in reads.history if turn.speaker == "user"]
        known = {**reads.collected_info, **reads.user_inputs}
        subject = find_bare_subject(plan.question)
        if subject:
            known.setdefault("domain", subject)
        collected = gather(fields, (*turns, reads.canonical_question), known)
        given = "\n".join((*turns, reads.canonical_question, plan.question))
        asked = tuple(
            self._ask(one, reads.language)
            for one in collected.questions
            if self._may_ask(one, given)
        )
        return Wrote(
            Writes(
                required_info=_dump_fields(fields),
                collected_info=collected.values,
                needs_input=asked,
            )
        )

    def _may_ask(self, question: TypedQuestion, given: str) -> bool:
        """Return whether a person may be asked this; its worker begins without the fact if not."""
        field = question.field
        if field.name in _WORDED:
            return True
        name = field.name.replace("_", " ")
        words = "\n".join((name, question.text, *field.choices, *question.suggestions))
        fault = find_asking_fault(words, given)
        if fault:
            log.warning("question_withheld", workers=len(question.workers))
        return not fault

    def _ask(self, question: TypedQuestion, language: str) -> PauseQuestion:
        field = question.field
        key = _WORDED.get(field.name)
        text = question.text if key is None else self._texts.text(key, language)
        choices = ("yes", "no") if field.type is FieldType.YES_NO else field.choices
        return PauseQuestion(
            id=question.id,
            text=text,
            suggestions=question.suggestions,
            field=InputField.model_validate(
                {
                    "name": field.name,
                    "type": _INPUT_TYPES.get(field.type, "text"),
                    "choices": choices,
                }
            ),
        )


def _read_fields(found: Mapping[str, JsonValue]) -> dict[str, Sequence[RequiredInfoField]]:
    return {
        name: [RequiredInfoField.model_validate(one) for one in fields]
        for name, fields in found.items()
        if isinstance(fields, list)
    }


def _dump_fields(
    fields: Mapping[str, Sequence[RequiredInfoField]],
) -> dict[str, JsonValue]:
    return {
        name: [one.model_dump(mode="json", exclude_defaults=True) for one in own]
        for name, own in fields.items()
    }
