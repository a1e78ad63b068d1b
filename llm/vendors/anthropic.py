"""Anthropic's models, called through the Messages API.

Requests are made with the HTTP client that the other vendors' packages use, because the vendor's
own package would add 18 MB and seconds of startup time for a single HTTP request.
"""

from collections.abc import AsyncGenerator, Iterator
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
    ReplyReader,
    iterate_events,
    pick,
    read_count,
    read_text,
)
from llm.vendors.wire import Delta, Request

_CHOICES = {ToolChoice.AUTO: "auto", ToolChoice.NONE: "none", ToolChoice.REQUIRED: "any"}


class AnthropicChat:
    """The chat client of one model."""

    def __init__(self, model: str, vendor: Vendor, access: VendorAccess) -> None:
        key = access.api_key or "none"
        headers = {name: value.format(key=key) for name, value in vendor.key_headers.items()}
        self._model = model
        self._guard = AddressGuard.of(model, vendor, access)
        self._url = f"{self._guard.address.rstrip('/')}/messages"
        self._http = httpx2.AsyncClient(headers=headers)

    async def send(self, request: Request) -> AsyncGenerator[Delta, None]:
        reader = _MessageReader(self._guard, request)
        body = _make_body(self._model, request)
        seconds = request.timeout_seconds
        with self._guard.watching():
            async with self._http.stream("POST", self._url, json=body, timeout=seconds) as response:
                if response.status_code >= 300:
                    await response.aread()
                    raise self._guard.error_of(
                        response.status_code, response.text, response.headers
                    )
                async for event, is_whole in iterate_events(response):
                    yield reader.add(event, is_whole=is_whole)
            yield reader.end()

    async def close(self) -> None:
        await self._http.aclose()


class _MessageReader(ReplyReader):
    def __init__(self, guard: AddressGuard, request: Request) -> None:
        super().__init__(guard, request)
        self._counts: dict[str, int | None] = {}

    def read(self, event: Any) -> None:
        # A message that is not streamed has its fields at the top.
        for part in (pick(event, "message"), pick(event, "delta"), event):
            self.finish = read_text(pick(part, "stop_reason")) or self.finish
            self.answered_by = read_text(pick(part, "model")) or self.answered_by
            usage = pick(part, "usage")
            for name in usage if isinstance(usage, dict) else ():
                self._counts[name] = read_count(usage, name)
        self.usage = self._read_usage()
        content = pick(event, "content")
        blocks = [pick(event, "content_block"), pick(event, "delta")]
        for block in (*blocks, *(content if isinstance(content, list) else [content])):
            self.text += block if isinstance(block, str) else read_text(pick(block, "text"))
            self.thoughts += read_text(pick(block, "thinking"))
            if pick(block, "type") == "tool_use":
                self.add_call(pick(block, "id"), pick(block, "name"), pick(block, "input"))

    def _read_usage(self) -> Usage | None:
        given, written = self._counts.get("input_tokens"), self._counts.get("output_tokens")
        if given is None or written is None:
            return None
        # The vendor counts tokens read from or written to its cache separately.
        cached = self._counts.get("cache_read_input_tokens") or 0
        stored = self._counts.get("cache_creation_input_tokens") or 0
        return Usage(given + cached + stored, written, cached, stored)


def make_chat(model: str, vendor: Vendor, access: VendorAccess) -> AnthropicChat:
    """Return the chat client of a model."""
    return AnthropicChat(model, vendor, access)


def make_embeddings(
    model: str, vendor: Vendor, access: VendorAccess, dimensions: int | None = None
) -> NoReturn:
    """Raise `UnknownModel`, because the vendor has no embeddings."""
    raise UnknownModel(
        f"{model!r} cannot be an embedding model: {vendor.name} does not offer embedding models"
    )


def _make_body(model: str, request: Request) -> dict[str, Any]:
    conversation = request.conversation
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": conversation.max_output_tokens,
        "messages": _make_messages(conversation),
    }
    if conversation.system:
        # The vendor caches a prompt, tools included, only up to this mark.
        mark = {"type": "ephemeral"}
        body["system"] = [{"type": "text", "text": conversation.system, "cache_control": mark}]
    if request.capabilities.accepts("temperature"):
        body["temperature"] = conversation.temperature
    if request.streams:
        body["stream"] = True
    if conversation.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            for tool in conversation.tools
        ]
        body["tool_choice"] = {"type": _CHOICES[conversation.tool_choice]}
    return body


def _make_messages(conversation: ToolConversation) -> list[dict[str, Any]]:
    """Return the messages; consecutive messages of the same role are merged."""
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
