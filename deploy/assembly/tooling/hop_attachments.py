"""Gives the library of a hop the documents that belong to the hop's conversation."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from config.settings import Settings
from deploy.assembly.tooling.hop_receipts import find_question
from memory.attachments.attachment_store import RedisAttachments

if TYPE_CHECKING:
    from redis.asyncio import Redis


class HopAttachments:
    """A `knowledge.library.attached_documents.AttachmentSource`.

    The conversation is that of the envelope, never one that a caller names: the id of another
    conversation's document finds nothing.
    """

    def __init__(self, client: "Redis", settings: Settings) -> None:
        self._store = RedisAttachments(
            client,
            shards=settings.shards,
            ttl_of=lambda one: settings.memory_seconds_of(one.tenant, one.assistant),
        )

    async def find(self, document_ids: Sequence[str]) -> Mapping[str, bytes]:
        return await self._store.find(find_question(), document_ids)

    async def all(self) -> Mapping[str, bytes]:
        return await self._store.all(find_question())
