"""The supported part of OpenAI's chat completions: requests and responses."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field, JsonValue

from broker.values import Fields, JournalEntry
from gateway.answer import Answer, write_heading
from gateway.http.context import ID
from gateway.person_tokens import LONGEST_PERSON

_BRACKET = re.compile(r"[\[\]]")
_CITED = re.compile(r"\[(\d{1,4})\]", re.ASCII)
MODEL_CREATED = 1767225600
"""Clients expect a date of every model: that of this interface, 2026-01-01."""


class ContentPart(BaseModel, frozen=True, extra="ignore"):
    """A part of a message; only text can be read."""

    type: str
    text: str = ""


class ChatMessage(BaseModel, frozen=True, extra="ignore"):
    """One message of a history."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[ContentPart], Field(max_length=100)] | None = None


class StreamOptions(BaseModel, frozen=True, extra="ignore"):
    """Options of a stream."""

    include_usage: bool | None = False


class CompletionRequest(BaseModel, frozen=True, extra="ignore"):
    """A request; parameters of a model (temperature, system messages) have no effect.

    Tools of the caller are refused: an answer that ignored them would look as if none was needed.
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
    tools: JsonValue = Field(None, description="refused: Refdesk calls its own tools only")
    tool_choice: JsonValue = Field(None, description="refused, as `tools`; `none` is accepted")
    functions: JsonValue = Field(None, description="refused, as `tools`")
    function_call: JsonValue = Field(None, description="refused, as `tools`; `none` is accepted")
    user: str | None = Field(
        None,
        max_length=LONGEST_PERSON,
        description="id of the person who asks: only they can answer a pause",
    )
    conversation_id: str | None = Field(
        None,
        pattern=ID,
        description="an extension: Refdesk stores the conversation and reads only the last message",
    )


def find_foreign_tools(request: CompletionRequest) -> str | None:
    """Return the parameter by which a caller offers tools; None if it offers none."""
    offered = {
        "tools": request.tools,
        "functions": request.functions,
        "tool_choice": None if request.tool_choice == "none" else request.tool_choice,
        "function_call": None if request.function_call == "none" else request.function_call,
    }
    return next((name for name, value in offered.items() if value not in (None, [])), None)


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
    """An assistant, as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int = MODEL_CREATED
    owned_by: str = "refdesk"


class ModelList(BaseModel):
    """The assistants of a key."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


def content_of(answer: Answer) -> str:
    """Return the text as a plain client shows it: with options, and links to the nearest pages."""
    answer = answer.model_copy(update={"text": _link_pages(answer)})
    listed = {line.strip() for line in answer.text.splitlines()}
    options = [action.label for action in answer.suggested_actions if action.kind == "option"]
    lines = [f"{number}. {label}" for number, label in enumerate(options, 1)]
    missing = [line for line in lines if line not in listed]
    return "\n\n".join([answer.text, "\n".join(missing)]) if missing else answer.text


def _link_pages(answer: Answer) -> str:
    """Return the text with the listed pages as links, where they have one."""
    links = {
        f"- {action.label}": f"- [{_BRACKET.sub('', action.label)}]({action.link})"
        for action in answer.suggested_actions
        if action.kind == "source" and action.link is not None
    }
    return "\n".join(links.get(line, line) for line in answer.text.split("\n"))


def annotations_of(answer: Answer, *, offset: int = 0) -> list[JsonValue]:
    """Return the citations in the text as `url_citation`s; their positions count characters.

    `offset` is the number of characters of the content before the answer's text. Within a passage
    of a document, a number in brackets is the document's own.
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


def _find_citations(answer: Answer) -> Iterator[tuple[int, int, int]]:
    """Yield the number, the start and the end of each citation."""
    if answer.passages is None:
        yield from ((int(one[1]), one.start(), one.end()) for one in _CITED.finditer(answer.text))
        return
    for passage in answer.passages.shown:
        heading = write_heading(passage)
        start = answer.text.find(heading)
        if start >= 0:
            end = start + len(heading)
            yield passage.number, end - len(f"[{passage.number}]"), end


def extensions_of(answer: Answer) -> Fields:
    """Return the attributes that OpenAI's form does not have; its clients ignore them."""
    shown = answer.model_dump(mode="json", exclude_none=True)
    sources = shown.pop("sources")
    shown.pop("text")
    return {"sources": sources, "refdesk": shown}


def usage_of(journal: Sequence[JournalEntry]) -> CompletionUsage:
    """Return the sum of the tokens of all model calls; `offline` uses none."""
    calls = [entry.fields for entry in journal if entry.kind == "model_call"]
    prompt = sum(_whole(call.get("input_tokens")) for call in calls)
    completion = sum(_whole(call.get("output_tokens")) for call in calls)
    return CompletionUsage(
        prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion
    )


def _whole(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0
