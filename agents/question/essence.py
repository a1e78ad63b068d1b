"""Makes the question independent of its conversation and recognises replies and acts."""

import re
from typing import Literal, Protocol, Self

from pydantic import BaseModel

from agents.agent import Agent, AgentParts
from envelope.conversation import (
    AnswerStyle,
    ClarificationOption,
    ClarificationReason,
    ConversationAct,
    Pause,
    Turn,
)
from envelope.outcome import GaveUp, HopOutcome, Wrote
from envelope.role import Role
from envelope.understanding import Understanding
from envelope.ways.specialists import ReviewScope
from envelope.ways.tool_loop import WayName
from llm.errors import ModelError
from llm.offline.dialogue.acts import find_last_answer, read_certain_act, rephrase
from llm.offline.dialogue.open_questions import find_remaining, without_offer
from llm.offline.dialogue.subjects import goes_on, points_back
from llm.offline.essence_rules import resume, stands_alone
from llm.offline.replies import plain_reply
from llm.port import Model
from llm.tasks.essence import TASK, ClarificationResult, ContextType, Inputs, Output

LONGEST_OPTION = 200
"""The number of characters after which a question that is offered as an option is cut."""
MOST_QUESTIONS = 4
_LANGUAGE = re.compile("[a-z]{2,3}")


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
    review: ReviewScope | None = None


class Writes(BaseModel, frozen=True):
    """The question as it can be understood alone, and its relation to the conversation."""

    canonical_question: str
    context_type: ContextType
    related_history: tuple[str, ...] = ()
    clarification_result: ClarificationResult | None = None
    assumption: str = ""
    conversation_act: ConversationAct | None = None
    answer_style: AnswerStyle = ""
    language: str = ""
    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""
    clarification_options: tuple[ClarificationOption, ...] = ()
    remaining_questions: tuple[str, ...] = ()
    decided_by: Literal["rules", "combined_call", "own_call"]
    asked_again: str = ""


class EssenceSettings(Protocol):
    """The settings that this agent needs."""

    @property
    def skip_certain_calls(self) -> bool: ...

    @property
    def way(self) -> WayName: ...


class EssenceAgent(Agent[Reads, Writes]):
    """Makes the last turn understandable alone, or reads it as a reply to an open question.

    Rules recognise a pressed button, an option's number, a stop word and a mere "thanks"; no model
    can misread them. A request to word the last answer differently repeats the question of that
    answer unchanged, also when a model returns another one. Several questions about unrelated
    topics are a reason for a clarification, unless tools can look for all of them; after the answer
    to one of them, `remaining_questions` are those that are still open.

    With `skips_certain`, a first turn that can be understood alone and has an English text needs no
    model either. The result of a combined call is used if it is consistent with the conversation;
    otherwise the agent makes a call for the essence alone, and `asked_again` states the reason.
    """

    role = Role.ESSENCE
    reads = Reads
    writes = Writes

    def __init__(
        self, *, model: Model, skips_certain: bool = False, answers_several: bool = False
    ) -> None:
        self._model = model
        self._skips_certain = skips_certain
        self._answers_several = answers_several

    @classmethod
    def make(cls, parts: AgentParts[EssenceSettings]) -> Self:
        return cls(
            model=parts.model(TASK.name),
            skips_certain=parts.settings.skip_certain_calls,
            answers_several=parts.settings.way is not WayName.SEARCH,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if reads.review is not None:
            # The channel wrote the text: it names the documents, and refers to no earlier turn.
            whole = reads.text_eng.strip() or reads.text
            return Wrote(
                Writes(canonical_question=whole, context_type="new_topic", decided_by="rules")
            )
        inputs = Inputs(**{name: getattr(reads, name) for name in Inputs.model_fields})
        plain = _plainly(inputs)
        if plain is not None:
            return Wrote(_writes(inputs, plain, "rules"))
        offer = inputs.open_pause
        asked = inputs.model_copy(update={"open_pause": without_offer(offer)})
        try:
            writes = self._join_questions(await self._understand(reads, asked))
        except ModelError as error:
            return GaveUp(f"{type(error).__name__}: {error}")
        is_kept = offer is not None and offer.is_offer and _is_about_answer(reads, writes)
        return Wrote(_keep_offer(writes, offer) if offer is not None and is_kept else writes)

    def _join_questions(self, found: Writes) -> Writes:
        """Return `found` without asking which of its questions to answer, if tools answer all."""
        is_asked = found.clarification_reason is ClarificationReason.MULTIPLE_TOPICS
        if not (self._answers_several and is_asked):
            return found
        asked = {
            "needs_clarification", "clarification_reason", "clarification_message",
            "clarification_options",
        }  # fmt: skip
        return Writes.model_validate(found.model_dump(exclude=asked, exclude_unset=True))

    async def _understand(self, reads: Reads, inputs: Inputs) -> Writes:
        if self._skips_certain and _is_certain(reads, inputs):
            return _writes(inputs, _keep_unchanged(inputs), "rules")
        part = reads.understanding
        why = "" if part is None else _find_fault(inputs, part)
        if part is not None and not why:
            return _writes(inputs, _take_part(part), "combined_call")
        found = (await self._model.ask(TASK, inputs)).output
        writes = _writes(inputs, found, "own_call")
        return writes.model_copy(update={"asked_again": why}) if why else writes


def _is_about_answer(reads: Reads, found: Writes) -> bool:
    """Return whether a turn stays with the last answer: its other questions remain offered."""
    if found.conversation_act is not None:
        return True
    leans = points_back(reads.text) or goes_on(reads.text)
    return leans and found.context_type == "follow_up"


def _keep_offer(found: Writes, offer: Pause) -> Writes:
    """Return `found` with the questions that a turn about the last answer leaves open."""
    remaining = find_remaining(offer, found.canonical_question)
    return found.model_copy(update={"remaining_questions": remaining}) if remaining else found


def _plainly(inputs: Inputs) -> Output | None:
    if inputs.open_pause is not None:
        reply = plain_reply(inputs.text, inputs.open_pause)
        if reply is not None:
            return resume(inputs, reply)
    pause = without_offer(inputs.open_pause)
    return read_certain_act(inputs.model_copy(update={"open_pause": pause}))


def _is_certain(reads: Reads, inputs: Inputs) -> bool:
    is_english = bool(reads.text_eng.strip()) and reads.translation_confidence > 0
    return is_english and reads.understanding is None and stands_alone(inputs)


def _keep_unchanged(inputs: Inputs) -> Output:
    return Output(canonical_question=inputs.text_eng, context_type="new_topic")


def _find_fault(inputs: Inputs, part: Understanding) -> str:
    """Return why a combined call's result contradicts the conversation, or an empty text."""
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
    inputs: Inputs, given: Output, decided_by: Literal["rules", "combined_call", "own_call"]
) -> Writes:
    found = _check_act(inputs, given)
    pause, earlier = inputs.open_pause, inputs.earlier
    related = [earlier[number - 1] for number in found.related_turns if 0 < number <= len(earlier)]
    if pause is not None and found.context_type == "clarification":
        related = [pause.original_text, *related]
    changes: dict[str, object] = {}
    if found.act is not None:
        changes["conversation_act"] = found.act
    if found.style:
        changes["answer_style"] = found.style
    if _LANGUAGE.fullmatch(found.answer_language):
        changes["language"] = found.answer_language
    if pause is not None and found.context_type != "new_topic":
        changes["clarification_result"] = found.clarification_result or "search_again"
        changes["assumption"] = found.assumption
        if found.clarification_result != "exit":
            remaining = find_remaining(pause, found.canonical_question)
            changes |= {"remaining_questions": remaining} if remaining else {}
    elif len(found.questions) > 1 and found.act is None:
        changes |= _ask_which(found.questions)
    return Writes(
        canonical_question=found.canonical_question.strip() or inputs.text,
        context_type=found.context_type,
        related_history=tuple(dict.fromkeys(related)),
        decided_by=decided_by,
        **changes,
    )


def _check_act(inputs: Inputs, found: Output) -> Output:
    """Return the output of a model, with an act only if the conversation allows it."""
    if found.act is ConversationAct.REPHRASE:
        return rephrase(inputs, found.style, found.answer_language)
    answered = find_last_answer(inputs.history) is not None
    if found.act is ConversationAct.WHY and inputs.history and answered:
        return found.model_copy(update={"act": None, "context_type": "follow_up"})
    return found


def _ask_which(questions: tuple[str, ...]) -> dict[str, object]:
    return {
        "needs_clarification": True,
        "clarification_reason": ClarificationReason.MULTIPLE_TOPICS,
        "clarification_message": "The message asks several questions about different topics.",
        "clarification_options": tuple(
            ClarificationOption(label=question[:LONGEST_OPTION])
            for question in questions[:MOST_QUESTIONS]
        ),
    }
