"""Reads the finished sentences of an answer from what a model has written so far."""

from collections.abc import Awaitable, Callable

from llm.answer_checks.draft_check import select_finished
from llm.partial_answers.partial_output import read_partial_answer
from llm.partial_answers.text_listener import PartialText

OnFinished = Callable[[str, int], Awaitable[None]]
"""Receives the finished sentences, and the number of the attempt that wrote them."""


class DraftReader:
    """Calls `on_finished` whenever a further sentence of one answer is finished."""

    def __init__(self, on_finished: OnFinished) -> None:
        self._on_finished = on_finished
        self._last = ("", 0)

    async def read(self, partial: PartialText) -> None:
        """Read the text of an answer, all of it so far."""
        finished = select_finished(read_partial_answer(partial.text))
        read = (finished, partial.attempt)
        if finished and read != self._last:
            self._last = read
            await self._on_finished(finished, partial.attempt)
