"""Adds the ids of the current delivery to log events."""

from contextvars import ContextVar

from structlog.typing import EventDict, WrappedLogger

from broker.values import Delivery

PRESENT: ContextVar[Delivery | None] = ContextVar("present_delivery", default=None)
"""The delivery of the current task; setting it once is cheaper than binding each id."""


def add_message_ids(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """structlog processor that adds the conversation and message id of the current delivery."""
    delivery = PRESENT.get()
    if delivery is not None:
        event.setdefault("conversation_id", delivery.question.conversation_id)
        event.setdefault("message_id", delivery.question.message_id)
    return event
