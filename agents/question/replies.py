"""Recognizes short fixed phrases: a reply to an open question, thanks, or a greeting. The phrases
are in `replies.toml`. Only unambiguous replies are recognized: the text of a button, and the number
of an option. Thanks and similar phrases are recognized only if no model decides.
"""

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from envelope.conversation import ClarificationReason, ConversationAct, Pause

_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
EXIT = frozenset[str](_LISTS["exit"])
SKIP = frozenset[str](_LISTS["skip"])
ORDINALS = tuple(frozenset[str](names) for names in _LISTS["ordinals"])
_LAST = frozenset[str](_LISTS["last"])
_AROUND_A_CHOICE = frozenset[str](_LISTS["around_a_choice"])
_CHOICE_WORDS = 5
_LONGEST_REPLY = 200
ACTS: dict[ConversationAct, dict[str, frozenset[str]]] = {
    act: {language: frozenset(words) for language, words in _LISTS[act.value].items()}
    for act in (
        ConversationAct.GREETING,
        ConversationAct.THANKS,
        ConversationAct.FAREWELL,
        ConversationAct.ACKNOWLEDGEMENT,
        ConversationAct.CAPABILITIES,
    )
}
# Python does not count combining marks (Arabic vowels, Devanagari vowel signs) as word characters.
_MARKS = "\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0962\u0963"
_WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")


@dataclass(frozen=True, slots=True)
class ClarificationReply:
    """The choice made in a reply; `option` is the 0-based index of the chosen option."""

    kind: Literal["exit", "skip", "option"]
    option: int = 0


def normalise(text: str) -> str:
    """Return a short text in lower case, without punctuation, and with single spaces between
    words.
    """
    read = unicodedata.normalize("NFKC", text[:_LONGEST_REPLY]).casefold()
    # Python converts the Turkish capital İ to i followed by a combining dot.
    read = read.replace("i\N{COMBINING DOT ABOVE}", "i")
    return " ".join(_WORD.findall(read))


def plain_reply(text: str, pause: Pause) -> ClarificationReply | None:
    """Return the unambiguous meaning of `text` (a button, a number, a stop word), or None."""
    if len(text) > _LONGEST_REPLY:
        return _find_option(text, pause.options)
    spoken = normalise(text)
    chosen = _find_option(text, pause.options)
    if chosen is not None:
        return chosen
    if spoken in EXIT:
        return ClarificationReply("exit")
    if spoken in SKIP and pause.options and not pause.is_offer:
        return ClarificationReply("skip")
    position = _find_position(spoken, len(pause.options))
    return None if position is None else ClarificationReply("option", position)


def find_chosen_question(pause: Pause, reply: ClarificationReply) -> str | None:
    """Return the question that a reply chose from several questions, or None if it chose none."""
    if reply.kind == "exit" or pause.reason is not ClarificationReason.MULTIPLE_TOPICS:
        return None
    return pause.options[reply.option]


def read_act(text: str, language: str) -> tuple[ConversationAct, str] | None:
    """Return the act of a turn that consists only of fixed words for it, and the language of the
    words.
    """
    spoken = normalise(text)
    for act, by_language in ACTS.items():
        known = [act for act, words in by_language.items() if spoken in words]
        if known and len(text) <= _LONGEST_REPLY:
            return act, language if language in known else known[0]
    return None


def is_lone_number(text: str) -> bool:
    """Return whether a turn is a single digit, which has no meaning if there are no options to
    choose from.
    """
    spoken = normalise(text)
    return len(spoken) == 1 and spoken.isdecimal()


def _find_option(text: str, options: tuple[str, ...]) -> ClarificationReply | None:
    """Return the option whose label equals the text."""
    typed = " ".join(text.casefold().split())
    for position, option in enumerate(options):
        same = typed == " ".join(option.casefold().split())
        if same or (normalise(text) and normalise(text) == normalise(option)):
            return ClarificationReply("option", position)
    return None


def _find_position(spoken: str, count: int) -> int | None:
    """Return the position stated in a text, such as "2" or "the second one", if the list is long
    enough.
    """
    said = spoken.split()
    words = [word for word in said if word not in _AROUND_A_CHOICE] or said
    if len(words) != 1 or len(said) > _CHOICE_WORDS:
        return None
    position = next((at for at, names in enumerate(ORDINALS) if words[0] in names), None)
    if words[0].isdecimal():
        position = int(words[0]) - 1
    if words[0] in _LAST:
        position = count - 1
    return position if position is not None and 0 <= position < count else None
