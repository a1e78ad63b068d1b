"""Gives the library of a hop the documents that belong to the hop's conversation."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from deploy.assembly.tooling.hop_receipts import find_question
from envelope.question import Question
from memory.attachments.attachment_store import RedisAttachments

if TYPE_CHECKING:
    from redis.asyncio import Redis


class HopAttachments:
    """A `knowledge.library.attached_documents.AttachmentSource`.

    The conversation is that of the envelope, never one that a caller names: the id of another
    conversation's document finds nothing.
    """

    def __init__(self, client: "Redis", *, shards: int, ttl_of: Callable[[Question], int]) -> None:
        self._store = RedisAttachments(client, shards=shards, ttl_of=ttl_of)

    async def find(self, document_ids: Sequence[str]) -> Mapping[str, bytes]:
        return await self._store.find(find_question(), document_ids)

    async def all(self) -> Mapping[str, bytes]:
        return await self._store.all(find_question())
