"""Builds the replies of questions that no stage could answer: their time was up, or a fault."""

from broker.values import Fields
from envelope.outcome import Outcome
from envelope.question import Question
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
