"""Google's Gemini models and embeddings."""

import base64
import json
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import httpx2
from google import genai
from google.genai import errors, types

from llm.port import (
    ModelMessage,
    ToolChoice,
    ToolConversation,
    ToolMessage,
    Usage,
    UserMessage,
)
from llm.vendors.catalogue import Vendor, VendorAccess
from llm.vendors.guard import AddressGuard, ReplyReader
from llm.vendors.wire import Delta, Request

THOUGHT_TOKENS = 1024
"""The thinking budget, in tokens, that every model of the 2.5 family accepts."""

LOW_THOUGHT_TOKENS = 4096
"""Additional output tokens for later families, which accept a thinking level instead of a
budget.
"""

LATER = re.compile(r"gemini-([3-9]|\d\d)")

_VERSION = re.compile(r"/(v\d\w{0,9})/?$")
EMBEDDING_BATCH = 100
QUESTION_TASK = "RETRIEVAL_QUERY"
DOCUMENT_TASK = "RETRIEVAL_DOCUMENT"
_MODES = {
    ToolChoice.AUTO: types.FunctionCallingConfigMode.AUTO,
    ToolChoice.NONE: types.FunctionCallingConfigMode.NONE,
    ToolChoice.REQUIRED: types.FunctionCallingConfigMode.ANY,
}


class GoogleChat:
    """The chat client of one Gemini model."""

    def __init__(self, model: str, vendor: Vendor, access: VendorAccess) -> None:
        self._model = model
        self._http = httpx2.AsyncClient(follow_redirects=True)
        self._guard = AddressGuard.of(model, vendor, access)
        self._client = _client(self._guard, access, self._http)

    async def send(self, request: Request) -> AsyncGenerator[Delta, None]:
        reader = _ResponseReader(self._guard, request)
        models = self._client.aio.models
        with _watching(self._guard):
            asked: Any = {
                "model": self._model,
                "contents": make_contents(request.conversation),
                "config": self._config(request),
            }
            if request.streams:
                async for response in await models.generate_content_stream(**asked):
                    yield reader.add(response, is_whole=False)
            else:
                yield reader.add(await models.generate_content(**asked), is_whole=True)
            yield reader.end()

    async def close(self) -> None:
        await self._client.aio.aclose()
        await self._http.aclose()

    def _config(self, request: Request) -> types.GenerateContentConfig:
        conversation, known = request.conversation, request.capabilities
        thinking, room = thoughts(self._model) if known.accepts("reasoning") else (None, 0)
        structure = "text" if request.schema is None else known.structure
        return types.GenerateContentConfig(
            system_instruction=conversation.system or None,
            temperature=conversation.temperature if known.accepts("temperature") else None,
            max_output_tokens=conversation.max_output_tokens + room,
            response_mime_type=None if structure == "text" else "application/json",
            response_json_schema=request.schema if structure == "schema" else None,
            thinking_config=thinking,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            http_options=_timeout(request.timeout_seconds),
            **make_tool_config(conversation),
        )


class GoogleEmbeddings:
    """The embedding client of one model."""

    batch = EMBEDDING_BATCH
    forms = f"{QUESTION_TASK} and {DOCUMENT_TASK}"

    def __init__(
        self, model: str, vendor: Vendor, access: VendorAccess, dimensions: int | None
    ) -> None:
        self._model = model
        self._dimensions = dimensions
        self._http = httpx2.AsyncClient(follow_redirects=True)
        self._guard = AddressGuard.of(model, vendor, access)
        self._client = _client(self._guard, access, self._http)

    async def embed(
        self, texts: Sequence[str], timeout_seconds: float, *, are_questions: bool
    ) -> tuple[Sequence[Sequence[float]], Usage | None]:
        with _watching(self._guard):
            answer = await self._client.aio.models.embed_content(
                model=self._model,
                contents=[types.Content(parts=[types.Part(text=text)]) for text in texts],
                config=types.EmbedContentConfig(
                    task_type=QUESTION_TASK if are_questions else DOCUMENT_TASK,
                    output_dimensionality=self._dimensions,
                    http_options=_timeout(timeout_seconds),
                ),
            )
        vectors = [item.values or [] for item in answer.embeddings or []]
        metadata = answer.usage_metadata
        tokens = None if metadata is None else metadata.prompt_token_count
        return vectors, None if tokens is None else Usage(tokens)

    async def close(self) -> None:
        await self._client.aio.aclose()
        await self._http.aclose()


class _ResponseReader(ReplyReader):
    def read(self, event: types.GenerateContentResponse) -> None:
        self.usage = _usage(event.usage_metadata) or self.usage
        self.answered_by = event.model_version or self.answered_by
        feedback = event.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self.refusal = f"the prompt was blocked ({feedback.block_reason.value})"
        for candidate in (event.candidates or [])[:1]:
            self.finish = candidate.finish_reason.value if candidate.finish_reason else self.finish
            for part in (candidate.content.parts if candidate.content else None) or []:
                if part.thought:
                    self.thoughts += part.text or ""
                else:
                    self.text += part.text or ""
                if (call := part.function_call) is not None:
                    signature = base64.b64encode(part.thought_signature or b"").decode()
                    self.add_call(call.id, call.name, call.args, signature)


def thoughts(model: str) -> tuple[types.ThinkingConfig | None, int]:
    """Return the thinking configuration for `model`, and the output tokens to add for it."""
    if model.startswith("gemini-2.5"):
        return types.ThinkingConfig(thinking_budget=THOUGHT_TOKENS), THOUGHT_TOKENS
    if LATER.match(model):
        low = types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW)
        return low, LOW_THOUGHT_TOKENS
    return None, 0


def make_chat(model: str, vendor: Vendor, access: VendorAccess) -> GoogleChat:
    """Return the chat client of a model."""
    return GoogleChat(model, vendor, access)


def make_embeddings(
    model: str, vendor: Vendor, access: VendorAccess, dimensions: int | None = None
) -> GoogleEmbeddings:
    """Return the client of an embedding model; `dimensions` is the requested vector length."""
    return GoogleEmbeddings(model, vendor, access, dimensions)


def make_contents(conversation: ToolConversation) -> list[types.Content]:
    """Return the messages as contents; consecutive tool results are combined into one content."""
    contents: list[types.Content] = []
    results: list[types.Part] = []
    for message in conversation.messages:
        if isinstance(message, ToolMessage):
            results.append(_make_result(message))
            continue
        contents += _flush(results)
        if isinstance(message, UserMessage):
            contents.append(types.Content(role="user", parts=[types.Part(text=message.text)]))
        else:
            contents.append(types.Content(role="model", parts=list(_make_parts(message))))
    return [*contents, *_flush(results)]


def make_tool_config(conversation: ToolConversation) -> dict[str, Any]:
    """Return the part of a configuration that describes the tools."""
    if not conversation.tools:
        return {}
    declarations = [
        types.FunctionDeclaration(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.input_schema,
        )
        for tool in conversation.tools
    ]
    calling = types.FunctionCallingConfig(mode=_MODES[conversation.tool_choice])
    return {
        "tools": [types.Tool(function_declarations=declarations)],
        "tool_config": types.ToolConfig(function_calling_config=calling),
    }


def _client(guard: AddressGuard, access: VendorAccess, http: httpx2.AsyncClient) -> genai.Client:
    once = types.HttpRetryOptions(attempts=1)
    # Many compatible servers have only one version; the address may contain it.
    stated = _VERSION.search(guard.address)
    return genai.Client(
        # Set explicitly: environment variables could select another service.
        vertexai=False,
        api_key=access.api_key or "none",
        http_options=types.HttpOptions(
            base_url=_VERSION.sub("", guard.address) or None,
            api_version=None if stated is None else stated[1],
            retry_options=once,
            # Set explicitly: if aiohttp is installed, it would be used and raise other errors.
            httpx_async_client=http,
        ),
    )


def _timeout(seconds: float) -> types.HttpOptions:
    return types.HttpOptions(timeout=max(1, int(seconds * 1000)))


def _usage(metadata: types.GenerateContentResponseUsageMetadata | None) -> Usage | None:
    if metadata is None or metadata.prompt_token_count is None:
        return None
    return Usage(
        input_tokens=metadata.prompt_token_count,
        # Thoughts are charged as output, but counted separately.
        output_tokens=(metadata.candidates_token_count or 0) + (metadata.thoughts_token_count or 0),
        cached_input_tokens=metadata.cached_content_token_count or 0,
    )


@contextmanager
def _watching(guard: AddressGuard) -> Iterator[None]:
    """Convert errors of the client into errors of `llm.errors`."""
    with guard.watching():
        try:
            yield
        except errors.APIError as error:
            headers = cast("Any", error.response).headers if error.response is not None else {}
            raise guard.error_of(error.code, json.dumps(error.details), headers) from error
        except errors.UnknownApiResponseError as error:
            # The message of the client ends with the body.
            raise guard.unknown_reply(str(error).partition("Raw response: ")[2]) from error


def _make_parts(message: ModelMessage) -> Iterator[types.Part]:
    if message.text or not message.calls:
        yield types.Part(text=message.text)
    for call in message.calls:
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        yield types.Part(
            function_call=types.FunctionCall(id=call.call_id, name=call.name, args=arguments),
            thought_signature=base64.b64decode(call.signature) if call.signature else None,
        )


def _make_result(message: ToolMessage) -> types.Part:
    key = "error" if message.is_error else "output"
    return types.Part(
        function_response=types.FunctionResponse(
            id=message.call_id, name=message.name, response={key: message.text}
        )
    )


def _flush(results: list[types.Part]) -> list[types.Content]:
    """Return the collected results as one content, if any, and clear the list."""
    gathered = [types.Content(role="user", parts=list(results))] if results else []
    results.clear()
    return gathered
