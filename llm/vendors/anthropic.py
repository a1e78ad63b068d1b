"""Anthropic's models over their Messages API.

The vendor's package would add 18 MB and seconds to the start for one HTTP request, so the request
is made with the HTTP client that the other vendors' packages use.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NoReturn

import httpx2

from llm.errors import ModelTimeout, ModelUnavailable, UnknownModel
from llm.port import (
    ModelMessage,
    ToolChoice,
    ToolConversation,
    ToolMessage,
    ToolUse,
    Usage,
    UserMessage,
)
from llm.vendors.catalogue import Vendor, VendorAccess
from llm.vendors.wire import (
    Delta,
    ModelReply,
    Request,
    StepReply,
    StepRequest,
    check_allowed,
    error_of,
    retry_after_seconds,
)

_CHOICES = {ToolChoice.AUTO: "auto", ToolChoice.NONE: "none", ToolChoice.REQUIRED: "any"}
_REFUSED = "refusal"
_CUT = "max_tokens"
_EVENT = "data:"


class AnthropicChat:
    """The messages of one model."""

    def __init__(self, model: str, vendor: Vendor, access: VendorAccess) -> None:
        url = (vendor.base_url if access.base_url is None else access.base_url) or ""
        check_allowed(url)
        key = access.api_key or "none"
        headers = {name: value.format(key=key) for name, value in vendor.key_headers.items()}
        self._model = model
        self._key_variable = vendor.key_variable
        self._url = f"{url.rstrip('/')}/messages"
        self._http = httpx2.AsyncClient(headers=headers)

    async def complete(self, request: Request) -> ModelReply:
        gathered = await self._ask(_make_body(self._model, request), request.timeout_seconds)
        return gathered.reply()

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        body = {**_make_body(self._model, request), "stream": True}
        gathered = _Gathered(self._model)
        async with self._send(body, request.timeout_seconds) as response:
            async for line in response.aiter_lines():
                if line.startswith(_EVENT):
                    yield Delta(gathered.add_event(line.removeprefix(_EVENT)))
        yield Delta("", gathered.reply())

    async def converse(self, request: StepRequest) -> StepReply:
        body = _make_step_body(self._model, request)
        gathered = await self._ask(body, request.timeout_seconds)
        return StepReply.of(gathered.reply(), gathered.calls)

    async def close(self) -> None:
        await self._http.aclose()

    async def _ask(self, body: Mapping[str, Any], seconds: float) -> "_Gathered":
        gathered = _Gathered(self._model)
        async with self._send(body, seconds) as response:
            gathered.add_whole(await response.aread())
        return gathered

    @asynccontextmanager
    async def _send(
        self, body: Mapping[str, Any], seconds: float
    ) -> AsyncIterator[httpx2.Response]:
        """Provide the response of a request; its failures are errors of `llm.errors`."""
        with _translate_errors(self._model):
            async with self._http.stream("POST", self._url, json=body, timeout=seconds) as response:
                if response.status_code >= 400:
                    self._raise_status(response.status_code, await response.aread(), response)
                yield response

    def _raise_status(self, status: int, content: bytes, response: httpx2.Response) -> NoReturn:
        raise error_of(
            self._model,
            status,
            _read_error(content),
            key_variable=self._key_variable,
            retry_after_seconds=retry_after_seconds(response.headers),
        )


def make_chat(model: str, vendor: Vendor, access: VendorAccess) -> AnthropicChat:
    """Return the client of a model's messages."""
    return AnthropicChat(model, vendor, access)


def make_embeddings(
    model: str, vendor: Vendor, access: VendorAccess, dimensions: int | None = None
) -> NoReturn:
    """Raise `UnknownModel`: the vendor has no embeddings."""
    raise UnknownModel(f"expected an embedding model, found {model!r}: {vendor.name} has none")


class _Gathered:
    """Joins the blocks of a message; one that is not streamed comes as a whole."""

    def __init__(self, model: str) -> None:
        self.calls: list[ToolUse] = []
        self._model = model
        self._text = ""
        self._stop = ""
        self._answered_by = ""
        self._usage: dict[str, int] = {}

    def add_whole(self, content: bytes) -> None:
        message = _read_object(self._model, content)
        for block in message.get("content") or ():
            if block.get("type") == "text":
                self._text += str(block.get("text", ""))
            elif block.get("type") == "tool_use":
                self.calls.append(
                    ToolUse(
                        call_id=str(block.get("id", "")),
                        name=str(block.get("name", "")),
                        arguments=block.get("input") or {},
                    )
                )
        self._note(message)

    def add_event(self, content: str) -> str:
        """Return the text that an event adds."""
        event = _read_object(self._model, content.encode())
        if event.get("type") == "error":
            raise ModelUnavailable(
                f"the vendor of {self._model!r} failed: {_read_error(content.encode())}"
            )
        self._note(event.get("message") or {})
        self._note({**(event.get("delta") or {}), "usage": event.get("usage")})
        text = str((event.get("delta") or {}).get("text", ""))
        self._text += text
        return text

    def reply(self) -> ModelReply:
        if not self._stop:
            raise ModelUnavailable(f"expected the end of the answer of {self._model!r}, found none")
        refusal = "the model refused the request" if self._stop == _REFUSED else None
        return ModelReply(
            self._text,
            self._count(),
            refusal,
            truncated=self._stop == _CUT,
            answered_by=self._answered_by,
        )

    def _note(self, part: Mapping[str, Any]) -> None:
        self._stop = str(part.get("stop_reason") or self._stop)
        self._answered_by = str(part.get("model") or self._answered_by)
        for name, count in (part.get("usage") or {}).items():
            if isinstance(count, int):
                self._usage[name] = count

    def _count(self) -> Usage | None:
        if not self._usage:
            return None
        cached = self._usage.get("cache_read_input_tokens", 0)
        # The vendor counts tokens that were read from or written to its cache separately.
        written = self._usage.get("cache_creation_input_tokens", 0)
        return Usage(
            input_tokens=self._usage.get("input_tokens", 0) + cached + written,
            output_tokens=self._usage.get("output_tokens", 0),
            cached_input_tokens=cached,
        )


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
    if request.capabilities.has_temperature:
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


def _read_object(model: str, content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ModelUnavailable(f"expected a message of {model!r}, found none in the response")
    return found


def _read_error(content: bytes) -> str:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    error = found.get("error") if isinstance(found, dict) else None
    return str(error.get("message", "")) if isinstance(error, dict) else ""


@contextmanager
def _translate_errors(model: str) -> Iterator[None]:
    """Turn errors of the HTTP client into errors of `llm.errors`."""
    try:
        yield
    except httpx2.TimeoutException as error:
        raise ModelTimeout(f"expected {model!r} to answer in time, found no answer") from error
    except httpx2.HTTPError as error:
        reason = str(error) or type(error).__name__
        raise ModelUnavailable(f"the connection to {model!r} failed: {reason}") from error
