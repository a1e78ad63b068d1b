"""Requests to a vendor, its replies and errors, and the ports of vendors' clients.

The switch that keeps real models out of reach of tests is here, too.
"""

import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from types import MappingProxyType
from typing import Literal, Protocol
from urllib.parse import urlsplit

from pydantic import JsonValue

from llm.errors import (
    MissingKey,
    ModelError,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
    RealRequestForbidden,
    RejectedRequest,
    UnknownModel,
)
from llm.port import ModelMessage, StopReason, ToolConversation, ToolUse, Usage

_forbidden = False


def forbid_real_requests() -> None:
    """Let vendors be asked on this machine only, until the process ends."""
    global _forbidden
    _forbidden = True


def check_allowed(base_url: str) -> None:
    """Raise `RealRequestForbidden` when requests to `base_url` are forbidden in this process."""
    if _forbidden and not _is_loopback(urlsplit(base_url).hostname):
        raise RealRequestForbidden(
            f"expected a server on this machine, found {base_url!r}: "
            "real requests are forbidden in this process"
        )


def _is_loopback(host: str | None) -> bool:
    if host is None:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


Structure = Literal["schema", "object", "text"]
"""How a request defines the form of the answer: JSON schema, any JSON object, or in the prompt."""
TokenParameter = Literal["max_completion_tokens", "max_tokens"]
_SIMPLER: dict[Structure, Structure] = {"schema": "object", "object": "text"}
_STREAM = re.compile(r"\bstream(?:ing|s|_options)?\b")
_TOO_LONG = ("context_length", "context length", "maximum context", "too long", "too large")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The parameters that a model's server accepts.

    `token_parameter` limits the output tokens; None means the usual one for the model's name.
    Unless `structure` is "schema", the prompt contains the schema. A server that `streams` sends an
    answer while it is written.
    """

    structure: Structure = "schema"
    token_parameter: TokenParameter | None = None
    has_temperature: bool = True
    has_reasoning_effort: bool = True
    streams: bool = True


def reduce_capabilities(known: Capabilities, error: RejectedRequest) -> Capabilities | None:
    """Return reduced capabilities after a rejection, or None if the request itself is the reason.

    A rejection that names no parameter may concern the schema; one about length never does.
    """
    message = f"{error.parameter} {error}".lower()
    if any(words in message for words in _TOO_LONG):
        return None
    if known.streams and _STREAM.search(message):
        return replace(known, streams=False)
    if "reasoning" in message:
        return replace(known, has_reasoning_effort=False)
    if "temperature" in message:
        return replace(known, has_temperature=False)
    token_parameter = _read_other_parameter(message)
    if token_parameter is not None:
        return replace(known, token_parameter=token_parameter)
    simpler = _SIMPLER.get(known.structure)
    if simpler is None or (error.parameter and "response_format" not in message):
        return None
    return replace(known, structure=simpler)


def _read_other_parameter(message: str) -> TokenParameter | None:
    """Return the parameter for output tokens that a rejection demands, or None.

    The rejected one is named first: "'max_tokens' is not supported, use 'max_completion_tokens'".
    """
    older, newer = message.find("max_tokens"), message.find("max_completion_tokens")
    if older < 0 and newer < 0:
        return None
    is_older_rejected = newer < 0 or 0 <= older < newer
    return "max_completion_tokens" if is_older_rejected else "max_tokens"


Schema = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One turn of the conversation with a model."""

    speaker: Literal["user", "model"]
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """One request for an output of `schema`; `capabilities` are what the server accepts.

    `task` is the name of the task, under which a vendor gets the schema; `time_share` is the part
    of the time limit that it may take.
    """

    system: str
    turns: tuple[ModelTurn, ...]
    task: str
    schema: Schema
    temperature: float
    max_output_tokens: int
    timeout_seconds: float
    capabilities: Capabilities = field(default_factory=Capabilities)
    time_share: float = 1.0


@dataclass(frozen=True, slots=True)
class StepRequest:
    """One request for the next message of a conversation with tools."""

    conversation: ToolConversation
    timeout_seconds: float
    capabilities: Capabilities = field(default_factory=Capabilities)

    @property
    def temperature(self) -> float:
        """The temperature that the conversation asks for."""
        return self.conversation.temperature

    @property
    def max_output_tokens(self) -> int:
        """The limit of the next message."""
        return self.conversation.max_output_tokens


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The reply of a model.

    `usage` is None if the vendor does not report it; `refusal` has the reason of a refusal;
    `truncated` is true if the reply reached the token limit. `answered_by` is the model that the
    vendor says answered; empty: it does not say.
    """

    text: str
    usage: Usage | None
    refusal: str | None = None
    truncated: bool = False
    answered_by: str = ""


@dataclass(frozen=True, slots=True)
class StepReply:
    """The next message; `usage`, `refusal` and `answered_by` are as in `ModelReply`."""

    message: ModelMessage
    stop: StopReason
    usage: Usage | None
    refusal: str | None = None
    answered_by: str = ""

    @classmethod
    def of(cls, reply: ModelReply, calls: Iterable[ToolUse]) -> "StepReply":
        """Return the step of a reply with the calls that stand in it."""
        message = ModelMessage(text=reply.text, calls=tuple(calls))
        stop = StopReason.TOOL_USE if message.calls else StopReason.END_TURN
        return cls(
            message,
            StopReason.MAX_TOKENS if reply.truncated else stop,
            reply.usage,
            reply.refusal,
            reply.answered_by,
        )


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a streamed reply; the last one has `reply`, with the whole text and the usage.

    `is_unstreamed` marks the only piece of a server that does not stream.
    """

    text: str
    reply: ModelReply | None = None
    is_unstreamed: bool = False


class ChatClient(Protocol):
    """A vendor's client: one request, no retries; every failure is an error of `llm.errors`."""

    async def complete(self, request: Request) -> ModelReply: ...

    def stream(self, request: Request) -> AsyncGenerator[Delta, None]: ...

    async def converse(self, request: StepRequest) -> StepReply: ...

    async def close(self) -> None: ...


class EmbeddingClient(Protocol):
    """A vendor's client for embeddings; takes at most `batch` texts at once.

    `forms` names how it embeds questions and documents differently; empty: it does not.
    """

    batch: int
    forms: str

    async def embed(
        self, texts: Sequence[str], timeout_seconds: float, *, are_questions: bool
    ) -> tuple[Sequence[Sequence[float]], Usage | None]:
        """Return a vector for each text, and the usage if the vendor reports it."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RerankForm:
    """The body of a request: `texts` is the name of the list of texts, `further` is added as is."""

    texts: str = "documents"
    further: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))

    def make_body(self, model: str, question: str, texts: Sequence[str]) -> dict[str, JsonValue]:
        """Return the body of a request."""
        return {"model": model, "query": question, self.texts: list(texts), **self.further}


TEI = RerankForm("texts", MappingProxyType({"truncate": True}))
"""The form of Text Embeddings Inference."""


def choose_other_form(form: RerankForm, rejection: str) -> RerankForm | None:
    """Return the form that a rejected request should have had, or None if it was not the form.

    A server that wants the form of Text Embeddings Inference says that `texts` is missing.
    """
    return TEI if form != TEI and "`texts`" in rejection else None


MESSAGE_CHARACTERS = 200
"""The number of characters of a vendor's message that an error repeats."""


def wrong_key(model: str, key_variable: str, status: int) -> MissingKey:
    """Return the error for a refused key, without the message: it repeats parts of the key."""
    return MissingKey(
        f"expected a key in {key_variable} that the vendor accepts for {model!r}, found that it "
        f"was refused (status {status})"
    )


def error_of(
    model: str,
    status: int,
    message: str,
    *,
    key_variable: str,
    parameter: str = "",
    retry_after_seconds: float | None = None,
) -> ModelError:
    """Return the error for a status of 400 or above.

    `message` is the vendor's message, `parameter` the part of the request that it names.
    """
    message = " ".join(message.split())[:MESSAGE_CHARACTERS]
    if status in {401, 403}:
        return wrong_key(model, key_variable, status)
    if status == 404:
        return UnknownModel(f"the vendor knows no model {model!r}: {message}")
    if status == 429:
        return RateLimited(
            f"the vendor limits the rate of {model!r}: {message}",
            retry_after_seconds=retry_after_seconds,
        )
    if status >= 500 or status in {408, 409}:
        return ModelUnavailable(
            f"the vendor of {model!r} failed with status {status}: {message}",
            retry_after_seconds=retry_after_seconds,
        )
    if status == 402:
        return QuotaExhausted(f"the vendor requires payment for {model!r}: {message}")
    return RejectedRequest(
        f"the vendor rejects the request to {model!r} ({status}): {message}", parameter=parameter
    )


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After`, in any of its forms, or None without it."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
