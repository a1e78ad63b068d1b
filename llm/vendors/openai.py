"""OpenAI's chat completions and embeddings, and those of compatible servers."""

import base64
import json
import re
from array import array
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

import openai
from pydantic import JsonValue

from llm.port import ModelMessage, ToolMessage, Usage, UserMessage
from llm.vendors.catalogue import Vendor, VendorAccess
from llm.vendors.guard import (
    AddressGuard,
    ReplyReader,
    iterate_events,
    parse_body,
    pick,
    pick_rows,
    read_count,
    read_text,
)
from llm.vendors.wire import Delta, Request

OWN_NAME = "openai"
REASONING = re.compile(r"(gpt-[5-9]|gpt-\d\d|o\d)(?!.*-chat)")
REASONING_TOKENS = 4096
"""Additional tokens for reasoning, which counts towards the same limit as the answer."""

EMBEDDING_BATCH = 256
_NO_THOUGHTS = frozenset({"role", "type", "content", "refusal", "name", "id"})
"""Message fields that do not contain thoughts. Servers use various names for thoughts."""


class OpenAIChat:
    """The chat client of one model."""

    def __init__(self, model: str, vendor: Vendor, access: VendorAccess) -> None:
        self._model = model
        self._guard = AddressGuard.of(model, vendor, access)
        self._client = _client(self._guard, access)
        self._compatible = access.base_url is not None or vendor.name != OWN_NAME

    async def send(self, request: Request) -> AsyncGenerator[Delta, None]:
        reader = _CompletionReader(self._guard, request)
        with _watching(self._guard):
            # Typed completions are not used, because the client does not validate them.
            raw = await self._client.chat.completions.with_raw_response.create(
                model=self._model,
                timeout=request.timeout_seconds,
                **make_parameters(request),
                **sampling(self._model, request, compatible=self._compatible),
            )
            async with aclosing(raw.http_response) as response:
                async for event, is_whole in iterate_events(response):
                    yield reader.add(event, is_whole=is_whole)
            yield reader.end()

    async def close(self) -> None:
        await self._client.close()


class OpenAIEmbeddings:
    """The embedding client of one model."""

    batch = EMBEDDING_BATCH
    forms = ""

    def __init__(
        self, model: str, vendor: Vendor, access: VendorAccess, dimensions: int | None
    ) -> None:
        self._model = model
        self._dimensions = openai.omit if dimensions is None else dimensions
        self._guard = AddressGuard.of(model, vendor, access)
        self._client = _client(self._guard, access)

    async def embed(
        self, texts: Sequence[str], timeout_seconds: float, *, are_questions: bool
    ) -> tuple[Sequence[Sequence[float]], Usage | None]:
        with _watching(self._guard):
            raw = await self._client.embeddings.with_raw_response.create(
                model=self._model,
                input=list(texts),
                encoding_format="float",
                dimensions=self._dimensions,
                timeout=timeout_seconds,
            )
            answer = parse_body(raw.http_response.text)
            self._guard.check(answer)
            rows = pick_rows(answer, "data")
            if not isinstance(pick(answer, "data"), list):
                raise self._guard.unknown_reply(answer)
            # The index defines the order; servers that omit it, or always send the same one, keep
            # the order of the texts.
            indexes = {read_count(row, "index") for row in rows}
            if None not in indexes and len(indexes) == len(rows):
                rows.sort(key=lambda row: read_count(row, "index") or 0)
            elif len(indexes) > 1:
                raise self._guard.unknown_reply(f"vectors with the indexes {indexes}")
            tokens = read_count(pick(answer, "usage"), "prompt_tokens", "total_tokens")
            vectors = [_read_vector(row.get("embedding")) for row in rows]
            return vectors, None if tokens is None else Usage(tokens)

    async def close(self) -> None:
        await self._client.close()


class _CompletionReader(ReplyReader):
    def read(self, event: Any) -> None:
        self.usage = _read_usage(pick(event, "usage")) or self.usage
        self.answered_by = read_text(pick(event, "model")) or self.answered_by
        choice = pick(event, "choices", 0)
        message = pick(choice, "delta") or pick(choice, "message")
        self.finish = read_text(pick(choice, "finish_reason")) or self.finish
        self.refusal += read_text(pick(message, "refusal"))
        self.text += read_text(pick(message, "content")) or read_text(pick(choice, "text"))
        self.thoughts += _read_thoughts(message)
        # Only one choice is requested; some proxies split it, so further choices contain the rest.
        for part in pick_rows(event, "choices"):
            self._read_calls(pick(part, "delta") or pick(part, "message"))

    def _read_calls(self, message: object) -> None:
        listed = pick(message, "tool_calls")
        older = pick(message, "function_call")
        for call in (
            *(listed if isinstance(listed, list) else [listed]),
            older and {"function": older},
        ):
            if call is not None:
                function = pick(call, "function")
                self.add_call(pick(call, "id"), pick(function, "name"), pick(function, "arguments"))

    def end(self) -> Delta:
        if self.request.schema is None and not (self.text or self.calls or self.is_cut):
            # Some servers return the whole answer as thoughts.
            self.text = self.thoughts
        return super().end()


def sampling(model: str, request: Request, *, compatible: bool) -> dict[str, Any]:
    """Return the token limit and the sampling parameters that `model` accepts.

    Reasoning models accept only `max_completion_tokens`, do not accept a temperature, and need
    additional tokens for their thoughts. Other models of compatible servers use `max_tokens`.
    """
    known = request.capabilities
    reasons = REASONING.match(model.rpartition("/")[2]) is not None
    thinks = reasons or not known.accepts("temperature")
    usual = "max_tokens" if compatible and not reasons else "max_completion_tokens"
    chosen: dict[str, Any] = {
        known.token_parameter or usual: request.conversation.max_output_tokens
        + (REASONING_TOKENS if thinks else 0)
    }
    if not thinks:
        chosen["temperature"] = request.conversation.temperature
    if reasons and known.accepts("reasoning"):
        chosen["reasoning_effort"] = "low"
    return chosen


def make_chat(model: str, vendor: Vendor, access: VendorAccess) -> OpenAIChat:
    """Return the chat client of a model."""
    return OpenAIChat(model, vendor, access)


def make_embeddings(
    model: str, vendor: Vendor, access: VendorAccess, dimensions: int | None = None
) -> OpenAIEmbeddings:
    """Return the client of an embedding model; `dimensions` is the requested vector length."""
    return OpenAIEmbeddings(model, vendor, access, dimensions)


def make_parameters(request: Request) -> dict[str, Any]:
    """Return the request parameters for messages, response format, streaming and tools."""
    conversation, known = request.conversation, request.capabilities
    messages = [_make_message(message) for message in conversation.messages]
    if conversation.system:
        messages.insert(0, {"role": "system", "content": conversation.system})
    parameters: dict[str, Any] = {"messages": messages, **_response_format(request)}
    if request.streams:
        parameters["stream"] = True
        if known.accepts("stream_options"):
            parameters["stream_options"] = {"include_usage": True}
    if conversation.tools:
        parameters["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema,
                },
            }
            for tool in conversation.tools
        ]
        if known.accepts("tool_choice"):
            parameters["tool_choice"] = conversation.tool_choice.value
    return parameters


def _client(guard: AddressGuard, access: VendorAccess) -> openai.AsyncOpenAI:
    # A compatible server without keys still requires the header.
    key = access.api_key or "none"
    return openai.AsyncOpenAI(api_key=key, base_url=guard.address or None, max_retries=0)


def _response_format(request: Request) -> dict[str, Any]:
    if request.schema is None or request.capabilities.structure == "text":
        return {}
    if request.capabilities.structure == "object":
        return {"response_format": {"type": "json_object"}}
    schema = {"name": request.conversation.task, "schema": request.schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _read_usage(usage: object) -> Usage | None:
    """Return the usage, or None if a count is missing, so that the cost is unknown."""
    given = read_count(usage, "prompt_tokens", "input_tokens")
    written = read_count(usage, "completion_tokens", "output_tokens")
    if given is None or written is None:
        return None
    cached = read_count(pick(usage, "prompt_tokens_details"), "cached_tokens")
    return Usage(given, written, cached or 0)


def _read_thoughts(message: object) -> str:
    """Return the thoughts in a message: the first text in a field outside `_NO_THOUGHTS`."""
    if not isinstance(message, dict):
        return ""
    others = (value for name, value in message.items() if name not in _NO_THOUGHTS)
    texts = (read_text(other) or read_text(other, thoughts=True) for other in others)
    return next(filter(None, texts), "") or read_text(message.get("content"), thoughts=True)


def _read_vector(encoded: object) -> Sequence[float]:
    """Parse a vector; some servers always send base64."""
    if isinstance(encoded, str):
        return array("f", base64.b64decode(encoded, validate=True)).tolist()
    return [float(number) for number in encoded] if isinstance(encoded, list) else []


@contextmanager
def _watching(guard: AddressGuard) -> Iterator[None]:
    """Convert errors of the client into errors of `llm.errors`."""
    with guard.watching():
        try:
            yield
        except openai.APITimeoutError as error:
            raise guard.timeout() from error
        except openai.APIStatusError as error:
            response = error.response
            raise guard.error_of(response.status_code, response.text, response.headers) from error
        except openai.OpenAIError as error:
            raise guard.broken_connection(error) from error


def _make_message(message: UserMessage | ModelMessage | ToolMessage) -> dict[str, Any]:
    if isinstance(message, UserMessage):
        return {"role": "user", "content": message.text}
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if not message.calls:
        return {"role": "assistant", "content": message.text}
    calls = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": _write_arguments(call.arguments)},
        }
        for call in message.calls
    ]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


def _write_arguments(arguments: JsonValue) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
