"""Follows the questions of one message of which some are still to be answered."""

from envelope.conversation import ClarificationReason, Pause
from llm.offline.words import stems


def without_offer(pause: Pause | None) -> Pause | None:
    """Return the pause, or None if it only offers: then no turn has to answer it."""
    return None if pause is None or pause.is_offer else pause


def find_remaining(pause: Pause, question: str) -> tuple[str, ...]:
    """Return the questions of a pause that `question` does not ask."""
    is_choice = pause.reason is ClarificationReason.MULTIPLE_TOPICS
    offered = pause.options if is_choice else pause.remaining
    asked = stems(question)
    return tuple(one for one in offered if not stems(one) <= asked)
