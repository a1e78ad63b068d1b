"""Finds out what is really being asked."""

from typing import Literal, Protocol, Self

from pydantic import BaseModel

from agents.agent import Agent, AgentParts
from envelope.conversation import ClarificationReason, Pause, Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.understanding import Understanding
from llm.offline.essence_rules import resume, stands_alone
from llm.offline.replies import plain_reply
from llm.port import Model
from llm.tasks.essence import TASK, ClarificationResult, ContextType, Inputs, Output


class Reads(BaseModel, frozen=True):
    """The last turn and its conversation."""

    text: str
    text_eng: str = ""
    language: str = ""
    history: tuple[Turn, ...] = ()
    history_summary: str = ""
    open_pause: Pause | None = None
    translation_confidence: float = 0.0
    understanding: Understanding | None = None


class Writes(BaseModel, frozen=True):
    """The question made to stand alone, and how it relates to the conversation."""

    canonical_question: str
    context_type: ContextType
    related_history: tuple[str, ...] = ()
    clarification_result: ClarificationResult | None = None
    assumption: str = ""
    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""
    decided_by: Literal["rules", "combined_call", "own_call"]
    asked_again: str = ""


class EssenceSettings(Protocol):
    """The settings that this agent needs."""

    @property
    def skip_certain_calls(self) -> bool: ...


class EssenceAgent(Agent[Reads, Writes]):
    """Make the last turn stand alone, or read it as the answer to the desk's open question.

    A pressed button, an option's number or a stop word needs no model and is never misread by one.
    With `skips_certain` neither does a first turn that stands alone and is in English by now. A
    combined call's part is used where it makes sense; otherwise the agent asks for the essence
    alone, and `asked_again` says why.
    """

    role = Role.ESSENCE
    reads = Reads
    writes = Writes

    def __init__(self, *, model: Model, skips_certain: bool = False) -> None:
        self._model = model
        self._skips_certain = skips_certain

    @classmethod
    def make(cls, parts: AgentParts[EssenceSettings]) -> Self:
        return cls(model=parts.model(TASK.name), skips_certain=parts.settings.skip_certain_calls)

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        inputs = Inputs(**{name: getattr(reads, name) for name in Inputs.model_fields})
        plain = _plainly(inputs)
        if plain is not None:
            return Wrote(_writes(inputs, plain, "rules"))
        if self._skips_certain and _is_certain(reads, inputs):
            return Wrote(_writes(inputs, _keep_unchanged(inputs), "rules"))
        part = reads.understanding
        why = "" if part is None else _find_fault(inputs, part)
        if part is not None and not why:
            return Wrote(_writes(inputs, _take_part(part), "combined_call"))
        found = (await self._model.ask(TASK, inputs)).output
        writes = _writes(inputs, found, "own_call")
        return Wrote(writes.model_copy(update={"asked_again": why}) if why else writes)


def _plainly(inputs: Inputs) -> Output | None:
    if inputs.open_pause is None:
        return None
    reply = plain_reply(inputs.text, inputs.open_pause)
    return None if reply is None else resume(inputs, reply)


def _is_certain(reads: Reads, inputs: Inputs) -> bool:
    is_english = bool(reads.text_eng.strip()) and reads.translation_confidence > 0
    return is_english and reads.understanding is None and stands_alone(inputs)


def _keep_unchanged(inputs: Inputs) -> Output:
    return Output(canonical_question=inputs.text_eng, context_type="new_topic")


def _find_fault(inputs: Inputs, part: Understanding) -> str:
    """Return why the part of a combined call makes no sense for this turn, or an empty text."""
    if part.context_type == "follow_up" and not inputs.history:
        return "a follow-up of nothing"
    if part.context_type == "clarification" and inputs.open_pause is None:
        return "a reply to no question of the desk"
    if part.context_type == "follow_up" and not part.related_turns:
        return "a follow-up that names no earlier turn"
    if any(not 0 < number <= len(inputs.earlier) for number in part.related_turns):
        return "an earlier turn that does not exist"
    return ""


def _take_part(part: Understanding) -> Output:
    return Output.model_validate(part.model_dump(include=set(Output.model_fields)))


def _writes(
    inputs: Inputs, found: Output, decided_by: Literal["rules", "combined_call", "own_call"]
) -> Writes:
    pause, earlier = inputs.open_pause, inputs.earlier
    related = [earlier[number - 1] for number in found.related_turns if 0 < number <= len(earlier)]
    if pause is not None and found.context_type == "clarification":
        related = [pause.original_text, *related]
    writes = Writes(
        canonical_question=found.canonical_question.strip() or inputs.text,
        context_type=found.context_type,
        related_history=tuple(dict.fromkeys(related)),
        decided_by=decided_by,
    )
    if pause is None or found.context_type == "new_topic":
        return writes
    return writes.model_copy(
        update={
            "clarification_result": found.clarification_result or "search_again",
            "assumption": found.assumption,
        }
    )
