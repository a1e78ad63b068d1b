"""OpenAI's chat completions and embeddings, and those of every compatible server."""

import json
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from json import JSONDecodeError
from typing import Any, cast

import httpx2
import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion import Choice
from openai.types.completion_usage import CompletionUsage
from pydantic import JsonValue, ValidationError

from llm.errors import (
    ModelTimeout,
    ModelUnavailable,
    QuotaExhausted,
    Refused,
    UnknownModel,
)
from llm.port import (
    ModelMessage,
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

OWN_NAME = "openai"
REASONING = re.compile(r"(gpt-[5-9]|gpt-\d\d|o\d)(?!.*-chat)")
REASONING_TOKENS = 4096
"""Additional tokens for thoughts: they count against the same limit as the answer."""

EMBEDDING_BATCH = 256
_STREAMED = "text/event-stream"


class OpenAIChat:
    """The chat completions of one model."""

    def __init__(self, model: str, vendor: Vendor, access: VendorAccess) -> None:
        self._model = model
        self._client = _client(vendor, access)
        self._key_variable = vendor.key_variable
        self._compatible = access.base_url is not None or vendor.name != OWN_NAME

    async def complete(self, request: Request) -> ModelReply:
        with _translate_errors(self._model, self._key_variable):
            completion = cast(
                "ChatCompletion",
                await self._client.chat.completions.create(**self._parameters(request)),
            )
            return _reply(self._model, completion)

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        with _translate_errors(self._model, self._key_variable):
            raw = await self._client.chat.completions.with_raw_response.create(
                **self._parameters(request),
                stream=True,
                stream_options={"include_usage": True},
            )
            if _STREAMED not in raw.headers.get("content-type", _STREAMED):
                yield await self._read_whole(raw.http_response)
                return
            async with cast("openai.AsyncStream[ChatCompletionChunk]", raw.parse()) as stream:
                gathered = _OpenAiCompletion()
                async for chunk in stream:
                    yield Delta(gathered.add(chunk))
            yield Delta("", gathered.reply(self._model))

    async def converse(self, request: StepRequest) -> StepReply:
        with _translate_errors(self._model, self._key_variable):
            completion = cast(
                "ChatCompletion",
                await self._client.chat.completions.create(
                    model=self._model,
                    timeout=request.timeout_seconds,
                    **make_step_parameters(request.conversation),
                    **sampling(self._model, request, compatible=self._compatible),
                ),
            )
            reply = _reply(self._model, completion)
            return read_step(completion.choices[0], reply)

    async def _read_whole(self, response: httpx2.Response) -> Delta:
        """Return the completion of a server that sends no streams: it is charged already."""
        try:
            completion = ChatCompletion.model_validate_json(await response.aread())
        except ValidationError as error:
            raise ModelUnavailable(
                f"expected a completion of {self._model!r}, found none in the response"
            ) from error
        finally:
            await response.aclose()
        reply = _reply(self._model, completion)
        return Delta(reply.text, reply, is_unstreamed=True)

    async def close(self) -> None:
        await self._client.close()

    def _parameters(self, request: Request) -> dict[str, Any]:
        messages = [
            {"role": "user" if turn.speaker == "user" else "assistant", "content": turn.text}
            for turn in request.turns
        ]
        if request.system:
            messages.insert(0, {"role": "system", "content": request.system})
        return {
            "model": self._model,
            "messages": messages,
            **_response_format(request),
            "timeout": request.timeout_seconds,
            **sampling(self._model, request, compatible=self._compatible),
        }


class OpenAIEmbeddings:
    """The embeddings of one model."""

    batch = EMBEDDING_BATCH
    forms = ""

    def __init__(
        self, model: str, vendor: Vendor, access: VendorAccess, dimensions: int | None
    ) -> None:
        self._model = model
        self._dimensions = openai.omit if dimensions is None else dimensions
        self._client = _client(vendor, access)
        self._key_variable = vendor.key_variable

    async def embed(
        self, texts: Sequence[str], timeout_seconds: float, *, are_questions: bool
    ) -> tuple[Sequence[Sequence[float]], Usage | None]:
        with _translate_errors(self._model, self._key_variable):
            answer = await self._client.embeddings.create(
                model=self._model,
                input=list(texts),
                encoding_format="float",
                dimensions=self._dimensions,
                timeout=timeout_seconds,
            )
            ordered = sorted(answer.data, key=lambda item: item.index)
            return [item.embedding for item in ordered], Usage(answer.usage.prompt_tokens)

    async def close(self) -> None:
        await self._client.close()


def sampling(model: str, request: Request | StepRequest, *, compatible: bool) -> dict[str, Any]:
    """Return the token limit and the sampling parameters that `model` accepts.

    Reasoning models accept only the newer parameter on any server; they take no temperature and
    need additional tokens for their thoughts. Other models of compatible servers accept the older
    parameter.
    """
    known = request.capabilities
    reasons = REASONING.match(model.rpartition("/")[2]) is not None
    thinks = reasons or not known.has_temperature
    usual = "max_tokens" if compatible and not reasons else "max_completion_tokens"
    chosen: dict[str, Any] = {
        known.token_parameter or usual: request.max_output_tokens
        + (REASONING_TOKENS if thinks else 0)
    }
    if not thinks:
        chosen["temperature"] = request.temperature
    if reasons and known.has_reasoning_effort:
        chosen["reasoning_effort"] = "low"
    return chosen


class _OpenAiCompletion:
    """Joins the pieces of a streamed completion."""

    def __init__(self) -> None:
        self._text = ""
        self._answered_by = ""
        self._refusal = ""
        self._finish = ""
        self._usage: CompletionUsage | None = None

    def add(self, chunk: ChatCompletionChunk) -> str:
        self._usage = chunk.usage if chunk.usage is not None else self._usage
        self._answered_by = getattr(chunk, "model", None) or self._answered_by
        text = ""
        for choice in chunk.choices[:1]:
            text = choice.delta.content or ""
            self._refusal += choice.delta.refusal or ""
            self._finish = choice.finish_reason or self._finish
        self._text += text
        return text

    def reply(self, model: str) -> ModelReply:
        if not self._finish:
            raise ModelUnavailable(f"expected the end of the stream of {model!r}, found it cut off")
        refusal = _refusal(self._refusal, self._finish)
        return ModelReply(
            self._text,
            _usage(self._usage),
            refusal,
            truncated=self._finish == "length",
            answered_by=self._answered_by,
        )


def make_chat(model: str, vendor: Vendor, access: VendorAccess) -> OpenAIChat:
    """Return the client of a model's chat completions."""
    return OpenAIChat(model, vendor, access)


def make_embeddings(
    model: str, vendor: Vendor, access: VendorAccess, dimensions: int | None = None
) -> OpenAIEmbeddings:
    """Return the client of an embedding model; `dimensions` is the length to ask for."""
    return OpenAIEmbeddings(model, vendor, access, dimensions)


def _client(vendor: Vendor, access: VendorAccess) -> openai.AsyncOpenAI:
    url = vendor.base_url if access.base_url is None else access.base_url
    check_allowed(url or "")
    # A compatible server without keys still expects the header.
    return openai.AsyncOpenAI(api_key=access.api_key or "none", base_url=url, max_retries=0)


def _response_format(request: Request) -> dict[str, Any]:
    if request.capabilities.structure == "text":
        return {}
    if request.capabilities.structure == "object":
        return {"response_format": {"type": "json_object"}}
    schema = {"name": request.task, "schema": request.schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _reply(model: str, completion: ChatCompletion) -> ModelReply:
    # The client does not check that a response with status 200 is a completion.
    if not getattr(completion, "choices", None):
        raise ModelUnavailable(f"expected a completion of {model!r}, found none in the response")
    choice = completion.choices[0]
    return ModelReply(
        text=choice.message.content or "",
        usage=_usage(completion.usage),
        refusal=_refusal(choice.message.refusal, choice.finish_reason),
        truncated=choice.finish_reason == "length",
        # Compatible servers may leave it out.
        answered_by=getattr(completion, "model", None) or "",
    )


def _refusal(message: str | None, finish: str | None) -> str | None:
    if message:
        return message
    return "stopped by the vendor's content filter" if finish == "content_filter" else None


def _usage(usage: CompletionUsage | None) -> Usage | None:
    if usage is None:
        return None
    details = usage.prompt_tokens_details
    cached = details.cached_tokens if details is not None else None
    return Usage(usage.prompt_tokens, usage.completion_tokens, cached if cached is not None else 0)


@contextmanager
def _translate_errors(model: str, key_variable: str) -> Iterator[None]:
    """Turn what the client raises into our errors."""
    try:
        yield
    except openai.APITimeoutError as error:
        raise ModelTimeout(f"expected {model!r} to answer in time, found no answer") from error
    except openai.APIStatusError as error:
        raise _of_status(model, key_variable, error) from error
    except (openai.OpenAIError, httpx2.HTTPError, JSONDecodeError) as error:
        reason = str(error) or type(error).__name__
        raise ModelUnavailable(f"the connection to {model!r} failed: {reason}") from error


def _of_status(model: str, key_variable: str, error: openai.APIStatusError) -> Exception:
    if error.code == "insufficient_quota":
        return QuotaExhausted(f"the account of {model!r} has used up its quota")
    if error.code == "model_not_found":
        return UnknownModel(f"the vendor knows no model {model!r}")
    if error.code == "content_filter":
        return Refused(f"{model!r}: the vendor's content filter refused the request")
    return error_of(
        model,
        error.status_code,
        error.message,
        key_variable=key_variable,
        parameter=error.param or "",
        retry_after_seconds=retry_after_seconds(error.response.headers),
    )


def make_step_parameters(conversation: ToolConversation) -> dict[str, Any]:
    """Return the messages and the tools of a request."""
    messages = [_make_message(message) for message in conversation.messages]
    if conversation.system:
        messages.insert(0, {"role": "system", "content": conversation.system})
    if not conversation.tools:
        return {"messages": messages}
    tools = [
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
    choice = conversation.tool_choice.value
    return {"messages": messages, "tools": tools, "tool_choice": choice}


def read_step(choice: Choice, reply: ModelReply) -> StepReply:
    """Return the message of a completion, with its calls."""
    calls = (
        ToolUse(
            call_id=call.id,
            name=call.function.name,
            arguments=read_arguments(call.function.arguments),
        )
        for call in choice.message.tool_calls or ()
        if call.type == "function"
    )
    return StepReply.of(reply, calls)


def read_arguments(text: str) -> JsonValue:
    """Return the arguments that a model wrote as JSON, or its text if that is no JSON."""
    try:
        found: JsonValue = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return found


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
