"""Reads the question of a combined call while the model writes the rest."""

from collections.abc import Awaitable, Callable

from llm.partial_answers.partial_output import read_complete_fields
from llm.partial_answers.text_listener import PartialText

_FIELD = "canonical_question"


class QuestionReader:
    """Calls `on_question` with the question of a combined call, once, when it is complete."""

    def __init__(self, on_question: Callable[[str], Awaitable[None]]) -> None:
        self._on_question = on_question
        self.question: str | None = None
        """The question that was passed on; None if there was none."""

    async def read(self, partial: PartialText) -> None:
        """Read what the model has written so far."""
        if self.question is not None:
            return
        question = read_complete_fields(partial.text).get(_FIELD)
        if isinstance(question, str):
            self.question = question
            await self._on_question(question)
