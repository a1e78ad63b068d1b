"""Anthropic's models over their Messages API.

The vendor's package would add 18 MB and seconds to the start for one HTTP request, so the request
is made with the HTTP client that the other vendors' packages use.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, NoReturn

import httpx2

from llm.errors import UnknownModel
from llm.port import (
    ModelMessage,
    ToolChoice,
    ToolConversation,
    ToolMessage,
    Usage,
    UserMessage,
)
from llm.vendors.catalogue import Vendor, VendorAccess
from llm.vendors.guard import (
    AddressGuard,
    FoundCall,
    iterate_events,
    parse_events,
    pick,
    read_calls,
    read_count,
    read_text,
)
from llm.vendors.wire import Delta, ModelReply, Request, StepReply, StepRequest

_CHOICES = {ToolChoice.AUTO: "auto", ToolChoice.NONE: "none", ToolChoice.REQUIRED: "any"}
_REFUSED = "refusal"
_CUT = "max_tokens"


class AnthropicChat:
    """The messages of one model."""

    def __init__(self, model: str, vendor: Vendor, access: VendorAccess) -> None:
        key = access.api_key or "none"
        headers = {name: value.format(key=key) for name, value in vendor.key_headers.items()}
        self._model = model
        self._guard = AddressGuard.of(model, vendor, access)
        self._url = f"{self._guard.address.rstrip('/')}/messages"
        self._http = httpx2.AsyncClient(headers=headers)

    async def complete(self, request: Request) -> ModelReply:
        message = await self._ask(_make_body(self._model, request), request.timeout_seconds)
        return message.reply()

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        body = {**_make_body(self._model, request), "stream": True}
        message = _Message(self._guard)
        async with self._send(body, request.timeout_seconds) as response:
            async for event, is_whole in iterate_events(response):
                yield replace(message.add(event), is_unstreamed=is_whole)
            yield Delta("", message.reply())

    async def converse(self, request: StepRequest) -> StepReply:
        body = _make_step_body(self._model, request)
        message = await self._ask(body, request.timeout_seconds)
        calls = read_calls(message.calls, len(request.conversation.messages))
        return StepReply.of(message.reply(), calls)

    async def close(self) -> None:
        await self._http.aclose()

    async def _ask(self, body: Mapping[str, Any], seconds: float) -> "_Message":
        message = _Message(self._guard)
        async with self._send(body, seconds) as response:
            await response.aread()
            for event in parse_events(response.text) or [response.text]:
                message.add(event)
        return message

    @asynccontextmanager
    async def _send(
        self, body: Mapping[str, Any], seconds: float
    ) -> AsyncIterator[httpx2.Response]:
        """Provide the response of a request; its failures are errors of `llm.errors`."""
        with self._guard.watching():
            async with self._http.stream("POST", self._url, json=body, timeout=seconds) as response:
                if response.status_code >= 300:
                    await response.aread()
                    raise self._guard.error_of(
                        response.status_code, response.text, response.headers
                    )
                yield response


class _Message:
    """Joins the events of a message; one that is not streamed is one event."""

    def __init__(self, guard: AddressGuard) -> None:
        self.calls: list[FoundCall] = []
        self._guard = guard
        self._text = self._thoughts = self._stop = self._answered_by = ""
        self._counts: dict[str, int | None] = {}
        self._first: object = None

    def add(self, event: object) -> Delta:
        """Add an event; return its text and its thoughts."""
        self._guard.check(event)
        # A message that is not streamed has its fields at the top.
        for part in (pick(event, "message"), pick(event, "delta"), event):
            self._stop = read_text(pick(part, "stop_reason")) or self._stop
            self._answered_by = read_text(pick(part, "model")) or self._answered_by
            usage = pick(part, "usage")
            for name in usage if isinstance(usage, dict) else ():
                self._counts[name] = read_count(usage, name)
        content = pick(event, "content")
        blocks = [pick(event, "content_block"), pick(event, "delta")]
        blocks += content if isinstance(content, list) else [content]
        self._first = self._first or event
        text = "".join(map(_read_block, blocks))
        thoughts = "".join(read_text(pick(one, "thinking")) for one in blocks)
        self._text, self._thoughts = self._text + text, self._thoughts + thoughts
        self.calls += [
            FoundCall(one.get("id"), one.get("name"), one.get("input"))
            for one in blocks
            if isinstance(one, dict) and one.get("type") == "tool_use"
        ]
        return Delta(text, thoughts=thoughts)

    def reply(self) -> ModelReply:
        if not (self._text or self._thoughts or self._stop or self.calls):
            raise self._guard.unknown_reply(self._first)
        return ModelReply(
            self._text,
            self._read_usage(),
            "the model refused the request" if self._stop == _REFUSED else None,
            truncated=self._stop == _CUT,
            answered_by=self._answered_by,
            has_end=bool(self._stop),
            thoughts=self._thoughts,
        )

    def _read_usage(self) -> Usage | None:
        given, written = self._counts.get("input_tokens"), self._counts.get("output_tokens")
        if given is None or written is None:
            return None
        # The vendor counts tokens that were read from or written to its cache separately.
        cached = self._counts.get("cache_read_input_tokens") or 0
        stored = self._counts.get("cache_creation_input_tokens") or 0
        return Usage(given + cached + stored, written, cached, stored)


def make_chat(model: str, vendor: Vendor, access: VendorAccess) -> AnthropicChat:
    """Return the client of a model's messages."""
    return AnthropicChat(model, vendor, access)


def make_embeddings(
    model: str, vendor: Vendor, access: VendorAccess, dimensions: int | None = None
) -> NoReturn:
    """Raise `UnknownModel`: the vendor has no embeddings."""
    raise UnknownModel(f"expected an embedding model, found {model!r}: {vendor.name} has none")


def _read_block(block: object) -> str:
    """Return the text of a block: of a `text` or a `text_delta`, or of a plain string."""
    return block if isinstance(block, str) else read_text(pick(block, "text"))


def _make_body(model: str, request: Request) -> dict[str, Any]:
    messages = [
        {"role": "user" if turn.speaker == "user" else "assistant", "content": turn.text}
        for turn in request.turns
    ]
    return {**_make_common(model, request, request.system), "messages": messages}


def _make_step_body(model: str, request: StepRequest) -> dict[str, Any]:
    conversation = request.conversation
    body = _make_common(model, request, conversation.system)
    body["messages"] = _make_messages(conversation)
    if conversation.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            for tool in conversation.tools
        ]
        body["tool_choice"] = {"type": _CHOICES[conversation.tool_choice]}
    return body


def _make_common(model: str, request: Request | StepRequest, system: str) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "max_tokens": request.max_output_tokens}
    if system:
        # The vendor keeps the beginning of a prompt only up to a mark, with the tools before it.
        mark = {"type": "ephemeral"}
        body["system"] = [{"type": "text", "text": system, "cache_control": mark}]
    if request.capabilities.accepts("temperature"):
        body["temperature"] = request.temperature
    return body


def _make_messages(conversation: ToolConversation) -> list[dict[str, Any]]:
    """Return the messages; the results of one message's calls are one message."""
    messages: list[dict[str, Any]] = []
    for message in conversation.messages:
        role = "assistant" if isinstance(message, ModelMessage) else "user"
        if not (messages and messages[-1]["role"] == role):
            messages.append({"role": role, "content": []})
        messages[-1]["content"] += _make_blocks(message)
    return messages


def _make_blocks(message: UserMessage | ModelMessage | ToolMessage) -> Iterator[dict[str, Any]]:
    if isinstance(message, ToolMessage):
        yield {
            "type": "tool_result",
            "tool_use_id": message.call_id,
            "content": message.text,
            "is_error": message.is_error,
        }
        return
    if message.text:
        yield {"type": "text", "text": message.text}
    for call in message.calls if isinstance(message, ModelMessage) else ():
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        yield {"type": "tool_use", "id": call.call_id, "name": call.name, "input": arguments}
