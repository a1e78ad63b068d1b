"""Gives the tools of a hop the receipts of their question, branch and delivery."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING
from uuid import uuid4

from envelope.question import Question
from memory.effects.receipts import RedisReceipts
from tools.effects.receipts import ReceiptKey

if TYPE_CHECKING:
    from redis.asyncio import Redis

_delivery: ContextVar[tuple[Question, str, str] | None] = ContextVar("delivery", default=None)


@contextmanager
def receipt_scope(question: Question, branch: str) -> Iterator[None]:
    """Note effects inside the block for one delivery of an envelope of this question."""
    token = _delivery.set((question, branch, uuid4().hex))
    try:
        yield
    finally:
        _delivery.reset(token)


def find_question() -> Question:
    """Return the question of the hop around the call; raises `LookupError` outside of one."""
    found = _delivery.get()
    if found is None:
        raise LookupError("expected a call in a hop, found no hop")
    return found[0]


class HopReceipts:
    """The receipts of the hop around the call; see `tools.effects.receipts.ToolReceipts`."""

    def __init__(
        self, client: "Redis", *, shards: int, record_of: Callable[[Question], str]
    ) -> None:
        self._client = client
        self._shards = shards
        self._record_of = record_of

    async def claim(self, key: ReceiptKey, *, was_approved: bool = False) -> tuple[str, bytes]:
        return await self._open().claim(key, was_approved=was_approved)

    async def finish(self, key: ReceiptKey, result: bytes) -> None:
        await self._open().finish(key, result)

    async def mark_unknown(self, key: ReceiptKey) -> None:
        await self._open().mark_unknown(key)

    def _open(self) -> RedisReceipts:
        found = _delivery.get()
        if found is None:
            raise LookupError("expected a tool that is called in a hop, found no hop")
        question, branch, delivery = found
        return RedisReceipts(
            self._client,
            question,
            branch=branch,
            delivery=delivery,
            shards=self._shards,
            record_of=self._record_of,
        )
