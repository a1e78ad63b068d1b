"""Reads the conversation from a request's messages, as OpenAI's clients keep it themselves.

After a clarification a client sends the whole history again, with the reply at its end. The history
is recognised by a digest, under which the conversation with the pause is stored. Every request is a
separate conversation, so that clients with equal histories never share one.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from envelope.conversation import Turn
from gateway.errors import MessageError
from gateway.http.errors import InvalidRequestError
from gateway.http.routes.completion_form import ChatMessage
from gateway.text import clean_text

_CHOICE = re.compile(r"\d{1,2}", re.ASCII)
_OPTION = re.compile(r"(\d{1,2})\. (\S.{0,500})", re.ASCII)
SPEAKERS = frozenset({"user", "assistant"})
LONGEST_TURN = 8_000


@dataclass(frozen=True, slots=True)
class RequestHistory:
    """The turns before, and the present message; `shown` is empty before the first answer."""

    turns: tuple[Turn, ...]
    text: str
    shown: tuple[tuple[str, str], ...]

    def digest(self, key_id: str, *more: tuple[str, str]) -> str:
        """Return the digest of the history that this key's client received, with the next turns."""
        return _digest(key_id, (*self.shown, *more))


def history_of(messages: Sequence[ChatMessage], *, turns: int) -> RequestHistory:
    """Return the history with at most `turns`; raises `InvalidRequestError` or `MessageError`."""
    every = [(message.role, _text(message)) for message in messages]
    joined = _in_turns((role, clean_turn(text)) for role, text in every if role in SPEAKERS)
    before = max((n for n, (role, _) in enumerate(joined, 1) if role == "assistant"), default=0)
    shown, now = tuple(joined[:before]), joined[before:]
    if not now:
        raise InvalidRequestError(
            "expected the last message to be the user's", code="missing_question", param="messages"
        )
    remembered = tuple(
        Turn(
            speaker="user" if role == "user" else "assistant",
            text=text[:LONGEST_TURN],
            meant=_find_option(shown[place - 1][1], text) if role == "user" and place else None,
        )
        for place, (role, text) in enumerate(shown)
        if place >= len(shown) - turns
    )
    return RequestHistory(remembered, now[-1][1], shown)


def _find_option(asked: str, text: str) -> str | None:
    """Return the option that a number chose from the list at the end of a question back."""
    if _CHOICE.fullmatch(text) is None:
        return None
    for line in reversed(asked.split("\n")):
        found = _OPTION.fullmatch(line)
        if found is None:
            return None
        if found[1] == text:
            return found[2]
    return None


def _in_turns(messages: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join successive messages of one speaker; leave out empty ones."""
    turns: list[tuple[str, str]] = []
    for role, text in messages:
        if text and turns and turns[-1][0] == role:
            turns[-1] = (role, f"{turns[-1][1]}\n{text}")
        elif text:
            turns.append((role, text))
    return turns


def _digest(key_id: str, shown: Sequence[tuple[str, str]]) -> str:
    return hashlib.sha256(json.dumps([key_id, *shown]).encode()).hexdigest()


def _text(message: ChatMessage) -> str:
    content = message.content
    if content is None or isinstance(content, str):
        return content or ""
    has_others = any(part.type != "text" for part in content)
    if has_others and message.role == "user":
        raise InvalidRequestError(
            "expected parts of the type 'text', found another type",
            code="unsupported_content",
            param="messages",
        )
    return "\n".join(part.text for part in content if part.type == "text")


def clean_turn(text: str) -> str:
    """Return a text as the desk reads it; an empty one stays empty."""
    try:
        return clean_text(text, longest=len(text))
    except MessageError:
        return ""
