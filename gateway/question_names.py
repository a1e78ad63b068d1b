"""Names the questions of a channel, and their traces."""

import os
from functools import lru_cache

from envelope.question import Question, qualify_conversation
from gateway.errors import MessageError
from gateway.text import check_name

NAMES = 1024
"""How many checked names of questions are cached: one request names its question repeatedly."""


@lru_cache(NAMES)
def name_question(
    tenant: str, assistant: str, channel: str, conversation_id: str, message_id: str
) -> Question:
    """Return the question that identifies a message; raises `MessageError` for an invalid id."""
    what = "conversation id"
    try:
        qualified = qualify_conversation(channel, check_name(conversation_id, what))
    except ValueError as error:
        raise MessageError(str(error)) from error
    return Question(
        tenant=tenant,
        assistant=assistant,
        conversation_id=check_name(qualified, what),
        message_id=check_name(message_id, "message id"),
    )


def make_trace_parent() -> str:
    """Return a new trace and span in the format of W3C Trace Context."""
    drawn = os.urandom(24).hex()
    return f"00-{drawn[:32]}-{drawn[32:]}-01"
