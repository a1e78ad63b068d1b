"""The budget port of tools: a call is reserved before it is made."""

from typing import Protocol

from tools.calls import ToolCall


class ToolBudget(Protocol):
    """Counts calls of tools against a limit; see `executor` for the moment of the reservation."""

    async def reserve(self, call: ToolCall) -> bool:
        """Reserve one call; return False when the limit does not allow it."""
        ...


class CallLimit:
    """A budget of at most `most_calls` calls in this process."""

    def __init__(self, most_calls: int) -> None:
        self._left = most_calls

    async def reserve(self, call: ToolCall) -> bool:
        if self._left <= 0:
            return False
        self._left -= 1
        return True
