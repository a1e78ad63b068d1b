"""Gives agents the store of interim results of the question that is running around the call."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from envelope.question import Question
from llm.call_scope import current_scope
from memory.results.work_store import RedisWorkStore

if TYPE_CHECKING:
    from redis.asyncio import Redis


class HopWork:
    """The stored results of the running question; see `agents.agent.WorkStore`."""

    def __init__(
        self, client: "Redis", *, shards: int, record_of: Callable[[Question], str]
    ) -> None:
        self._store = RedisWorkStore(client, shards=shards, record_of=record_of)

    async def put(self, value: bytes) -> str:
        """Store a value and return its reference."""
        return await self._store.put(_find_question(), value)

    async def get(self, reference: str) -> bytes:
        """Return a stored value; raises `LookupError` if there is none any more."""
        found = await self._store.get(_find_question(), reference)
        if found is None:
            raise LookupError(f"expected the stored result {reference!r}, found none")
        return found


def _find_question() -> Question:
    scope = current_scope()
    if scope is None:
        raise LookupError("expected a running question, found none")
    return scope.question
