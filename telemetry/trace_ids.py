"""Derives the ids of a trace from the identity of its question, for every process alike."""

import hashlib

from envelope.question import Question


def find_trace_id(question: Question) -> int:
    """Return the id of a question's trace: the same in every process."""
    names = (question.tenant, question.assistant, question.conversation_id, question.message_id)
    return int.from_bytes(hashlib.sha256("\x00".join(names).encode()).digest()[:16], "big") or 1


def find_root_id(trace_id: int) -> int:
    """Return the id of the first span of a trace."""
    return make_span_id(trace_id, 0)


def make_span_id(trace_id: int, number: int) -> int:
    """Return the id of the span with this number, in the order in which they are sent."""
    digest = hashlib.sha256(f"{trace_id:032x}/{number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") or 1
