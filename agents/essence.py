"""Finds out what is really being asked."""

from typing import Self

from pydantic import BaseModel

from agents.agent import Agent, AgentParts
from envelope.conversation import ClarificationReason, Pause, Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from llm.offline.essence_rules import resume
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


class EssenceAgent(Agent[Reads, Writes]):
    """Make the last turn stand alone, or read it as the answer to the desk's open question.

    A pressed button, an option's number or a stop word needs no model and is never misread by one.
    """

    role = Role.ESSENCE
    reads = Reads
    writes = Writes

    def __init__(self, *, model: Model) -> None:
        self._model = model

    @classmethod
    def make(cls, parts: AgentParts[object]) -> Self:
        return cls(model=parts.model(TASK.name))

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        inputs = Inputs(**{name: getattr(reads, name) for name in Inputs.model_fields})
        return Wrote(_writes(inputs, _plainly(inputs) or await self._ask_model(inputs)))

    async def _ask_model(self, inputs: Inputs) -> Output:
        return (await self._model.ask(TASK, inputs)).output


def _plainly(inputs: Inputs) -> Output | None:
    if inputs.open_pause is None:
        return None
    reply = plain_reply(inputs.text, inputs.open_pause)
    return None if reply is None else resume(inputs, reply)


def _writes(inputs: Inputs, found: Output) -> Writes:
    pause, earlier = inputs.open_pause, inputs.earlier
    related = [earlier[number - 1] for number in found.related_turns if 0 < number <= len(earlier)]
    if pause is not None and found.context_type == "clarification":
        related = [pause.original_text, *related]
    writes = Writes(
        canonical_question=found.canonical_question.strip() or inputs.text,
        context_type=found.context_type,
        related_history=tuple(dict.fromkeys(related)),
    )
    if pause is None or found.context_type == "new_topic":
        return writes
    return writes.model_copy(
        update={
            "clarification_result": found.clarification_result or "search_again",
            "assumption": found.assumption,
        }
    )
