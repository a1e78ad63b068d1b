"""Gives agents and tools the stores of the question that is running around the call.

The question is that of the envelope, never one that a caller names: the id of another
conversation's document finds nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from uuid import uuid4

from envelope.question import Question
from memory.attachments import RedisAttachments
from memory.receipts import RedisReceipts
from memory.work_store import RedisWorkStore
from tools.effects import ReceiptKey

OpenReceipts = Callable[[Question, str, str], RedisReceipts]
"""Returns the receipts of a question, a branch and a delivery."""
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
    """The receipts of the hop around the call; see `tools.effects.ToolReceipts`."""

    def __init__(self, open_receipts: OpenReceipts) -> None:
        self._open_receipts = open_receipts

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
        return self._open_receipts(*found)


class HopAttachments:
    """The documents of the conversation; an `AttachmentSource` of `knowledge.library`."""

    def __init__(self, store: RedisAttachments) -> None:
        self._store = store

    async def find(self, document_ids: Sequence[str]) -> Mapping[str, bytes]:
        return await self._store.find(find_question(), document_ids)

    async def all(self) -> Mapping[str, bytes]:
        return await self._store.all(find_question())


class HopWork:
    """The stored results of the running question; see `agents.agent.WorkStore`."""

    def __init__(self, store: RedisWorkStore) -> None:
        self._store = store

    async def put(self, value: bytes) -> str:
        """Store a value and return its reference."""
        return await self._store.put(find_question(), value)

    async def get(self, reference: str) -> bytes:
        """Return a stored value; raises `LookupError` if there is none any more."""
        found = await self._store.get(find_question(), reference)
        if found is None:
            raise LookupError(f"expected the stored result {reference!r}, found none")
        return found
