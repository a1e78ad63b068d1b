"""The model port: ask with typed inputs, or hold a conversation with tools.

A *task* has a prompt file, a type of inputs and a type of outputs. Vendors render the task's prompt
from the inputs. Where none is configured, `llm.missing_model` raises `NoModel`.
Conversations are values that an envelope can carry: one may go on in another process.
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
"""The time share of what prepares an answer, or words a question back."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; those that were read from or written to a cache are input tokens, too."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call for the journal; failed calls are recorded, too.

    `from_cache` marks an answer that another question paid for; `saved_usd` is its cost, or None if
    the price is unknown. `answered_by` is the model that the vendor says answered; empty: it does
    not say.
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
"""The value of a setting without a model."""
_calls: ContextVar[tuple[list[ModelCall], ...]] = ContextVar("model_calls", default=())


class ToolUse(BaseModel, frozen=True, extra="ignore"):
    """A call of a tool in a message of a model.

    `arguments` is an object, or the text that the model wrote if that is no object.
    `signature` is what the vendor wants back with the result; it has no meaning here.
    """

    call_id: str
    name: str
    arguments: JsonValue = Field(default_factory=dict)
    signature: str = ""


class Remark(BaseModel, frozen=True, extra="ignore"):
    """Why the model is asked once more, which the prompt `remark` says to it."""

    has_read_nothing: bool = False
    refused_question: str = Field(default="", description="why its question is not asked")
    is_incomplete: bool = False
    lacks: tuple[str, ...] = Field(default=(), description="what the answer so far lacks")
    analysis: str = Field(default="", description="what the check of the answer says")


class UserMessage(BaseModel, frozen=True, extra="ignore"):
    """The task, or what the model is asked next: a text, or a remark that a prompt words."""

    kind: Literal["user"] = "user"
    text: str = ""
    remark: Remark | None = None


class ModelMessage(BaseModel, frozen=True, extra="ignore"):
    """What a model wrote: a text, calls of tools, or both."""

    kind: Literal["model"] = "model"
    text: str = ""
    calls: tuple[ToolUse, ...] = ()


class ToolMessage(BaseModel, frozen=True, extra="ignore"):
    """The result of one call. Its text is data, whatever it says.

    `sources` are the ids of the passages that it relies on, best first; `text` names them too.
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
    """One kind of model call: its name, its types and its parameters.

    `time_share` is the part of the time limit of a call that it may take: a step that prepares an
    answer leaves time for the answer, and the question goes on without it. `shorten` returns the
    inputs with fewer sources, for a prompt that does not fit into the context window; equal inputs
    if none may be left out.
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
    """A typed output, its usage and cost. `cost_usd` is None if the price is unknown, never 0."""

    output: O
    model: str
    usage: Usage
    cost_usd: Decimal | None
    milliseconds: float
    from_store: bool = False


@dataclass(frozen=True, slots=True)
class PartialText:
    """What an attempt has written so far; `attempt` counts from 1."""

    attempt: int
    text: str


class TextListener:
    """Receives the text of one task. Passing text on never waits: no model waits for its reader.

    An answer may take several attempts: a repeated request, a repair, a further model of a chain
    while a slow one goes on. One attempt at a time is listened to: the first that writes something,
    until it ends. The text of another attempt starts from the beginning.
    """

    def __init__(self, task_name: str) -> None:
        self.task_name = task_name
        self.characters = 0
        """How much was received; grows as long as an answer is being written."""
        self.is_unstreamed = False
        """Whether a model answered that cannot pass its text on while it writes."""
        self.attempts = 0
        """How many attempts were listened to."""
        self._leader: AttemptText | None = None
        self._changed = asyncio.Event()
        self._closed = False

    @contextmanager
    def attempt(self) -> Iterator["AttemptText"]:
        """Receive the text of one attempt, until it ends: another one may follow to repair it."""
        writing = AttemptText(self)
        try:
            yield writing
        finally:
            if self._leader is writing:
                self._leader = None

    def note_progress(self, writing: "AttemptText", characters: int) -> None:
        """Note that an attempt has written more; it is listened to unless another one is."""
        self.characters += characters
        if self._leader is None:
            self.attempts += 1
            self._leader = writing
            writing.number = self.attempts
        if self._leader is writing:
            self._changed.set()

    def note_life(self, characters: int) -> None:
        """Note that a model is working, although it has not written more of its answer."""
        self.characters += characters

    async def wait_for_text(self) -> PartialText | None:
        """Return the text of the present attempt when it has changed; None after `close`."""
        while not self._closed:
            await self._changed.wait()
            self._changed.clear()
            leader = self._leader
            if leader is not None:
                return PartialText(leader.number, leader.text)
        return None

    async def has_begun_within(self, seconds: float) -> bool:
        """Return whether text has come, or the listening has ended, after at most so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """End the listening, also for a caller that waits for text."""
        self._closed = True
        self._changed.set()


@dataclass(slots=True)
class AttemptText:
    """One attempt at an answer, as its model writes it."""

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
        """Return the answer, or raise an error of `llm.errors`.

        `skip` starts that many models further down a fallback chain (a chain shorter than that
        starts at its last model). `listener` receives the text while it is written.
        """
        ...


class ScoreModel(Protocol):
    """Scores texts by how well they answer a question; the higher, the better."""

    name: str

    async def score(self, question: str, texts: Sequence[str], run: Run) -> Sequence[float]:
        """Return a score for each text, in their order, or raise an error of `llm.errors`."""
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
    """A tool as a model knows it; `input_schema` is a JSON schema of an object."""

    name: str
    description: str
    input_schema: dict[str, JsonValue]


class ToolConversation(BaseModel, frozen=True, extra="ignore"):
    """A conversation up to the point where the model writes next.

    `task` names the kind of call in the journal. The results of all calls of a message follow that
    message. With `prompt`, the prompt of the task is rendered from it for a vendor, in place of
    `system` and of the first message. `sharing` are the groups of the person whose equal
    conversation in another question may take over the next message; None: none may.
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
        """Return the next message, or raise an error of `llm.errors`.

        The calls in it are not checked: their names and arguments are whatever the model wrote.
        """
        ...


def keep_first_half(name: str, **further: JsonValue) -> Callable[[I], I]:
    """Return a `Task.shorten` that keeps the first half of a list: the best items come first.

    Inputs with a field `left_out` count there what was left out; `further` are other changes.
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
    """Return the conversation with half of the text of its tool results; equal if it has none.

    Only the longest results lose text, at their end: the best passages come first.
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
    """Return the model, or None where no model is configured."""
    return None if model.name == OFFLINE else model


@contextmanager
def record_calls() -> Iterator[list[ModelCall]]:
    """Yield a list that every call made inside is appended to, also from tasks started inside.

    Blocks nest: a call is in the list of each block around it. The list stays readable after an
    error, which is when the calls matter most.
    """
    calls: list[ModelCall] = []
    token = _calls.set((*_calls.get(), calls))
    try:
        yield calls
    finally:
        _calls.reset(token)


def record(call: ModelCall) -> None:
    """Append a call to the lists of the blocks around this point; without one it is dropped."""
    for calls in _calls.get():
        calls.append(call)


def _cut(text: str, limit: int) -> str:
    """Return the beginning of a text, up to the end of a line or a word, with a mark."""
    if len(text) <= limit:
        return text
    ends = (text.rfind(mark, limit // 2, limit) for mark in ("\n", " "))
    end = next((one for one in ends if one >= 0), limit)
    return f"{text[:end]}\n... [{len(text) - end} characters left out]"
