"""The played vendors refuse what the real ones refuse: each limit of docs/limits.md."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.vendor_requests import find_refusal

PAGE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text("utf-8")
CHAT, VECTORS = "/v1/chat/completions", "/v1/embeddings"
CONTENT, BATCH = "/v1beta/models/m:generateContent", "/v1beta/models/m:batchEmbedContents"
MESSAGES = "/v1/messages"
QUESTION = {"role": "user", "content": "What is the fee?"}
PART = {"parts": [{"text": "What is the fee?"}], "role": "user"}
Body = dict[str, Any]


def chat(*messages: Body, **fields: Any) -> Body:
    return {"model": "m", "messages": [QUESTION, *messages], **fields}


def called(name: str = "search", call_id: str = "c1") -> Body:
    function = {"name": name, "arguments": "{}"}
    calls = [{"id": call_id, "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str = "c1") -> Body:
    return {"role": "tool", "tool_call_id": call_id, "content": "150 euros"}


def strict(schema: Body) -> Body:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}
    return chat(response_format=form)


def content(*contents: Body, **fields: Any) -> Body:
    return {"contents": [PART, *contents], **fields}


def google_call(name: str = "search") -> Body:
    return {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]}


GOOGLE_RESULT = {"role": "user", "parts": [{"functionResponse": {"name": "s", "response": {}}}]}


def message(*messages: Body, **fields: Any) -> Body:
    return {"model": "m", "max_tokens": 9, "messages": [QUESTION, *messages], **fields}


def block(kind: str, **fields: Any) -> Body:
    role = "assistant" if kind == "tool_use" else "user"
    return {"role": role, "content": [{"type": kind, **fields}]}


def texts(number: int) -> list[Body]:
    return [{"model": "m", "content": {"parts": [{"text": "a"}]}}] * number


USE = block("tool_use", id="c1", name="search", input={})
OBJECT: Body = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED = OBJECT | {"required": ["a"], "additionalProperties": False}
LIMITS: Mapping[tuple[str, str], tuple[str, Body, Body]] = {
    ("OpenAI", "types"): (CHAT, chat(), chat({"role": "nobody", "content": "a"})),
    ("OpenAI", "function name: `[a-zA-Z0-9_-]`, at most 64"): (
        CHAT,
        chat(called(64 * "s"), result()),
        chat(called("multi.tool"), result()),
    ),
    ("OpenAI", "call id: at most 40 characters"): (
        CHAT,
        chat(called(call_id=40 * "c"), result(40 * "c")),
        chat(called(call_id=41 * "c"), result(41 * "c")),
    ),
    ("OpenAI", "every call must have a result"): (CHAT, chat(called(), result()), chat(called())),
    ("OpenAI", "strict schema: all properties required, no additional properties"): (
        CHAT,
        strict(CLOSED),
        strict(OBJECT),
    ),
    ("OpenAI", "`tool_choice` only with tools"): (CHAT, chat(), chat(tool_choice="auto")),
    ("OpenAI", "temperature 0 to 2"): (CHAT, chat(temperature=2.0), chat(temperature=2.1)),
    ("OpenAI", "1 to 2,048 texts per embedding request, none empty"): (
        VECTORS,
        {"model": "m", "input": ["a"] * 2048},
        {"model": "m", "input": ["a", ""]},
    ),
    ("Google", "types"): (CONTENT, content(), content(generationConfig={"maxTokens": 9})),
    ("Google", "function name: starts with a letter or `_`, at most 64"): (
        CONTENT,
        content(google_call("a.b"), GOOGLE_RESULT),
        content(google_call("3a"), GOOGLE_RESULT),
    ),
    ("Google", "as many results as calls"): (
        CONTENT,
        content(google_call(), GOOGLE_RESULT),
        content(google_call(), PART),
    ),
    ("Google", "1 to 100 texts per embedding request"): (
        BATCH,
        {"requests": texts(100)},
        {"requests": texts(101)},
    ),
    ("Anthropic", "known fields; `model` and `max_tokens` of at least 1"): (
        MESSAGES,
        message(),
        message(max_completion_tokens=9),
    ),
    ("Anthropic", "temperature 0 to 1"): (MESSAGES, message(), message(temperature=1.1)),
    ("Anthropic", "request of at most 32 MB"): (
        MESSAGES,
        message(),
        message(system="a" * (32 * 2**20)),
    ),
    ("Anthropic", "tool name: `[a-zA-Z0-9_-]`, at most 128"): (
        MESSAGES,
        message(tools=[{"name": 128 * "a", "input_schema": {}}]),
        message(tools=[{"name": "a.b", "input_schema": {}}]),
    ),
    ("Anthropic", "call id: `[a-zA-Z0-9_-]`"): (
        MESSAGES,
        message(USE, block("tool_result", tool_use_id="c1", content="a")),
        message(
            block("tool_use", id="f.s:0", name="search", input={}),
            block("tool_result", tool_use_id="f.s:0", content="a"),
        ),
    ),
    ("Anthropic", "no empty text"): (
        MESSAGES,
        message(block("text", text="a")),
        message(block("text", text=" ")),
    ),
    ("Anthropic", "every call must have a result in the next message"): (
        MESSAGES,
        message(USE, block("tool_result", tool_use_id="c1", content="a")),
        message(USE, block("text", text="a")),
    ),
}


@pytest.mark.parametrize(
    ("path", "good", "bad"), LIMITS.values(), ids=[" ".join(key) for key in LIMITS]
)
def test_a_played_vendor_refuses_what_is_beyond_a_limit_and_nothing_else(
    path: str, good: Body, bad: Body
) -> None:
    assert find_refusal(path, good) == ""
    assert find_refusal(path, bad)


def test_every_limit_of_a_vendor_in_the_page_has_a_case() -> None:
    rows = [tuple(map(str.strip, line.split("|")[1:3])) for line in PAGE.splitlines()]
    vendors = {"OpenAI", "Google", "Anthropic"}

    assert {row for row in rows if row and row[0] in vendors} == set(LIMITS)
