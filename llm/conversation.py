"""Conversations with tools: the messages, and the port of models that hold one.

They are values that an envelope can carry: a conversation may go on in another process.
"""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, Field, JsonValue, SerializeAsAny

from envelope.run import Run
from llm.port import Usage


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


class ToolDescription(BaseModel, frozen=True, extra="forbid"):
    """A tool as a model knows it; `input_schema` is a JSON schema of an object."""

    name: str
    description: str
    input_schema: dict[str, JsonValue]


class ToolUse(BaseModel, frozen=True, extra="forbid"):
    """A call of a tool in a message of a model.

    `arguments` is an object, or the text that the model wrote if that is no object.
    `signature` is what the vendor wants back with the result; it has no meaning here.
    """

    call_id: str
    name: str
    arguments: JsonValue = Field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    signature: str = ""


class UserMessage(BaseModel, frozen=True, extra="forbid"):
    """The task, or what the model is asked next."""

    kind: Literal["user"] = "user"
    text: str


class ModelMessage(BaseModel, frozen=True, extra="forbid"):
    """What a model wrote: a text, calls of tools, or both."""

    kind: Literal["model"] = "model"
    text: str = ""
    calls: tuple[ToolUse, ...] = ()


class ToolMessage(BaseModel, frozen=True, extra="forbid"):
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


class ToolConversation(BaseModel, frozen=True, extra="forbid"):
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
