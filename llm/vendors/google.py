"""Google's Gemini models and embeddings."""

import base64
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from json import JSONDecodeError
from typing import Any, cast

import httpx2
from google import genai
from google.genai import errors, types
from pydantic import ValidationError

from llm.errors import ModelError, ModelTimeout, ModelUnavailable
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
    wrong_key,
)

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
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


class GoogleChat:
    """The generated content of one model."""

    def __init__(self, model: str, vendor: Vendor, access: VendorAccess) -> None:
        self._model = model
        self._http = httpx2.AsyncClient(follow_redirects=True)
        self._client = _client(vendor, access, self._http)
        self._key_variable = vendor.key_variable

    async def complete(self, request: Request) -> ModelReply:
        with _translate_errors(self._model, self._key_variable):
            response = await self._client.aio.models.generate_content(
                model=self._model, contents=_contents(request), config=self._config(request)
            )
            gathered = _GoogleResponse()
            gathered.add(response)
            return gathered.reply(self._model)

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        with _translate_errors(self._model, self._key_variable):
            gathered = _GoogleResponse()
            stream = await self._client.aio.models.generate_content_stream(
                model=self._model, contents=_contents(request), config=self._config(request)
            )
            async for response in stream:
                yield Delta(gathered.add(response))
            yield Delta("", gathered.reply(self._model))

    async def converse(self, request: StepRequest) -> StepReply:
        with _translate_errors(self._model, self._key_variable):
            conversation, known = request.conversation, request.capabilities
            thinking, room = thoughts(self._model)
            response = await self._client.aio.models.generate_content(
                model=self._model,
                contents=cast("Any", make_contents(conversation)),
                config=types.GenerateContentConfig(
                    system_instruction=conversation.system or None,
                    temperature=request.temperature if known.has_temperature else None,
                    max_output_tokens=request.max_output_tokens + room,
                    thinking_config=thinking,
                    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
                    http_options=_timeout(request.timeout_seconds),
                    **make_tool_config(conversation),
                ),
            )
            gathered = _GoogleResponse()
            gathered.add(response)
            return read_message(conversation, response, gathered.reply(self._model))

    async def close(self) -> None:
        await self._client.aio.aclose()
        await self._http.aclose()

    def _config(self, request: Request) -> types.GenerateContentConfig:
        known = request.capabilities
        thinking, room = thoughts(self._model)
        return types.GenerateContentConfig(
            system_instruction=request.system or None,
            temperature=request.temperature if known.has_temperature else None,
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
        self._client = _client(vendor, access, self._http)
        self._key_variable = vendor.key_variable

    async def embed(
        self, texts: Sequence[str], timeout_seconds: float, *, are_questions: bool
    ) -> tuple[Sequence[Sequence[float]], Usage | None]:
        with _translate_errors(self._model, self._key_variable):
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


def thoughts(model: str) -> tuple[types.ThinkingConfig | None, int]:
    """Return the thinking configuration of `model`, and its tokens: they count as output."""
    if model.startswith("gemini-2.5"):
        return types.ThinkingConfig(thinking_budget=THOUGHT_TOKENS), THOUGHT_TOKENS
    if LATER.match(model):
        low = types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW)
        return low, LOW_THOUGHT_TOKENS
    return None, 0


class _GoogleResponse:
    """Joins the pieces of a response; a response that is not streamed is one piece."""

    def __init__(self) -> None:
        self._text = ""
        self._answered_by = ""
        self._blocked: str | None = None
        self._finish: types.FinishReason | None = None
        self._usage: types.GenerateContentResponseUsageMetadata | None = None

    def add(self, response: types.GenerateContentResponse) -> str:
        if response.usage_metadata is not None:
            self._usage = response.usage_metadata
        self._answered_by = response.model_version or self._answered_by
        feedback = response.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self._blocked = f"the prompt was blocked ({feedback.block_reason.value})"
        text = ""
        for candidate in (response.candidates or [])[:1]:
            parts = candidate.content.parts if candidate.content is not None else None
            text = "".join(part.text or "" for part in parts or [] if not part.thought)
            self._finish = candidate.finish_reason or self._finish
        self._text += text
        return text

    def reply(self, model: str) -> ModelReply:
        if self._finish is None and self._blocked is None:
            raise ModelUnavailable(f"expected the end of the answer of {model!r}, found it cut off")
        refusal = self._blocked
        if self._finish in REFUSALS:
            refusal = f"the answer was stopped ({self._finish.value})"
        truncated = self._finish == types.FinishReason.MAX_TOKENS
        return ModelReply(
            self._text,
            _usage(self._usage),
            refusal,
            truncated=truncated,
            answered_by=self._answered_by,
        )


def make_chat(model: str, vendor: Vendor, access: VendorAccess) -> GoogleChat:
    """Return the client of a model's generated content."""
    return GoogleChat(model, vendor, access)


def make_embeddings(
    model: str, vendor: Vendor, access: VendorAccess, dimensions: int | None = None
) -> GoogleEmbeddings:
    """Return the client of an embedding model; `dimensions` is the length to ask for."""
    return GoogleEmbeddings(model, vendor, access, dimensions)


def _client(vendor: Vendor, access: VendorAccess, http: httpx2.AsyncClient) -> genai.Client:
    url = vendor.base_url if access.base_url is None else access.base_url
    check_allowed(url or "")
    once = types.HttpRetryOptions(attempts=1)
    return genai.Client(
        # Given explicitly: the environment could otherwise choose another service.
        vertexai=False,
        api_key=access.api_key or "none",
        http_options=types.HttpOptions(
            base_url=url,
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
    if metadata is None:
        return None
    return Usage(
        input_tokens=metadata.prompt_token_count or 0,
        # Thoughts are charged as output, but counted separately.
        output_tokens=(metadata.candidates_token_count or 0) + (metadata.thoughts_token_count or 0),
        cached_input_tokens=metadata.cached_content_token_count or 0,
    )


@contextmanager
def _translate_errors(model: str, key_variable: str) -> Iterator[None]:
    """Translate errors of the client into errors of `llm.errors`."""
    try:
        yield
    except httpx2.TimeoutException as error:
        raise ModelTimeout(f"expected {model!r} to answer in time, found no answer") from error
    except errors.APIError as error:
        raise _of_status(model, key_variable, error) from error
    except (
        httpx2.HTTPError,
        errors.UnknownApiResponseError,
        JSONDecodeError,
        ValidationError,
    ) as error:
        reason = type(error).__name__ if isinstance(error, ValidationError) else str(error)
        raise ModelUnavailable(f"the connection to {model!r} failed: {reason}") from error


def _of_status(model: str, key_variable: str, error: errors.APIError) -> ModelError:
    if error.code == 400 and "API_KEY_INVALID" in str(error.details):
        return wrong_key(model, key_variable, error.code)
    headers = cast("Any", error.response).headers if error.response is not None else {}
    wait = retry_after_seconds(headers)
    return error_of(
        model,
        error.code,
        error.message or error.status or "",
        key_variable=key_variable,
        retry_after_seconds=_read_delay(error) if wait is None else wait,
    )


def _read_delay(error: errors.APIError) -> float | None:
    details = error.details.get("error", {}) if isinstance(error.details, dict) else {}
    for detail in details.get("details", []) if isinstance(details, dict) else []:
        delay = _DELAY.fullmatch(str(detail.get("retryDelay", "")))
        if delay is not None:
            return float(delay.group(1))
    return None


_MODES = {
    ToolChoice.AUTO: types.FunctionCallingConfigMode.AUTO,
    ToolChoice.NONE: types.FunctionCallingConfigMode.NONE,
    ToolChoice.REQUIRED: types.FunctionCallingConfigMode.ANY,
}


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


def read_message(
    conversation: ToolConversation, response: types.GenerateContentResponse, reply: ModelReply
) -> StepReply:
    """Return the message of a response; a call without an id gets one from its position."""
    candidates = response.candidates or []
    content = candidates[0].content if candidates else None
    calls: list[ToolUse] = []
    for part in (content.parts if content is not None else None) or []:
        if part.function_call is not None:
            place = f"call-{len(conversation.messages)}-{len(calls)}"
            signature = base64.b64encode(part.thought_signature or b"").decode()
            calls.append(
                ToolUse(
                    call_id=part.function_call.id or place,
                    name=part.function_call.name or "",
                    arguments=part.function_call.args or {},
                    signature=signature,
                )
            )
    return StepReply.of(reply, calls)


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
