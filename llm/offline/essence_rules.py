"""Relates a question to its conversation without a model: by pointing words, length and words."""

import re

from envelope.conversation import ClarificationReason
from llm.offline.dialogue.acts import earlier_questions, read_act, strip_courtesies
from llm.offline.dialogue.several_questions import may_ask_several, split_questions
from llm.offline.dialogue.subjects import (
    add_subject,
    asks_completely,
    goes_on,
    points_back,
    split_subject,
    subject_of,
)
from llm.offline.replies import ClarificationReply, read_reply
from llm.offline.words import content_words, is_small_talk, stems
from llm.tasks.essence import Inputs, Output

_LEANS_ON = 2
_SHORT_WORDS = 4
_ELLIPTIC_WORDS = 2
_POINTING_WORDS = 3
_RUN = re.compile(r"[\w.-]+")
_NUMBERED = re.compile(r"[\w.-]*\d[\w-]*")


def answer(inputs: Inputs) -> Output:
    """Return the last turn as a question, with the earlier turns that it refers to."""
    act = read_act(inputs)
    if act is not None:
        return act
    if inputs.open_pause is not None:
        reply = read_reply(inputs.text, inputs.open_pause)
        if reply.kind != "new_topic":
            return resume(inputs, reply)
        return Output(canonical_question=_question(inputs), context_type="new_topic")
    return _in_conversation(inputs)


def stands_alone(inputs: Inputs) -> bool:
    """Return whether the turn certainly needs nothing said before.

    It is the first of its conversation, answers no question of the desk, points at nothing and asks
    one question, as far as `may_ask_several` can say.
    """
    is_first = not inputs.history and not inputs.history_summary and inputs.open_pause is None
    text = inputs.text_eng or inputs.text
    return is_first and not points_back(text) and not may_ask_several(text)


def resume(inputs: Inputs, reply: ClarificationReply) -> Output:
    """Return the original question of the open pause, merged with what the reply adds."""
    pause = inputs.open_pause
    if pause is None:
        return _in_conversation(inputs)
    if reply.kind == "exit":
        return Output(
            canonical_question=pause.original_question,
            context_type="clarification",
            clarification_result="exit",
        )
    assumed = (*pause.options, pause.original_question)[0] if reply.kind == "skip" else ""
    added = pause.options[0] if reply.kind == "skip" and pause.options else reply.choice
    chosen = pause.reason is ClarificationReason.MULTIPLE_TOPICS and added in pause.options
    return Output(
        canonical_question=added if chosen else add_subject(pause.original_question, added),
        context_type="clarification",
        clarification_result="search_again",
        assumption=assumed,
    )


def _in_conversation(inputs: Inputs) -> Output:
    question = _question(inputs)
    numbered = earlier_questions(inputs)[:_LEANS_ON]
    earlier = tuple(text for _, text in numbered)
    if is_small_talk(question):
        return Output(canonical_question=question, context_type="new_topic")
    separate = split_questions(question)
    if not earlier or not _leans_back(inputs, earlier):
        return Output(canonical_question=question, context_type="new_topic", questions=separate)
    return Output(
        canonical_question=_complete(question, earlier[0]),
        context_type="follow_up",
        related_turns=tuple(number for number, _ in numbered),
        questions=separate,
    )


def _complete(question: str, before: str) -> str:
    """Return a turn that says too little by itself together with what it is about.

    "And 4009?" after "What does error 4029 mean?" asks what error 4009 means; "And the Developer?"
    and "How long is it valid?" name no subject.
    """
    content = content_words(question)
    own, subject = split_subject(before)
    before = before if content_words(own) or not subject else subject
    if len(content) == 1 and goes_on(question) and any(sign.isdigit() for sign in content[0]):
        numbers = _find_numbers(before)
        given = _find_numbers(question)
        if len(numbers) == 1 and len(given) == 1:
            return before.replace(numbers[0], given[0])
    elliptic = (
        len(content) <= _ELLIPTIC_WORDS and goes_on(question) and not asks_completely(question)
    )
    pointing = len(content) <= _POINTING_WORDS and points_back(question)
    if content and not elliptic and not pointing:
        return question
    return add_subject(question, subject_of(before, is_replaced=bool(content)))


def _find_numbers(text: str) -> list[str]:
    runs = (_NUMBERED.match(run) for run in _RUN.findall(text))
    return [found[0] for found in runs if found is not None]


def _leans_back(inputs: Inputs, earlier: tuple[str, ...]) -> bool:
    text = strip_courtesies(inputs.text)
    if len(content_words(text)) <= _SHORT_WORDS or points_back(text) or goes_on(text):
        return True
    answers = tuple(turn.text for turn in inputs.history[-1:] if turn.speaker == "assistant")
    return bool(stems(text) & stems(" ".join((*earlier, *answers))))


def _question(inputs: Inputs) -> str:
    text = inputs.text_eng if inputs.text_eng.strip() else inputs.text
    return strip_courtesies(text).strip()
