"""The model port: typed tasks, and conversations with tools.

A *task* has a prompt file, an input type, and an output type. Vendor models render the prompt from
the inputs. If no model is configured, `llm.missing_model` raises `NoModel`.

A conversation is a value that can be stored in an envelope, so that another process can continue
it.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Generic, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, Field, JsonValue, SerializeAsAny

from envelope.run import Run

I = TypeVar("I", bound=BaseModel)  # noqa: E741 - the pair I and O is the usual one
O = TypeVar("O", bound=BaseModel)  # noqa: E741
PREPARING_SHARE = 0.25
"""The `time_share` of tasks that prepare an answer or word a clarification."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; `input_tokens` includes those read from or written to a cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call for the journal, including failed calls.

    `from_cache` is true if another question paid for the answer; `saved_usd` is its cost, or None
    if unknown. `answered_by` is the model named in the vendor's reply, or empty.
    """

    task: str
    model: str
    usage: Usage
    cost_usd: Decimal | None
    milliseconds: float
    error: str | None = None
    from_store: bool = False
    prompt_hash: str = ""
    from_cache: bool = False
    saved_usd: Decimal | None = Decimal(0)
    answered_by: str = ""


OFFLINE = "offline"
"""The value of a model setting that disables the model."""
_calls: ContextVar[tuple[list[ModelCall], ...]] = ContextVar("model_calls", default=())


class ToolUse(BaseModel, frozen=True, extra="ignore"):
    """A tool call in a message from a model.

    `arguments` is an object, or the text of the model if it is not a JSON object. `signature` is an
    opaque value that the vendor expects back with the result.
    """

    call_id: str
    name: str
    arguments: JsonValue = Field(default_factory=dict)
    signature: str = ""


class Remark(BaseModel, frozen=True, extra="ignore"):
    """The reason why the model must continue; the prompt `remark` converts it to a message."""

    has_read_nothing: bool = False
    refused_question: str = Field(
        default="", description="why the model's question to the user is not asked"
    )
    is_incomplete: bool = False
    lacks: tuple[str, ...] = Field(default=(), description="what is missing from the answer so far")
    analysis: str = Field(default="", description="the result of the check of the answer")


class UserMessage(BaseModel, frozen=True, extra="ignore"):
    """A message to the model: text, or a remark that is rendered with a prompt."""

    kind: Literal["user"] = "user"
    text: str = ""
    remark: Remark | None = None


class ModelMessage(BaseModel, frozen=True, extra="ignore"):
    """A message from the model: text, tool calls, or both."""

    kind: Literal["model"] = "model"
    text: str = ""
    calls: tuple[ToolUse, ...] = ()


class ToolMessage(BaseModel, frozen=True, extra="ignore"):
    """The result of a tool call. Its text is data, never instructions.

    `sources` contains the IDs of the passages that it relies on, best first; `text` names them as
    well.
    """

    kind: Literal["tool"] = "tool"
    call_id: str
    name: str
    text: str
    is_error: bool = False
    sources: tuple[str, ...] = ()


Message = Annotated[UserMessage | ModelMessage | ToolMessage, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True)
class Task(Generic[I, O]):
    """One type of model call, defined by its name, its input and output types, and its parameters.

    `time_share` is the share of a call's time limit that the task may take, so that a preparatory
    step leaves time for the answer. `shorten` returns inputs with fewer sources for a prompt that
    does not fit into the context window, or equal inputs if nothing can be omitted.
    """

    name: str
    inputs: type[I]
    output: type[O]
    temperature: float = 0.0
    max_output_tokens: int = 2048
    time_share: float = 1.0
    shorten: Callable[[I], I] | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswer(Generic[O]):
    """A typed output with its usage and cost. If the cost is unknown, `cost_usd` is None, never
    0.
    """

    output: O
    model: str
    usage: Usage
    cost_usd: Decimal | None
    milliseconds: float
    from_store: bool = False


@dataclass(frozen=True, slots=True)
class PartialText:
    """The text of an attempt so far; `attempt` counts from 1."""

    attempt: int
    text: str


class TextListener:
    """Receives the streamed text of one task, without making the model wait for the reader.

    An answer may take several attempts: a retry, a repair, a parallel model of a chain. One attempt
    is followed at a time: the first one that writes text, until it ends. The text of the next
    attempt starts from the beginning.
    """

    def __init__(self, task_name: str) -> None:
        self.task_name = task_name
        self.characters = 0
        """The number of characters received in all attempts."""
        self.is_unstreamed = False
        """Whether an answer arrived in one piece because the server does not stream."""
        self.attempts = 0
        """The number of attempts that were followed."""
        self._leader: AttemptText | None = None
        self._changed = asyncio.Event()
        self._closed = False

    @contextmanager
    def attempt(self) -> Iterator["AttemptText"]:
        """Receive the text of one attempt within the context."""
        writing = AttemptText(self)
        try:
            yield writing
        finally:
            if self._leader is writing:
                self._leader = None

    def note_progress(self, writing: "AttemptText", characters: int) -> None:
        """Record new text of an attempt; follow the attempt unless another attempt is being
        followed.
        """
        self.characters += characters
        if self._leader is None:
            self.attempts += 1
            self._leader = writing
            writing.number = self.attempts
        if self._leader is writing:
            self._changed.set()

    def note_life(self, characters: int) -> None:
        """Record that a model is working, although its answer has no new text."""
        self.characters += characters

    async def wait_for_text(self) -> PartialText | None:
        """Wait for new text of the current attempt and return it, or None after `close`."""
        while not self._closed:
            await self._changed.wait()
            self._changed.clear()
            leader = self._leader
            if leader is not None:
                return PartialText(leader.number, leader.text)
        return None

    async def has_begun_within(self, seconds: float) -> bool:
        """Return whether text has arrived, or `close` was called, within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Stop listening, and release a caller that is waiting for text."""
        self._closed = True
        self._changed.set()


@dataclass(slots=True)
class AttemptText:
    """The text of one attempt at an answer."""

    _listener: TextListener
    number: int = 0
    text: str = ""

    def add(self, text: str) -> None:
        """Append the next piece of text."""
        if text:
            self.text += text
            self._listener.note_progress(self, len(text))


class Model(Protocol):
    """A model or a chain of models; `name` is `model@provider`, or `offline`."""

    name: str

    async def ask(
        self,
        task: Task[I, O],
        inputs: I,
        run: Run,
        *,
        skip: int = 0,
        listener: TextListener | None = None,
    ) -> ModelAnswer[O]:
        """Return the answer; raises errors from `llm.errors`.

        `skip` skips that many models of a fallback chain (at most all but the last). `listener`
        receives the text while it is written.
        """
        ...


class ScoreModel(Protocol):
    """Scores how well texts answer a question; higher is better."""

    name: str

    async def score(self, question: str, texts: Sequence[str], run: Run) -> Sequence[float]:
        """Return a score for each text, in order; raises errors from `llm.errors`."""
        ...


class StopReason(StrEnum):
    """Why a model stopped writing."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"


class ToolChoice(StrEnum):
    """Whether a model may call tools in its next message."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


class ToolDescription(BaseModel, frozen=True, extra="ignore"):
    """The description of a tool for a model; `input_schema` is a JSON schema of an object."""

    name: str
    description: str
    input_schema: dict[str, JsonValue]


class ToolConversation(BaseModel, frozen=True, extra="ignore"):
    """A conversation up to the next message of the model.

    `task` is the type of the call in the journal. The results of all calls of a message follow that
    message. If `prompt` is set, vendor models render the task's prompt from it; the rendered prompt
    replaces `system` and the first message. `sharing` contains the groups of the user; equal
    conversations of users with the same groups may share the next message. None disables sharing.
    """

    task: str
    system: str = ""
    messages: tuple[Message, ...]
    tools: tuple[ToolDescription, ...] = ()
    tool_choice: ToolChoice = ToolChoice.AUTO
    temperature: float = 0.0
    max_output_tokens: int = 2048
    prompt: SerializeAsAny[BaseModel] | None = None
    sharing: tuple[str, ...] | None = None

    def extend(self, *messages: UserMessage | ModelMessage | ToolMessage) -> "ToolConversation":
        """Return the conversation with further messages."""
        return self.model_copy(update={"messages": (*self.messages, *messages)})


@dataclass(frozen=True, slots=True)
class ModelStep:
    """The next message of a model, with its usage and cost; `cost_usd` is None if unknown."""

    message: ModelMessage
    stop: StopReason
    model: str
    usage: Usage
    cost_usd: Decimal | None
    milliseconds: float
    from_store: bool = False


@runtime_checkable
class ConversationModel(Protocol):
    """A model or a chain of models that may call tools; `name` is as in `llm.port.Model`."""

    name: str

    async def converse(
        self, conversation: ToolConversation, run: Run, *, skip: int = 0
    ) -> ModelStep:
        """Return the next message; raises errors from `llm.errors`.

        Tool calls in the message are not validated: a model may write any name and any arguments.
        """
        ...


def keep_first_half(name: str, **further: JsonValue) -> Callable[[I], I]:
    """Return a `Task.shorten` that keeps the first half of a list, which is sorted with the best
    items first.

    A field `left_out` of the inputs counts the omitted items; `further` contains other changed
    fields.
    """

    def shorten(inputs: I) -> I:
        items = getattr(inputs, name)
        kept = items[: len(items) // 2]
        if not kept:
            return inputs
        counted = getattr(inputs, "left_out", None)
        count = {} if counted is None else {"left_out": counted + len(items) - len(kept)}
        return inputs.model_copy(update={name: kept, **count, **further})

    return shorten


def shorten_results(conversation: ToolConversation) -> ToolConversation:
    """Return the conversation with the text of its tool results reduced by half.

    Only the longest results are truncated, at their end, because the best passages come first.
    """
    lengths = sorted(
        len(message.text) for message in conversation.messages if isinstance(message, ToolMessage)
    )
    room, limit = sum(lengths) // 2, 0
    for place, length in enumerate(lengths):
        limit = room // (len(lengths) - place)
        if length > limit:
            break
        room -= length
    messages = (
        message.model_copy(update={"text": _cut(message.text, limit)})
        if isinstance(message, ToolMessage)
        else message
        for message in conversation.messages
    )
    return conversation.model_copy(update={"messages": tuple(messages)})


def find_model(model: Model) -> Model | None:
    """Return the model, or None if it is the missing model."""
    return None if model.name == OFFLINE else model


@contextmanager
def record_calls() -> Iterator[list[ModelCall]]:
    """Yield a list to which every call in the block is appended, including calls made by tasks that
    it starts.

    Blocks can be nested: a call is in the list of each enclosing block. The list stays usable after
    an error.
    """
    calls: list[ModelCall] = []
    token = _calls.set((*_calls.get(), calls))
    try:
        yield calls
    finally:
        _calls.reset(token)


def record(call: ModelCall) -> None:
    """Append a call to the lists of the enclosing `record_calls` blocks, if any."""
    for calls in _calls.get():
        calls.append(call)


def _cut(text: str, limit: int) -> str:
    """Truncate the text at the end of a line or word, and append a marker."""
    if len(text) <= limit:
        return text
    ends = (text.rfind(mark, limit // 2, limit) for mark in ("\n", " "))
    end = next((position for position in ends if position >= 0), limit)
    return f"{text[:end]}\n... [{len(text) - end} characters left out]"
