"""Finds what is being asked without a model: by pointing words, short turns and shared words."""

import re

from llm.offline.phrases import OPENERS, POINTING, POINTING_SIGNS
from llm.offline.replies import ClarificationReply, read_reply
from llm.offline.words import content_words, is_small_talk, normalise, stems, words
from llm.tasks.essence import Inputs, Output

_LEANS_ON = 2
_SHORT_WORDS = 4
_ELLIPTIC_WORDS = 2
_JOINED = " - "
_RUN = re.compile(r"[\w.-]+")
_NUMBERED = re.compile(r"[\w.-]*\d[\w-]*")


def answer(inputs: Inputs) -> Output:
    """Return the last turn as the question, with the earlier turns it leans on."""
    if inputs.open_pause is not None:
        reply = read_reply(inputs.text, inputs.open_pause)
        if reply.kind != "new_topic":
            return resume(inputs, reply)
        return Output(canonical_question=_question(inputs), context_type="new_topic")
    return _in_conversation(inputs)


def stands_alone(inputs: Inputs) -> bool:
    """Return whether the turn certainly needs nothing said before.

    It is the first of its conversation, answers no question of the desk, and points at nothing.
    """
    is_first = not inputs.history and not inputs.history_summary and inputs.open_pause is None
    return is_first and not points_back(inputs.text_eng or inputs.text)


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
    return Output(
        canonical_question=_merge(pause.original_question, added),
        context_type="clarification",
        clarification_result="search_again",
        assumption=assumed,
    )


def _in_conversation(inputs: Inputs) -> Output:
    question = _question(inputs)
    earlier = inputs.earlier[:_LEANS_ON]
    if is_small_talk(question):
        return Output(canonical_question=question, context_type="new_topic")
    if not earlier or not _leans_back(inputs, earlier):
        return Output(canonical_question=question, context_type="new_topic")
    return Output(
        canonical_question=_complete(question, earlier[0]),
        context_type="follow_up",
        related_turns=tuple(range(1, len(earlier) + 1)),
    )


def _complete(question: str, before: str) -> str:
    """Return a turn that says too little by itself together with the turn it goes on from.

    "And 4009?" after "What does error 4029 mean?" asks what error 4009 means; "And the Developer?"
    names no question of its own either.
    """
    said = content_words(question)
    if not said:
        return _merge(before, question)
    if len(said) > _ELLIPTIC_WORDS or not _opens_on(question):
        return question
    if len(said) == 1 and any(sign.isdigit() for sign in said[0]):
        numbers = _find_numbers(before)
        given = _find_numbers(question)
        if len(numbers) == 1 and len(given) == 1:
            return before.replace(numbers[0], given[0])
    # A third turn goes on from the question itself, not from how the second went on.
    return _merge(before.split(_JOINED)[0], question)


def _find_numbers(text: str) -> list[str]:
    runs = (_NUMBERED.match(run) for run in _RUN.findall(text))
    return [found[0] for found in runs if found is not None]


def _opens_on(text: str) -> bool:
    return normalise(text).startswith(tuple(f"{opener} " for opener in OPENERS))


def _leans_back(inputs: Inputs, earlier: tuple[str, ...]) -> bool:
    text = inputs.text
    if len(content_words(text)) <= _SHORT_WORDS or points_back(text) or _opens_on(text):
        return True
    answers = tuple(turn.text for turn in inputs.history[-1:] if turn.speaker == "assistant")
    return bool(stems(text) & stems(" ".join((*earlier, *answers))))


def points_back(text: str) -> bool:
    """Tell whether a word of `text` refers to something said before."""
    return not POINTING.isdisjoint(words(text)) or any(sign in text for sign in POINTING_SIGNS)


def names_no_subject(text: str) -> bool:
    """Tell whether `text` points at something and says next to nothing of it: "How do I do it?"."""
    return points_back(text) and len(content_words(text)) <= 1


def _question(inputs: Inputs) -> str:
    return (inputs.text_eng if inputs.text_eng.strip() else inputs.text).strip()


def _merge(question: str, added: str) -> str:
    if not added or normalise(added) == normalise(question):
        return question
    return f"{question.strip()}{_JOINED}{added.strip()}" if question.strip() else added.strip()
