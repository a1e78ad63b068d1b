"""Asks the user for all facts that a plan needs in a single request."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Literal, Self

import structlog
from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts, ProgressStep
from agents.swarm.swarm_plan import FieldType, RequiredInfoField, TypedQuestion
from citations.wording import find_asking_fault
from envelope.conversation import InputField, Pause, PauseQuestion, PauseReply, Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from llm.errors import ModelError
from llm.port import Model
from llm.tasks.swarm import READ_FACTS, AskedFact, ReadFactsInputs

log = structlog.get_logger("agents")
_INPUT_TYPES: Mapping[FieldType, str] = {
    FieldType.NUMBER: "number",
    FieldType.DATE: "date",
    FieldType.CHOICE: "choice",
    FieldType.YES_NO: "choice",
}


class CollectedInfo(BaseModel, frozen=True, extra="ignore"):
    """The facts given so far, by field, and the questions about missing facts."""

    values: dict[str, JsonValue] = {}
    questions: tuple[TypedQuestion, ...] = ()


class Reads(BaseModel, frozen=True):
    """The required facts, the user's text, and the values that they entered in a pause.

    If there is an `open_pause`, the message may contain the values of its fields.
    """

    canonical_question: str = ""
    text: str = ""
    open_pause: Pause | None = None
    history: tuple[Turn, ...] = ()
    required_info: dict[str, JsonValue] = {}
    collected_info: dict[str, JsonValue] = {}
    user_inputs: dict[str, JsonValue] = {}


class Writes(BaseModel, frozen=True):
    """The facts given so far and the questions about missing ones, or the values in a message for
    the fields of a pause.
    """

    required_info: dict[str, JsonValue] = {}
    collected_info: dict[str, JsonValue] = {}
    pause_reply: PauseReply | None = None
    reply_reading: Literal["asked", "reply", "other", "unread"] = "unread"
    needs_input: tuple[PauseQuestion, ...] = ()


def gather(
    fields: Mapping[str, Sequence[RequiredInfoField]],
    known: Mapping[str, JsonValue],
    said: Sequence[str] = (),
) -> CollectedInfo:
    """Return the known facts, and a single list of questions about the missing ones.

    `fields` contains the fields of each worker, by worker id; a field that several workers need is
    asked about once. A choice that the user has already named unambiguously in a message (`said`)
    is not asked about.
    """
    values = dict(known)
    asked: dict[str, TypedQuestion] = {}
    for worker_id, own in fields.items():
        for field in own:
            if field.name not in values:
                named = _find_choice(field, said)
                if named is not None:
                    values[field.name] = named
            if field.name in values:
                continue
            if field.required:
                asked[field.name] = _ask_once(asked.get(field.name), field, worker_id)
            elif field.default is not None:
                values[field.name] = field.default
    return CollectedInfo(values=values, questions=tuple(asked.values()))


def _find_choice(field: RequiredInfoField, said: Sequence[str]) -> str | None:
    """Return the choice in the most recent message that names exactly one, or None."""
    if field.type is not FieldType.CHOICE:
        return None
    for text in reversed(said):
        words = f" {' '.join(text.casefold().split())} "
        named = [choice for choice in field.choices if f" {choice.casefold()} " in words]
        if named:
            return named[0] if len(named) == 1 else None
    return None


def _ask_once(
    known: TypedQuestion | None, field: RequiredInfoField, worker_id: str
) -> TypedQuestion:
    if known is not None:
        return known.model_copy(update={"workers": (*known.workers, worker_id)})
    return TypedQuestion(
        id=field.name,
        text=field.question,
        field=field,
        suggestions=field.choices[:5],
        workers=(worker_id,),
    )


def _read_date() -> date:
    return datetime.now(UTC).date()


class GatherAgent(Agent[Reads, Writes]):
    """Asks about each field once, even if several workers need it, and never about facts that the
    user has given.

    A model interprets a reply in the user's own words. If no model is available, rules interpret
    the message.
    """

    role = Role.GATHER
    step = ProgressStep.UNDERSTAND
    model_task = READ_FACTS
    reads = Reads
    writes = Writes

    def __init__(self, model: Model, today: Callable[[], date] = _read_date) -> None:
        self._model = model
        self._today = today

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(parts.model(READ_FACTS.name))

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if reads.open_pause is not None:
            return Wrote(await self._read_reply(reads.text, reads.open_pause))
        fields = _read_fields(reads.required_info)
        said = [turn.text for turn in reads.history if turn.speaker == "user"]
        known = {**reads.collected_info, **reads.user_inputs}
        collected = gather(fields, known, (*said, reads.canonical_question))
        given = "\n".join((*said, reads.canonical_question))
        asked = tuple(
            _ask(question) for question in collected.questions if _may_ask(question, given)
        )
        return Wrote(
            Writes(
                required_info=_dump_fields(fields),
                collected_info=collected.values,
                needs_input=asked,
            )
        )

    async def _read_reply(self, text: str, pause: Pause) -> Writes:
        """Return the values in a message for the open fields of a pause."""
        asked = _list_asked(pause)
        inputs = ReadFactsInputs(
            question=pause.original_question,
            asked=asked,
            reply=text,
            today=self._today().isoformat(),
        )
        try:
            given = (await self._model.ask(READ_FACTS, inputs, self.run)).output
        except ModelError as error:
            log.info("reply_left_to_rules", reason=error.reason)
            return Writes(reply_reading="unread")
        if not given.is_reply:
            return Writes(reply_reading="other")
        names = {fact.field.name for fact in asked}
        values: dict[str, str | int | float | None] = {
            name: None for name in given.declined if name in names
        }
        values |= {fact.name: fact.value for fact in given.facts if fact.name in names}
        reply = PauseReply(pause_id=pause.pause_id, fields=values)
        return Writes(pause_reply=reply, reply_reading="reply")


def _list_asked(pause: Pause) -> tuple[AskedFact, ...]:
    """Return the questions of a pause that are still open."""
    return tuple(
        AskedFact(question=question.text, field=question.field)
        for question in pause.questions
        if question.field is not None and question.field.name not in pause.answers
    )


def _may_ask(question: TypedQuestion, given: str) -> bool:
    """Return whether this question may be asked; if not, the worker begins without the fact."""
    field = question.field
    name = field.name.replace("_", " ")
    words = "\n".join((name, question.text, *field.choices, *question.suggestions))
    fault = find_asking_fault(words, given)
    if fault:
        log.warning("question_withheld", workers=len(question.workers))
    return not fault


def _ask(question: TypedQuestion) -> PauseQuestion:
    field = question.field
    choices = ("yes", "no") if field.type is FieldType.YES_NO else field.choices
    return PauseQuestion(
        id=question.id,
        text=question.text,
        suggestions=question.suggestions or choices[:5],
        field=InputField.model_validate(
            {"name": field.name, "type": _INPUT_TYPES.get(field.type, "text"), "choices": choices}
        ),
    )


def _read_fields(stored: Mapping[str, JsonValue]) -> dict[str, Sequence[RequiredInfoField]]:
    return {
        name: [RequiredInfoField.model_validate(field) for field in fields]
        for name, fields in stored.items()
        if isinstance(fields, list)
    }


def _dump_fields(
    fields: Mapping[str, Sequence[RequiredInfoField]],
) -> dict[str, JsonValue]:
    return {
        name: [field.model_dump(mode="json", exclude_defaults=True) for field in own]
        for name, own in fields.items()
    }
