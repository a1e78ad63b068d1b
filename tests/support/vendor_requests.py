"""Why OpenAI, Google or Anthropic would refuse a request; docs/limits.md names the sources.

Requests are read by the types of the packages `openai` and `google-genai`, whose fields are those
of the APIs. A server that is only compatible may accept more, never less.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The name of a function: OpenAI, and Anthropic up to 128 characters."""
ANTHROPIC_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
GOOGLE_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
OPENAI_CALL_ID = re.compile(r".{1,40}", re.DOTALL)
ANTHROPIC_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
MOST_OPENAI_TEXTS = 2048
MOST_GOOGLE_TEXTS = 100
MOST_ANTHROPIC_BYTES = 32 * 2**20
ANTHROPIC_FIELDS = frozenset(
    {
        "max_tokens", "messages", "metadata", "model", "service_tier", "stop_sequences", "stream",
        "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
    }
)  # fmt: skip

Problems = Iterator[str]


def find_refusal(path: str, body: Mapping[str, Any]) -> str:
    """Return why the service refuses this request; empty: it does not, or it is not known here."""
    for ending, check in _CHECKS.items():
        if path.partition("?")[0].endswith(ending):
            return next(check(body), "")
    return ""


def _check_openai_chat(body: Mapping[str, Any]) -> Problems:
    yield from _fit(_openai_types()["stream" if body.get("stream") else "chat"], body)
    if not body["messages"]:
        yield "messages: expected at least one"
    yield from _check_openai_calls(body["messages"])
    tools = [tool["function"]["name"] for tool in body.get("tools", ())]
    yield from _check_names(tools, NAME)
    if "tool_choice" in body and not tools:
        yield "tool_choice: only with tools"
    if not 0 <= (body.get("temperature") or 0) <= 2:
        yield "temperature: expected 0 to 2"
    if "max_tokens" in body and "max_completion_tokens" in body:
        yield "max_tokens and max_completion_tokens: expected one of them"
    schema = (body.get("response_format") or {}).get("json_schema")
    if schema is not None:
        yield from _check_names([schema["name"]], NAME)
        yield from _check_strict(schema["schema"])


def _check_openai_calls(messages: Sequence[Mapping[str, Any]]) -> Problems:
    """Each call is answered right after its message, and nothing else is."""
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                yield "messages: a result without its call"
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            yield f"messages: calls without results: {sorted(open_calls)}"
        calls = message.get("tool_calls") or ()
        yield from _check_names([call["function"]["name"] for call in calls], NAME)
        open_calls = {call["id"] for call in calls}
        yield from _check_names(sorted(open_calls), OPENAI_CALL_ID)
        if len(open_calls) != len(calls):
            yield "messages: two calls with one id"
    if open_calls:
        yield f"messages: calls without results: {sorted(open_calls)}"


def _check_strict(schema: object) -> Problems:
    """In a strict schema every object names all properties as required and allows no others."""
    if isinstance(schema, list):
        for item in schema:
            yield from _check_strict(item)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            yield "response_format: additionalProperties has to be false"
        if set(schema.get("required", ())) != set(schema.get("properties", ())):
            yield "response_format: required has to name every property"
    for item in schema.values():
        yield from _check_strict(item)


def _check_openai_vectors(body: Mapping[str, Any]) -> Problems:
    yield from _fit(_openai_types()["embed"], body)
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    if not 0 < len(texts) <= MOST_OPENAI_TEXTS:
        yield f"input: expected 1 to {MOST_OPENAI_TEXTS} texts"
    if not all(texts):
        yield "input: a text is empty"


def _check_google_content(body: Mapping[str, Any]) -> Problems:
    from google.genai import types

    kinds: Mapping[str, Any] = {
        "contents": list[types.Content],
        "systemInstruction": types.Content,
        "generationConfig": types.GenerationConfig,
        "tools": list[types.Tool],
        "toolConfig": types.ToolConfig,
    }
    yield from _fit_fields(kinds, body)
    contents = body.get("contents") or [{}]
    for content in contents:
        parts = content.get("parts") or []
        if not parts or not all(parts):
            yield "contents: expected parts with data"
    declared = [
        functionDeclaration["name"]
        for tool in body.get("tools", ())
        for functionDeclaration in tool["functionDeclarations"]
    ]
    called = [call["name"] for content in contents for call in _list(content, "functionCall")]
    yield from _check_names([*declared, *called], GOOGLE_NAME)
    yield from _check_google_calls(contents)


def _check_google_calls(contents: Sequence[Mapping[str, Any]]) -> Problems:
    for content, following in zip(contents, [*contents[1:], {}], strict=True):
        calls = len(_list(content, "functionCall"))
        if calls and calls != len(_list(following, "functionResponse")):
            yield "contents: expected as many function responses as function calls"


def _list(content: Mapping[str, Any], name: str) -> list[Any]:
    return [part[name] for part in content.get("parts", ()) if name in part]


def _check_google_vectors(body: Mapping[str, Any]) -> Problems:
    requests = body.get("requests") or []
    if not 0 < len(requests) <= MOST_GOOGLE_TEXTS:
        yield f"requests: expected 1 to {MOST_GOOGLE_TEXTS} in one batch"
    for request in requests:
        if not all(part.get("text") for part in request["content"]["parts"]):
            yield "content: expected a text"


def _check_anthropic(body: Mapping[str, Any]) -> Problems:
    if len(json.dumps(body)) > MOST_ANTHROPIC_BYTES:
        yield "request_too_large"
    if unknown := set(body) - ANTHROPIC_FIELDS:
        yield f"{sorted(unknown)}: extra inputs are not permitted"
    if not body.get("model") or body.get("max_tokens", 0) < 1:
        yield "model and max_tokens: required"
    if not 0 <= body.get("temperature", 0) <= 1:
        yield "temperature: expected 0 to 1"
    yield from _check_names([tool["name"] for tool in body.get("tools", ())], ANTHROPIC_NAME)
    if "tool_choice" in body and not body.get("tools"):
        yield "tool_choice: only with tools"
    yield from _check_anthropic_messages(body.get("messages") or [])


def _check_anthropic_messages(messages: Sequence[Mapping[str, Any]]) -> Problems:
    if not messages:
        yield "messages: at least one message is required"
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] not in {"user", "assistant"}:
            yield f"messages: unexpected role {message['role']!r}"
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks or any(
            block["type"] == "text" and not block["text"].strip() for block in blocks
        ):
            yield "messages: text content blocks must be non-empty"
        results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        if results != open_calls:
            yield "messages: expected a tool_result for each tool_use of the message before"
        calls = [block for block in blocks if block["type"] == "tool_use"]
        yield from _check_names([call["name"] for call in calls], ANTHROPIC_NAME)
        open_calls = {call["id"] for call in calls}
        yield from _check_names(sorted(open_calls), ANTHROPIC_CALL_ID)
    if open_calls:
        yield "messages: tool_use without tool_result"


def _check_names(names: Sequence[str], pattern: re.Pattern[str]) -> Problems:
    wrong = [name for name in names if not pattern.fullmatch(name)]
    if wrong:
        yield f"names {wrong}: expected to match {pattern.pattern}"


def _fit_fields(kinds: Mapping[str, Any], body: Mapping[str, Any]) -> Problems:
    if unknown := set(body) - set(kinds):
        yield f"unknown names {sorted(unknown)}"
    for name in set(body) & set(kinds):
        yield from _fit(TypeAdapter(kinds[name]), body[name])


def _fit(adapter: TypeAdapter[Any], value: object) -> Problems:
    """Yield why a value is not of a type; iterables of a type are read to their ends."""
    try:
        _exhaust(adapter.validate_python(value))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        yield f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        return


def _exhaust(value: object) -> None:
    if isinstance(value, Mapping):
        for item in value.values():
            _exhaust(item)
    elif isinstance(value, Iterator):
        for item in value:
            _exhaust(item)


@cache
def _openai_types() -> Mapping[str, TypeAdapter[Any]]:
    from openai.types import EmbeddingCreateParams
    from openai.types.chat.completion_create_params import (
        CompletionCreateParamsNonStreaming,
        CompletionCreateParamsStreaming,
    )

    return {
        "chat": TypeAdapter(CompletionCreateParamsNonStreaming),
        "stream": TypeAdapter(CompletionCreateParamsStreaming),
        "embed": TypeAdapter(EmbeddingCreateParams),
    }


_CHECKS: Mapping[str, Callable[[Mapping[str, Any]], Problems]] = {
    "/chat/completions": _check_openai_chat,
    "/embeddings": _check_openai_vectors,
    ":generateContent": _check_google_content,
    ":streamGenerateContent": _check_google_content,
    ":batchEmbedContents": _check_google_vectors,
    "/messages": _check_anthropic,
}
