"""Reads a reply to an open question of the desk: an option, a skip, an exit, or other words."""

from dataclasses import dataclass
from typing import Literal

from envelope.conversation import Pause
from llm.offline.phrases import AROUND_A_CHOICE, EXIT, LAST, ORDINALS, SKIP
from llm.offline.words import content_words, normalise, stems, words

_SHORT_WORDS = 4
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_COMMAND_WORDS = 5
_EDGES = ("please", "ok", "okay", "oh", "just", "then", "well", "no", "bitte", "por favor")


@dataclass(frozen=True, slots=True)
class ClarificationReply:
    """What a reply asks for; `choice` is an option's label, or the user's own words."""

    kind: Literal["exit", "skip", "option", "words", "new_topic"]
    choice: str = ""


def plain_reply(text: str, pause: Pause) -> ClarificationReply | None:
    """Return what `text` says without doubt (a button, a number, a stop word), else None."""
    spoken = {normalise(text), _bare(text)}
    if not EXIT.isdisjoint(spoken):
        return ClarificationReply("exit")
    option = _option(text, pause.options)
    if option is not None:
        return ClarificationReply("option", option)
    return None if SKIP.isdisjoint(spoken) else ClarificationReply("skip")


def read_reply(text: str, pause: Pause) -> ClarificationReply:
    """Return what `text` most likely says in answer to `pause`."""
    plain = plain_reply(text, pause)
    if plain is not None:
        return plain
    named = _shares_words(text, pause.options)
    if named is not None and len(content_words(text)) <= _SHORT_WORDS:
        return ClarificationReply("option", named)
    related = stems(text) & stems(f"{pause.original_question} {' '.join(pause.options)}")
    if related or (len(content_words(text)) <= _SHORT_WORDS and not _asks(text)):
        return ClarificationReply("words", text)
    return ClarificationReply("new_topic")


def _bare(text: str) -> str:
    spoken = normalise(text)
    for edge in _EDGES:
        spoken = spoken.removeprefix(f"{edge} ").removesuffix(f" {edge}")
    return spoken


def _option(text: str, options: tuple[str, ...]) -> str | None:
    """Return the option that is named in full, or by its position in the list."""
    spoken = normalise(text)
    for option in options:
        label = normalise(option)
        if label and (spoken == label or (len(label) > 2 and f" {label} " in f" {spoken} ")):
            return option
    position = _position(spoken, len(options))
    return options[position] if position is not None and position < len(options) else None


def _position(spoken: str, count: int) -> int | None:
    words = [word for word in spoken.split() if word not in AROUND_A_CHOICE] or spoken.split()
    if len(words) != 1 or len(spoken.split()) > _COMMAND_WORDS:
        return None
    if words[0].isdecimal():
        return int(words[0]) - 1 if int(words[0]) > 0 else None
    if words[0] in LAST:
        return count - 1
    return next((position for position, names in enumerate(ORDINALS) if words[0] in names), None)


def _shares_words(text: str, options: tuple[str, ...]) -> str | None:
    """Return the only option that shares the most words with `text`."""
    shared = [(len(stems(text) & stems(option)), option) for option in options]
    best = max((count for count, _ in shared), default=0)
    winners = [option for count, option in shared if count == best]
    return winners[0] if best and len(winners) == 1 else None


def _asks(text: str) -> bool:
    return text.rstrip().endswith(_QUESTION_MARKS) and len(words(text)) > 2
