"""The supported part of OpenAI's chat completions: requests and responses.

After a clarification, a client sends the whole history again, with the reply at the end. The
history is recognized by a digest, under which the conversation with the pause is stored. Every
request is a separate conversation, so that clients with equal histories never share one.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field, JsonValue

from broker.values import Fields, JournalEntry
from citations.verbatim import as_markdown
from envelope.conversation import Turn
from envelope.json_values import read_whole
from gateway.answer import Answer, write_heading
from gateway.errors import MessageError
from gateway.http.context import ID
from gateway.http.errors import InvalidRequestError
from gateway.person_tokens import LONGEST_PERSON
from gateway.text import clean_text

_BRACKET = re.compile(r"[\[\]]")
_CITED = re.compile(r"\[(\d{1,4})\]", re.ASCII)
MODEL_CREATED = 1767225600
"""The creation date of this interface, 2026-01-01, because clients expect every model to have
one.
"""
_CHOICE = re.compile(r"\d{1,2}", re.ASCII)
_OPTION = re.compile(r"(\d{1,2})\. (\S.{0,500})", re.ASCII)
SPEAKERS = frozenset({"user", "assistant"})
LONGEST_TURN = 8_000


class ContentPart(BaseModel, frozen=True, extra="ignore"):
    """A part of a message. Only text is supported."""

    type: str
    text: str = ""


class ChatMessage(BaseModel, frozen=True, extra="ignore"):
    """A message in a history."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[ContentPart], Field(max_length=100)] | None = None


class StreamOptions(BaseModel, frozen=True, extra="ignore"):
    """Options of a stream."""

    include_usage: bool | None = False


class CompletionRequest(BaseModel, frozen=True, extra="ignore"):
    """A request. Model parameters (temperature, system messages) have no effect.

    Tools of the caller are rejected, because an answer that ignored them would look as if no tool
    had been needed.
    """

    model: str = Field(max_length=64, examples=["default"])
    messages: list[ChatMessage] = Field(
        min_length=1,
        max_length=500,
        examples=[[{"role": "user", "content": "How do I configure routing rules?"}]],
    )
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = 1
    tools: JsonValue = Field(None, description="not supported: Refdesk only calls its own tools")
    tool_choice: JsonValue = Field(None, description="not supported, except `none`")
    functions: JsonValue = Field(None, description="not supported")
    function_call: JsonValue = Field(None, description="not supported, except `none`")
    user: str | None = Field(
        None,
        max_length=LONGEST_PERSON,
        description="id of the user; only this user can answer a pause",
    )
    conversation_id: str | None = Field(
        None,
        pattern=ID,
        description="extension of Refdesk: Refdesk stores the conversation, and only the last "
        "message is read",
    )


class CompletionUsage(BaseModel):
    """The tokens of all model calls for the answer."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class Completion(BaseModel, extra="allow"):
    """An answer; `sources` and `refdesk` are extensions."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[dict[str, JsonValue]]
    usage: CompletionUsage


class ModelCard(BaseModel):
    """An assistant, presented as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int = MODEL_CREATED
    owned_by: str = "refdesk"


class ModelList(BaseModel):
    """The assistants that a key can use."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


@dataclass(frozen=True, slots=True)
class RequestHistory:
    """The previous turns, and the current message; `shown` is empty before the first answer."""

    turns: tuple[Turn, ...]
    text: str
    shown: tuple[tuple[str, str], ...]

    def digest(self, key_id: str, *more: tuple[str, str]) -> str:
        """Return the digest of the history, including the next turns, that this key's client
        received.
        """
        return _digest(key_id, (*self.shown, *more))


def find_foreign_tools(request: CompletionRequest) -> str | None:
    """Return the parameter with which a caller offers tools, or None if it offers none."""
    offered = {
        "tools": request.tools,
        "functions": request.functions,
        "tool_choice": None if request.tool_choice == "none" else request.tool_choice,
        "function_call": None if request.function_call == "none" else request.function_call,
    }
    return next((name for name, value in offered.items() if value not in (None, [])), None)


def content_of(answer: Answer) -> str:
    """Return the text as a plain client shows it, including options and links to the closest
    pages.
    """
    answer = answer.model_copy(update={"text": _link_pages(answer)})
    listed = {line.strip() for line in answer.text.splitlines()}
    options = [action.label for action in answer.suggested_actions if action.kind == "option"]
    lines = [f"{number}. {as_markdown(label)}" for number, label in enumerate(options, 1)]
    missing = [line for line in lines if line not in listed]
    return "\n\n".join([answer.text, "\n".join(missing)]) if missing else answer.text


def annotations_of(answer: Answer, *, offset: int = 0) -> list[JsonValue]:
    """Return the citations in the text as `url_citation`s, whose positions count characters.

    `offset` is the number of characters in the content before the answer's text. Within a passage
    of a document, a number in brackets belongs to the document.
    """
    sources = {source.number: source for source in answer.sources}
    return [
        {
            "type": "url_citation",
            "url_citation": {
                "start_index": offset + start,
                "end_index": offset + end,
                "title": source.title,
                "url": source.place,
            },
        }
        for number, start, end in _find_citations(answer)
        if (source := sources.get(number)) is not None
    ]


def extensions_of(answer: Answer) -> Fields:
    """Return the attributes that are not part of OpenAI's format, which its clients ignore."""
    shown = answer.model_dump(mode="json", exclude_none=True)
    sources = shown.pop("sources")
    shown.pop("text")
    return {"sources": sources, "refdesk": shown}


def usage_of(journal: Sequence[JournalEntry]) -> CompletionUsage:
    """Return the total tokens of all model calls."""
    calls = [entry.fields for entry in journal if entry.kind == "model_call"]
    prompt = sum(read_whole(call.get("input_tokens")) for call in calls)
    completion = sum(read_whole(call.get("output_tokens")) for call in calls)
    return CompletionUsage(
        prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion
    )


def history_of(messages: Sequence[ChatMessage], *, turns: int) -> RequestHistory:
    """Return the history with at most `turns`; raises `InvalidRequestError` or `MessageError`."""
    every = [(message.role, _text(message)) for message in messages]
    joined = _in_turns((role, clean_turn(text)) for role, text in every if role in SPEAKERS)
    before = max((n for n, (role, _) in enumerate(joined, 1) if role == "assistant"), default=0)
    shown, now = tuple(joined[:before]), joined[before:]
    if not now:
        raise InvalidRequestError(
            "the last message must have the role `user`", code="missing_question", param="messages"
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


def clean_turn(text: str) -> str:
    """Return text cleaned like a message; empty text stays empty."""
    try:
        return clean_text(text, longest=len(text))
    except MessageError:
        return ""


def _link_pages(answer: Answer) -> str:
    """Return the text with the listed pages as links, if they have a link."""
    links = {
        f"- {as_markdown(action.label)}": (
            f"- [{as_markdown(_BRACKET.sub('', action.label))}]({action.link})"
        )
        for action in answer.suggested_actions
        if action.kind == "source" and action.link is not None
    }
    return "\n".join(links.get(line, line) for line in answer.text.split("\n"))


def _find_citations(answer: Answer) -> Iterator[tuple[int, int, int]]:
    """Yield the number, the start and the end of each citation."""
    if answer.passages is None:
        yield from (
            (int(match[1]), match.start(), match.end()) for match in _CITED.finditer(answer.text)
        )
        return
    for passage in answer.passages.shown:
        heading = write_heading(passage)
        start = answer.text.find(heading)
        if start >= 0:
            end = start + len(heading)
            yield passage.number, end - len(f"[{passage.number}]"), end


def _find_option(asked: str, text: str) -> str | None:
    """Return the option that a number selects from the list at the end of a clarifying question, or
    None.
    """
    if _CHOICE.fullmatch(text) is None:
        return None
    for line in reversed(asked.split("\n")):
        match = _OPTION.fullmatch(line)
        if match is None:
            return None
        if match[1] == text:
            return match[2]
    return None


def _in_turns(messages: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join consecutive messages of the same speaker, and omit empty ones."""
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
            "only parts of the type 'text' are supported",
            code="unsupported_content",
            param="messages",
        )
    return "\n".join(part.text for part in content if part.type == "text")
