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
from llm.vendors.guard import AddressGuard, FoundCall, read_calls
from llm.vendors.wire import Capabilities, Delta, ModelReply, Request, StepReply, StepRequest

THOUGHT_TOKENS = 1024
"""The thinking budget in tokens that every model of the 2.5 family accepts."""

LOW_THOUGHT_TOKENS = 4096
"""Additional output tokens for later families, which accept a thinking level, not a budget."""

LATER = re.compile(r"gemini-([3-9]|\d\d)")

REFUSALS = frozenset(
    {
        types.FinishReason.SAFETY,
        types.FinishReason.RECITATION,
        types.FinishReason.BLOCKLIST,
        types.FinishReason.PROHIBITED_CONTENT,
        types.FinishReason.SPII,
    }
)
EMBEDDING_BATCH = 100
QUESTION_TASK = "RETRIEVAL_QUERY"
DOCUMENT_TASK = "RETRIEVAL_DOCUMENT"
_MODES = {
    ToolChoice.AUTO: types.FunctionCallingConfigMode.AUTO,
    ToolChoice.NONE: types.FunctionCallingConfigMode.NONE,
    ToolChoice.REQUIRED: types.FunctionCallingConfigMode.ANY,
}


class GoogleChat:
    """The generated content of one model."""

    def __init__(self, model: str, vendor: Vendor, access: VendorAccess) -> None:
        self._model = model
        self._http = httpx2.AsyncClient(follow_redirects=True)
        self._guard = AddressGuard.of(model, vendor, access)
        self._client = _client(self._guard, access, self._http)

    async def complete(self, request: Request) -> ModelReply:
        with _watching(self._guard):
            response = await self._client.aio.models.generate_content(
                model=self._model, contents=_contents(request), config=self._config(request)
            )
            gathered = _GoogleResponse(self._guard)
            gathered.add(response)
            return gathered.reply()

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        with _watching(self._guard):
            gathered = _GoogleResponse(self._guard)
            stream = await self._client.aio.models.generate_content_stream(
                model=self._model, contents=_contents(request), config=self._config(request)
            )
            async for response in stream:
                yield gathered.add(response)
            yield Delta("", gathered.reply())

    async def converse(self, request: StepRequest) -> StepReply:
        with _watching(self._guard):
            conversation, known = request.conversation, request.capabilities
            thinking, room = self._thoughts(known)
            response = await self._client.aio.models.generate_content(
                model=self._model,
                contents=cast("Any", make_contents(conversation)),
                config=types.GenerateContentConfig(
                    system_instruction=conversation.system or None,
                    temperature=request.temperature if known.accepts("temperature") else None,
                    max_output_tokens=request.max_output_tokens + room,
                    thinking_config=thinking,
                    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
                    http_options=_timeout(request.timeout_seconds),
                    **make_tool_config(conversation),
                ),
            )
            gathered = _GoogleResponse(self._guard)
            gathered.add(response)
            calls = read_calls(find_calls(response), len(conversation.messages))
            return StepReply.of(gathered.reply(), calls)

    async def close(self) -> None:
        await self._client.aio.aclose()
        await self._http.aclose()

    def _thoughts(self, known: Capabilities) -> tuple[types.ThinkingConfig | None, int]:
        return thoughts(self._model) if known.accepts("reasoning") else (None, 0)

    def _config(self, request: Request) -> types.GenerateContentConfig:
        known = request.capabilities
        thinking, room = self._thoughts(known)
        return types.GenerateContentConfig(
            system_instruction=request.system or None,
            temperature=request.temperature if known.accepts("temperature") else None,
            max_output_tokens=request.max_output_tokens + room,
            response_mime_type=None if known.structure == "text" else "application/json",
            response_json_schema=request.schema if known.structure == "schema" else None,
            thinking_config=thinking,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            http_options=_timeout(request.timeout_seconds),
        )


class GoogleEmbeddings:
    """The embeddings of one model."""

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


class _GoogleResponse:
    """Joins the pieces of a response; a response that is not streamed is one piece."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._text = self._thoughts = self._answered_by = ""
        self._blocked: str | None = None
        self._finish: types.FinishReason | None = None
        self._usage: types.GenerateContentResponseUsageMetadata | None = None
        self._is_known = False

    def add(self, response: types.GenerateContentResponse) -> Delta:
        """Add a piece; return its text and its thoughts."""
        self._usage = response.usage_metadata or self._usage
        self._answered_by = response.model_version or self._answered_by
        feedback = response.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self._blocked = f"the prompt was blocked ({feedback.block_reason.value})"
        text = thoughts = ""
        for candidate in (response.candidates or [])[:1]:
            self._is_known = True
            parts = candidate.content.parts if candidate.content is not None else None
            text = "".join(part.text or "" for part in parts or [] if not part.thought)
            thoughts = "".join(part.text or "" for part in parts or [] if part.thought)
            self._finish = candidate.finish_reason or self._finish
        self._text, self._thoughts = self._text + text, self._thoughts + thoughts
        return Delta(text, thoughts=thoughts)

    def reply(self) -> ModelReply:
        if not self._is_known and self._blocked is None:
            raise self._guard.unknown_reply("a response without candidates")
        refusal = self._blocked
        if self._finish in REFUSALS:
            refusal = f"the answer was stopped ({self._finish.value})"
        return ModelReply(
            self._text,
            _usage(self._usage),
            refusal,
            truncated=self._finish == types.FinishReason.MAX_TOKENS,
            answered_by=self._answered_by,
            has_end=self._finish is not None or self._blocked is not None,
            thoughts=self._thoughts,
        )


def thoughts(model: str) -> tuple[types.ThinkingConfig | None, int]:
    """Return the thinking configuration of `model`, and its tokens: they count as output."""
    if model.startswith("gemini-2.5"):
        return types.ThinkingConfig(thinking_budget=THOUGHT_TOKENS), THOUGHT_TOKENS
    if LATER.match(model):
        low = types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW)
        return low, LOW_THOUGHT_TOKENS
    return None, 0


def make_chat(model: str, vendor: Vendor, access: VendorAccess) -> GoogleChat:
    """Return the client of a model's generated content."""
    return GoogleChat(model, vendor, access)


def make_embeddings(
    model: str, vendor: Vendor, access: VendorAccess, dimensions: int | None = None
) -> GoogleEmbeddings:
    """Return the client of an embedding model; `dimensions` is the length to ask for."""
    return GoogleEmbeddings(model, vendor, access, dimensions)


def make_contents(conversation: ToolConversation) -> list[types.Content]:
    """Return the messages; the results of one message's calls are one content."""
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


def find_calls(response: types.GenerateContentResponse) -> Iterator[FoundCall]:
    """Yield the calls in a response."""
    candidates = response.candidates or []
    content = candidates[0].content if candidates else None
    for part in (content.parts if content is not None else None) or []:
        if part.function_call is not None:
            call = part.function_call
            signature = base64.b64encode(part.thought_signature or b"").decode()
            yield FoundCall(call.id, call.name, call.args, signature)


def _client(guard: AddressGuard, access: VendorAccess, http: httpx2.AsyncClient) -> genai.Client:
    once = types.HttpRetryOptions(attempts=1)
    return genai.Client(
        # Given explicitly: the environment could otherwise choose another service.
        vertexai=False,
        api_key=access.api_key or "none",
        http_options=types.HttpOptions(
            base_url=guard.address or None,
            retry_options=once,
            # Given explicitly: where aiohttp is installed it would be used, and raise other errors.
            httpx_async_client=http,
        ),
    )


def _contents(request: Request) -> list[types.Content]:
    return [
        types.Content(role=turn.speaker, parts=[types.Part(text=turn.text)])
        for turn in request.turns
    ]


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
    """Turn what the client raises into errors of `llm.errors`."""
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
    """Return the gathered results as one content, if there are any, and empty the list."""
    gathered = [types.Content(role="user", parts=list(results))] if results else []
    results.clear()
    return gathered
