"""Knows which delivery is worked on here, for the log."""

from contextvars import ContextVar

from structlog.typing import EventDict, WrappedLogger

from broker.values import Delivery

PRESENT: ContextVar[Delivery | None] = ContextVar("present_delivery", default=None)
"""Set once in the task of each delivery; cheaper than binding each of its names."""


def add_message_ids(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Add conversation and message to what is logged while a delivery is worked on."""
    delivery = PRESENT.get()
    if delivery is not None:
        event.setdefault("conversation_id", delivery.question.conversation_id)
        event.setdefault("message_id", delivery.question.message_id)
    return event
