"""Makes the question independent of its conversation, and recognizes replies and conversation
acts.
"""

import re
from typing import Literal, Self

from pydantic import BaseModel

from agents.agent import Agent, AgentParts, MayAsk, ProgressStep
from agents.question.replies import (
    EXIT,
    ClarificationReply,
    find_chosen_question,
    is_lone_number,
    normalise,
    plain_reply,
    read_act,
)
from envelope.conversation import (
    AnswerStyle,
    ConversationAct,
    Pause,
    Preferences,
    QuestionTranslation,
    Turn,
    Understanding,
)
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.specialists import ReviewScope
from envelope.texts import primary_of, read_tag
from knowledge.language.corpus_languages import ReadLanguages, choose_foreign
from llm.errors import ModelError, name_failure
from llm.port import Model, find_model
from llm.tasks.question import (
    ESSENCE,
    ClarificationResult,
    ContextType,
    EssenceInputs,
    EssenceOutput,
    list_earlier,
)

SHORT_WORDS = 8
"""Without a model, a turn of at most this many words is searched for together with the previous
question.
"""
_SHORT_CHARACTERS = 14
"""The corresponding limit for scripts that do not put spaces between words."""
MOST_TRANSLATED = 9
"""Maximum number of translations that are searched for: three questions in three languages."""
_LIST_ITEM = re.compile(r"^\s{0,3}\d{1,2}[.)]\s", re.MULTILINE)
DecidedBy = Literal["rules", "combined_call", "own_call"]


class Reads(BaseModel, frozen=True):
    """The last turn and its conversation."""

    text: str
    text_eng: str = ""
    language: str = ""
    history: tuple[Turn, ...] = ()
    history_summary: str = ""
    open_pause: Pause | None = None
    understanding: Understanding | None = None
    review: ReviewScope | None = None
    groups: tuple[str, ...] = ()


class Writes(MayAsk, frozen=True):
    """The standalone form of the question, and its relation to the conversation."""

    canonical_question: str
    context_type: ContextType
    question_parts: tuple[str, ...] = ()
    question_translations: tuple[QuestionTranslation, ...] = ()
    related_history: tuple[str, ...] = ()
    clarification_result: ClarificationResult | None = None
    chosen_place: tuple[str, ...] = ()
    assumption: str = ""
    conversation_act: ConversationAct | None = None
    answer_style: AnswerStyle = ""
    remember_preferences: Preferences | None = None
    language: str = ""
    texts_language: str = ""
    remaining_questions: tuple[str, ...] = ()
    leaves_open: bool = False
    decided_by: DecidedBy
    model_error: str = ""
    model_failure: str = ""


class EssenceAgent(Agent[Reads, Writes]):
    """Rewrites the last turn so that it can be understood alone, or interprets it as a reply to an
    open question.

    A button that was pressed, the number of an option, and a stop word are unambiguous and do not
    need a model. Everything else is decided by the combined call or by a call of this agent. A
    request to rephrase the last answer repeats the question of that answer unchanged. If a model
    recognizes that a turn is about a different topic, an open question stays open. If no model
    decides, the turn is used as typed: a short turn, and one that follows an open question, is
    searched for together with the previous question; thanks and greetings are recognized by fixed
    words.
    """

    role = Role.ESSENCE
    step = ProgressStep.UNDERSTAND
    model_task = ESSENCE
    reads = Reads
    writes = Writes

    def __init__(self, *, model: Model | None, read_languages: ReadLanguages | None = None) -> None:
        self._model = model
        self._read_languages = read_languages

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        combined = parts.settings.combines_understanding
        return cls(
            model=None if combined else find_model(parts.model(ESSENCE.name)),
            read_languages=parts.read_languages,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if reads.review is not None:
            # The channel wrote the text: it names the documents, and refers to no earlier turn.
            whole = reads.text_eng.strip() or reads.text
            return Wrote(
                Writes(canonical_question=whole, context_type="new_topic", decided_by="rules")
            )
        pause = reads.open_pause
        reply = None if pause is None else plain_reply(reads.text, pause)
        if pause is not None and reply is not None:
            return Wrote(_resume(pause, reply, reads.understanding))
        if reads.understanding is not None:
            return Wrote(_read(reads, reads.understanding, "combined_call"))
        if self._model is None:
            return Wrote(_keep_as_typed(reads))
        try:
            inputs = _make_inputs(reads, await self._find_foreign_languages(reads))
            output = (await self._model.ask(ESSENCE, inputs, self.run)).output
        except ModelError as error:
            writes = _keep_as_typed(reads)
            described = f"{type(error).__name__}: {error}"
            note = {"model_error": described, "model_failure": name_failure(error)}
            return Wrote(writes.model_copy(update=note))
        return Wrote(_read(reads, _as_understanding(output), "own_call"))

    async def _find_foreign_languages(self, reads: Reads) -> tuple[str, ...]:
        """Return the languages of the documents into which the question must be translated."""
        if self._read_languages is None:
            return ()
        counts = await self._read_languages(reads.groups)
        return choose_foreign(counts, reads.language)


def _make_inputs(reads: Reads, document_languages: tuple[str, ...]) -> EssenceInputs:
    return EssenceInputs(
        text=reads.text,
        language=reads.language,
        text_eng=reads.text_eng,
        history=reads.history,
        history_summary=reads.history_summary,
        open_pause=_find_question(reads),
        document_languages=document_languages,
    )


def _as_understanding(output: EssenceOutput) -> Understanding:
    act = None if output.act in {None, "exit"} else ConversationAct(str(output.act))
    return Understanding(
        **output.model_dump(exclude={"act"}), act=act, wants_exit=output.act == "exit"
    )


def _find_question(reads: Reads) -> Pause | None:
    """Return the pause that is waiting for an answer, unless it only offers further questions."""
    pause = reads.open_pause
    return None if pause is None or pause.is_offer else pause


def _resume(
    pause: Pause, reply: ClarificationReply, understanding: Understanding | None = None
) -> Writes:
    """Return the original question of the pause with the choice made in the reply.

    `understanding` belongs to a question that the user chose from several.
    """
    if reply.kind == "exit":
        return Writes(
            canonical_question=pause.original_question,
            context_type="clarification",
            clarification_result="exit",
            decided_by="rules",
        )
    chosen = pause.options[reply.option]
    if find_chosen_question(pause, reply) is not None:
        return Writes(
            canonical_question=understanding.canonical_question if understanding else chosen,
            context_type="clarification",
            question_translations=_check_translations(
                understanding.translations if understanding else ()
            ),
            clarification_result="search_again",
            assumption=chosen if reply.kind == "skip" else "",
            remaining_questions=tuple(option for option in pause.options if option != chosen),
            decided_by="rules",
        )
    places = pause.places[reply.option : reply.option + 1]
    return Writes(
        canonical_question=f"{pause.original_question} ({chosen})",
        context_type="clarification",
        related_history=(pause.original_text,),
        clarification_result="search_again",
        chosen_place=places[0] if places else (),
        assumption=chosen if reply.kind == "skip" else "",
        remaining_questions=pause.remaining,
        decided_by="rules",
    )


def _read(reads: Reads, understanding: Understanding, decided_by: DecidedBy) -> Writes:
    """Return the output of the model, limited to what is possible in the conversation."""
    act = _check_act(reads, understanding)
    if act is ConversationAct.REPHRASE:
        return _rephrase(reads, understanding, decided_by)
    question = _find_question(reads)
    if understanding.wants_exit and question is not None:
        return _resume(question, ClarificationReply("exit")).model_copy(
            update={"decided_by": decided_by}
        )
    context_type = _check_context(reads, understanding.context_type)
    is_reply = context_type == "clarification"
    related = list_earlier(reads.history)[:1] if context_type == "follow_up" else ()
    if is_reply and question is not None:
        related = (question.original_text,)
    return Writes(
        canonical_question=understanding.canonical_question.strip() or reads.text,
        context_type=context_type,
        question_parts=understanding.questions
        if len(understanding.questions) > 1 and act is None
        else (),
        question_translations=_check_translations(understanding.translations),
        related_history=related,
        assumption=understanding.assumption if is_reply else "",
        remaining_questions=_keep_offered(reads, act, context_type),
        decided_by=decided_by,
        **_list_changes(understanding, act, is_reply=is_reply),
        **_leave_open(question, is_open=not is_reply and act is not ConversationAct.CORRECTION),
    )


def _check_translations(
    given: tuple[QuestionTranslation, ...],
) -> tuple[QuestionTranslation, ...]:
    """Return the translations that can be searched for, which are not empty and in a known
    language.
    """
    translations = (
        QuestionTranslation(
            language=primary_of(read_tag(translation.language)),
            question=translation.question.strip(),
        )
        for translation in given[:MOST_TRANSLATED]
    )
    return tuple(
        translation for translation in translations if translation.language and translation.question
    )


def _leave_open(question: Pause | None, *, is_open: bool) -> dict[str, object]:
    """Return whether the open question stays open after a turn about something else."""
    return {"leaves_open": True} if question is not None and is_open else {}


def _list_changes(
    understanding: Understanding, act: ConversationAct | None, *, is_reply: bool
) -> dict[str, object]:
    """Return the attributes that are written only for some turns."""
    changes: dict[str, object] = {}
    if is_reply:
        changes["clarification_result"] = "search_again"
    if act is not None:
        changes["conversation_act"] = act
    if understanding.style:
        changes["answer_style"] = understanding.style
    if (chosen := _find_choice(understanding)) is not None:
        changes["remember_preferences"] = chosen
    return {**changes, **_choose_language(understanding.answer_language)}


def _choose_language(wanted: str) -> dict[str, object]:
    """Return the language of the answer, and the language of the fixed texts around it."""
    tag = read_tag(wanted)
    return {"language": primary_of(tag), "texts_language": tag} if tag else {}


def _find_choice(understanding: Understanding) -> Preferences | None:
    """Return preferences that apply to all further answers, or None if the user stated none."""
    if not (understanding.from_now_on or understanding.act is ConversationAct.PREFERENCE):
        return None
    language = read_tag(understanding.answer_language) or None
    chosen = Preferences(
        language=language, explicit=language is not None, style=understanding.style or None
    )
    return None if chosen == Preferences() else chosen


def _check_act(reads: Reads, understanding: Understanding) -> ConversationAct | None:
    """Return the act that the model recognized, if it is possible; "why?" after an answer is a
    question.
    """
    if understanding.wants_exit:
        return ConversationAct.EXIT
    is_answered = _find_last_answer(reads.history) is not None
    if understanding.act is ConversationAct.WHY and is_answered:
        return None
    if understanding.act is ConversationAct.CORRECTION and not reads.history:
        return None
    if understanding.act is ConversationAct.PREFERENCE and _find_choice(understanding) is None:
        return None
    return understanding.act


def _check_context(reads: Reads, context_type: ContextType) -> ContextType:
    """Return the relation that the model recognized, if there is an earlier turn to relate to."""
    if context_type == "clarification" and _find_question(reads) is None:
        context_type = "follow_up"
    if context_type == "follow_up" and not reads.history:
        return "new_topic"
    return context_type


def _keep_offered(
    reads: Reads, act: ConversationAct | None, context_type: ContextType
) -> tuple[str, ...]:
    """Return the questions that remain offered if the turn is about the last answer."""
    pause = reads.open_pause
    if pause is None:
        return ()
    if not pause.is_offer:
        return pause.remaining if context_type == "clarification" else ()
    return pause.options if act is not None or context_type == "follow_up" else ()


def _rephrase(reads: Reads, understanding: Understanding, decided_by: DecidedBy) -> Writes:
    """Return the last question, to be answered again in a different form or language.

    If there is no previous answer, there is nothing to rephrase.
    """
    earlier = list_earlier(reads.history)
    is_answered = _find_last_answer(reads.history) is not None
    declined = bool(reads.history) and reads.history[-1].outcome is not None and not is_answered
    changes = _choose_language(understanding.answer_language)
    wants_language = bool(changes)
    if (chosen := _find_choice(understanding)) is not None:
        changes["remember_preferences"] = chosen
    if not earlier or (declined and not wants_language):
        return Writes(
            canonical_question=reads.text,
            context_type="new_topic",
            conversation_act=ConversationAct.NO_ANSWER_YET,
            decided_by=decided_by,
            **changes,
        )
    if is_answered:
        changes["conversation_act"] = ConversationAct.REPHRASE
    return Writes(
        canonical_question=earlier[0],
        context_type="follow_up",
        question_translations=_check_translations(understanding.translations),
        answer_style=understanding.style,
        remaining_questions=_keep_offered(reads, ConversationAct.REPHRASE, "follow_up"),
        decided_by=decided_by,
        **changes,
        **_leave_open(_find_question(reads), is_open=True),
    )


def _find_last_answer(history: tuple[Turn, ...]) -> Turn | None:
    """Return the last turn if it is an answer that was given and stored by this installation."""
    last = history[-1] if history else None
    if last is None or last.speaker != "assistant" or last.outcome != "answered":
        return None
    return last


def _keep_as_typed(reads: Reads) -> Writes:
    """Return the turn as typed, or its English translation if there is one."""
    act, language = _read_act(reads)
    typed = reads.text_eng.strip() or reads.text
    pause = _find_question(reads)
    earlier = list_earlier(reads.history)
    related: tuple[str, ...] = ()
    if act is None and pause is not None:
        related = (pause.original_text,)
    elif act is None and _is_short(reads.text):
        related = earlier[:1]
    context_type: ContextType = "follow_up" if related else "new_topic"
    changes: dict[str, object] = {"conversation_act": act} if act is not None else {}
    if language and language != reads.language:
        changes["language"] = language
    return Writes(
        canonical_question=typed,
        context_type=context_type,
        related_history=related,
        remaining_questions=_keep_offered(reads, act, context_type),
        decided_by="rules",
        **changes,
    )


def _read_act(reads: Reads) -> tuple[ConversationAct | None, str]:
    """Return the act of a turn that consists only of fixed words, and their language."""
    known = read_act(reads.text, reads.language)
    if known is not None:
        return known
    if normalise(reads.text) in EXIT:
        return ConversationAct.EXIT, ""
    last = reads.history[-1] if reads.history else None
    is_answer = last is not None and last.outcome in {None, "answered"}
    lists = is_answer and last is not None and _LIST_ITEM.search(last.text) is not None
    if is_lone_number(reads.text) and reads.open_pause is None and not lists:
        return ConversationAct.STRAY_CHOICE, ""
    return None, ""


def _is_short(text: str) -> bool:
    words = text.split()
    return len(words) <= SHORT_WORDS and (len(words) > 1 or len(text) <= _SHORT_CHARACTERS)
