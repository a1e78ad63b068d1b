"""Builds the replies of questions that no stage ended: cancelled, out of time, or a fault."""

from broker.ports import ReplyReader
from broker.values import Fields
from envelope.outcome import Outcome
from envelope.question import Question
from envelope.ways.swarm import read_cancelled
from gateway.answer import DEAD_LETTER, DEADLINE, Words


def make_last_resort(question: Question, words: Words, language: str) -> Fields:
    """Return the reply at the deadline of a question that nobody has begun to answer."""
    return {
        "outcome": Outcome.FAILED.value,
        "text": words("deadline", language),
        "language": language,
        "sources": [],
        "suggested_actions": [],
        "termination_reason": DEADLINE,
        "conversation_id": question.conversation_id,
        "message_id": question.message_id,
    }


def make_dead_letter_changes(words: Words, language: str) -> Fields:
    """Return the fields by which the reply of a dead letter differs: a fault ended the question."""
    return {"text": words("apology", language), "termination_reason": DEAD_LETTER}


async def list_cancelled(replies: ReplyReader, question: Question) -> Fields:
    """Return what the reply of a cancelled question has: its tasks, the open ones cancelled."""
    entries = await replies.read_journal(question)
    tasks = read_cancelled(one.fields for one in entries if one.kind == "agent_run")
    return {"tasks": [*tasks]} if tasks else {}
