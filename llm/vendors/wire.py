"""Requests to a vendor, its replies, and the ports of vendors' clients."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol

from pydantic import JsonValue

from llm.conversation import ModelMessage, StopReason, ToolConversation
from llm.port import Usage
from llm.vendors.capabilities import Capabilities

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
class StepReply:
    """The next message; `usage`, `refusal` and `answered_by` are as in `ModelReply`."""

    message: ModelMessage
    stop: StopReason
    usage: Usage | None
    refusal: str | None = None
    answered_by: str = ""


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
