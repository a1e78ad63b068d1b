"""Recognises turns that ask nothing new of the documents: thanks, "shorter", "why?", "no, I meant".

`read_certain_act` returns only what whole turns say without doubt; no model is needed for them.
`read_act` also reads requests among other words, as a deterministic model does.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from envelope.conversation import (
    REFUSALS,
    AnswerStyle,
    ClarificationReason,
    ConversationAct,
    Turn,
)
from llm.offline.dialogue.several_questions import is_frame
from llm.offline.dialogue.subjects import BETWEEN_SUBJECTS, add_subject, split_subject
from llm.offline.phrases import (
    AROUND_A_CHOICE,
    DETERMINERS,
    EXIT,
    FUNCTION_WORDS,
    LAST,
    ORDINALS,
    POINTING,
)
from llm.offline.words import content_words, normalise, words
from llm.tasks.essence import Inputs, Output

_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_COURTESIES = (
    ConversationAct.GREETING,
    ConversationAct.THANKS,
    ConversationAct.FAREWELL,
    ConversationAct.ACKNOWLEDGEMENT,
    ConversationAct.CAPABILITIES,
)
_STYLES: tuple[AnswerStyle, ...] = ("shorter", "simpler", "longer", "quoted")
_LANGUAGES: dict[str, frozenset[str]] = {
    code: frozenset(names) for code, names in _LISTS["languages"].items()
}
_AROUND = frozenset[str](_LISTS["around"]["words"].split()) | FUNCTION_WORDS | POINTING
_CORRECTIONS = sorted(
    (phrase for phrases in _LISTS["correction"].values() for phrase in phrases),
    key=len,
    reverse=True,
)
_MOST_WORDS = 10
_CHOICES = 9
_COURTESY_WORDS = 5
_LEANS_ON = 2
_POINTING_WORDS = 1
_PARTICLES = frozenset(["down", "in", "off", "on", "out", "over", "to", "up"])
_OBJECT_LAST = frozenset(["en", "es", "fr", "it", "pt", "ru", "uk"])
"""Languages whose short questions end with what they are about."""
_AFTER_COURTESY = " ,.!;:-\u2013\u2014\u3002\uff0c\uff01\u3001\u060c\u0964\n"
_LIST_ITEM = re.compile(r"^\s{0,3}\d{1,2}[.)]\s", re.MULTILINE)
_WORDS = re.compile(r"\w+")
_ASKED_BACK = frozenset(ClarificationReason) - REFUSALS
_EXPLAINED = _ASKED_BACK | {
    ClarificationReason.OUT_OF_SCOPE,
    ClarificationReason.INSUFFICIENT_CONTEXT,
    ClarificationReason.INTERNAL_FAULT,
}


def _by_phrase(name: str) -> dict[str, tuple[str, ...]]:
    """Return each phrase of a list with the languages that have it."""
    found: dict[str, tuple[str, ...]] = {}
    for language, phrases in _LISTS[name].items():
        for phrase in phrases:
            found[phrase] = (*found.get(phrase, ()), language)
    return found


_COURTESY_PHRASES: Mapping[ConversationAct, Mapping[str, tuple[str, ...]]] = {
    act: _by_phrase(act.value) for act in _COURTESIES
}
_WHY = _by_phrase("why")
_STYLE_PHRASES: Mapping[AnswerStyle, Mapping[str, tuple[str, ...]]] = {
    style: _by_phrase(style) for style in _STYLES
}


def read_certain_act(inputs: Inputs) -> Output | None:
    """Return the act of a turn that is nothing but a courtesy, a "why?" or a number, else None."""
    spoken = normalise(inputs.text)
    for act, phrases in _COURTESY_PHRASES.items():
        if spoken in phrases:
            return _courtesy(inputs, act, phrases[spoken])
    if spoken in EXIT and inputs.open_pause is None:
        return _act(inputs, ConversationAct.ACKNOWLEDGEMENT)
    if spoken in _WHY and not inputs.history:
        return _act(inputs, ConversationAct.NO_ANSWER_YET)
    if spoken in _WHY and _may_explain(inputs.history):
        return _act(inputs, ConversationAct.WHY)
    if inputs.open_pause is None and _is_stray_choice(spoken, inputs.history):
        return _act(inputs, ConversationAct.STRAY_CHOICE)
    return None


def read_act(inputs: Inputs) -> Output | None:
    """Return what rules recognise of a turn in its conversation; None for a question."""
    certain = read_certain_act(inputs)
    if certain is not None:
        return certain
    if inputs.open_pause is not None:
        return None
    style, language = _style(inputs.text), _language(inputs.text)
    if style or language:
        return rephrase(inputs, style, language)
    meant = _meant(inputs.text)
    return correct(inputs, meant) if meant else None


def rephrase(inputs: Inputs, style: AnswerStyle, language: str) -> Output:
    """Return the last question again, to be answered in another form or another language.

    Without a question before, there is nothing to say differently.
    """
    earlier = earlier_questions(inputs)
    is_answered = find_last_answer(inputs.history) is not None
    declined = bool(inputs.history) and inputs.history[-1].outcome is not None and not is_answered
    if not earlier or (declined and not language):
        return _act(inputs, ConversationAct.NO_ANSWER_YET, language)
    return Output(
        canonical_question=earlier[0][1],
        context_type="follow_up",
        related_turns=_find_related(earlier),
        act=ConversationAct.REPHRASE if is_answered else None,
        style=style,
        answer_language=language,
    )


def _find_related(earlier: list[tuple[int, str]]) -> tuple[int, ...]:
    """Return the turns that the last question leaned on, so that it is searched for as before."""
    _, subject = split_subject(earlier[0][1])
    return tuple(number for number, _ in earlier[1 : 1 + _LEANS_ON]) if subject else ()


def correct(inputs: Inputs, meant: str) -> Output:
    """Return the last question about the intended object."""
    earlier = earlier_questions(inputs)
    if not earlier:
        return Output(canonical_question=meant, context_type="new_topic")
    number, before = earlier[0]
    return Output(
        canonical_question=_replace_object(before, meant, inputs.language),
        context_type="follow_up",
        related_turns=(number,),
        act=ConversationAct.CORRECTION,
    )


def earlier_questions(inputs: Inputs) -> list[tuple[int, str]]:
    """Return the user's earlier turns that asked something, newest first, with their numbers.

    A question that was refused as out of scope is none: nothing can be about it.
    """
    refused = _find_refused(inputs.history)
    return [
        (number, strip_courtesies(text))
        for number, text in enumerate(inputs.earlier, start=1)
        if number not in refused and not is_courtesy(text)
    ]


def strip_courtesies(text: str) -> str:
    """Return a text without the greeting or thanks before its question."""
    ends = [found.end() for found in _WORDS.finditer(text)]
    spoken = normalise(text).split()
    if len(ends) != len(spoken):
        return text
    for count in range(min(_COURTESY_WORDS, len(spoken) - 1), 0, -1):
        rest = text[ends[count - 1] :].lstrip(_AFTER_COURTESY)
        is_apart = text[ends[count - 1]] in _AFTER_COURTESY.strip()
        if is_apart and rest and is_courtesy(" ".join(spoken[:count])):
            return strip_courtesies(rest)
    return text


def is_courtesy(text: str) -> bool:
    """Return whether a whole turn is a greeting, thanks or a question about the assistant."""
    spoken = normalise(text)
    return any(spoken in phrases for phrases in _COURTESY_PHRASES.values())


def _find_refused(history: tuple[Turn, ...]) -> frozenset[int]:
    """Return the numbers of the user's turns, 1 the newest, that were refused as out of scope."""
    refused: set[int] = set()
    number, after = 0, None
    for turn in reversed(history):
        if turn.speaker == "user":
            number += 1
            if after == ClarificationReason.OUT_OF_SCOPE:
                refused.add(number)
        after = turn.reason if turn.speaker == "assistant" else None
    return frozenset(refused)


def find_last_answer(history: tuple[Turn, ...]) -> Turn | None:
    """Return the last turn if it is an answer that this installation gave and stored."""
    last = history[-1] if history else None
    if last is None or last.speaker != "assistant" or last.outcome != "answered":
        return None
    return last


def _act(inputs: Inputs, act: ConversationAct, language: str = "") -> Output:
    return Output(
        canonical_question=inputs.text,
        context_type="new_topic",
        act=act,
        answer_language=language,
    )


def _courtesy(inputs: Inputs, act: ConversationAct, languages: tuple[str, ...]) -> Output:
    """Return a courtesy; its phrase decides the language where the detected one lacks it."""
    known = inputs.language in languages
    return _act(inputs, act, "" if known else languages[0])


def _may_explain(history: tuple[Turn, ...]) -> bool:
    last = history[-1]
    return last.speaker == "assistant" and last.reason in _EXPLAINED


def _is_stray_choice(spoken: str, history: tuple[Turn, ...]) -> bool:
    """Return whether a turn is the number of an option, and nothing has options."""
    used = [word for word in spoken.split() if word not in AROUND_A_CHOICE] or spoken.split()
    if len(used) != 1 or len(spoken.split()) > _CHOICES:
        return False
    named = used[0] in LAST or any(used[0] in names for names in ORDINALS)
    number = used[0].isdecimal() and 0 < int(used[0][:3]) <= _CHOICES and len(used[0]) == 1
    last = history[-1] if history else None
    lists = last is not None and last.outcome == "answered" and _LIST_ITEM.search(last.text)
    return (named or number) and not lists


def _style(text: str) -> AnswerStyle:
    """Return the form that a turn asks for, among words that ask for nothing themselves."""
    spoken = normalise(text)
    for style, phrases in _STYLE_PHRASES.items():
        if spoken in phrases or _asks_only_for(spoken, phrases):
            return style
    return ""


def _language(text: str) -> str:
    """Return the language that a turn asks the answer to be in, ISO 639-1, or nothing."""
    spoken = normalise(text)
    for code, names in _LANGUAGES.items():
        if spoken in names or _asks_only_for(spoken, names):
            return code
    return ""


def _asks_only_for(spoken: str, wanted: Iterable[str]) -> bool:
    used = spoken.split()
    if len(used) > _MOST_WORDS:
        return False
    named = set(wanted)
    rest = {word for word in used if word not in _AROUND}
    asked = rest or {word for word in used if word in named}
    return bool(asked) and asked <= named and not named.isdisjoint(used)


def _meant(text: str) -> str:
    """Return what follows the opening of a correction, as it was typed."""
    spoken = normalise(text)
    opening = next((one for one in _CORRECTIONS if spoken.startswith(f"{one} ")), None)
    if opening is None:
        return ""
    ends = [found.end() for found in _WORDS.finditer(text)]
    count = len(opening.split())
    return text[ends[count - 1] :].strip(" ,.:;!\t\n") if len(ends) > count else ""


def _replace_object(question: str, meant: str, language: str) -> str:
    """Return `question` about the intended object: it replaces the last object, or is added."""
    marks = ("?", "\uff1f", "\u061f")
    if meant.endswith(marks):
        return meant
    own, subject = split_subject(question)
    if subject and len(content_words(own)) <= _POINTING_WORDS:
        # "Who can do that? (How do I create a webhook?)" is about the object of its subject.
        newest = subject.rpartition(BETWEEN_SUBJECTS)[2]
        return f"{own} ({_replace_object(newest, meant, language)})"
    used = [(found.start(), found[0].casefold()) for found in _WORDS.finditer(own)]
    frame = next((count for count in (3, 2) if is_frame([w for _, w in used[:count]])), 0)
    starts = [start for start, word in used if word in DETERMINERS]
    end = "?" if own.endswith("?") else ""
    first = words(meant)[:1]
    if starts and first and first[0] in DETERMINERS:
        return f"{own[: starts[-1]]}{meant}{end}"
    if frame and len(used) > frame + 1:
        # "How do I" and a verb; what follows, after its particle, is the object.
        particle = used[frame + 1][1] in _PARTICLES
        at = frame + 1 + particle
        return f"{own[: used[at][0]]}{meant}{end}" if len(used) > at else f"{own} {meant}"
    if language in _OBJECT_LAST and not starts and len(content_words(own)) > 1:
        return f"{own[: used[-1][0]]}{meant}{end}"
    return add_subject(meant, question)
