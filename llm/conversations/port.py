"""The port of models that hold a conversation with tools."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, runtime_checkable

from llm.conversations.turns import ModelMessage, StopReason, ToolConversation
from llm.port import Usage


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

    async def converse(self, conversation: ToolConversation, *, skip: int = 0) -> ModelStep:
        """Return the next message, or raise an error of `llm.errors`.

        The calls in it are not checked: their names and arguments are whatever the model wrote.
        """
        ...
