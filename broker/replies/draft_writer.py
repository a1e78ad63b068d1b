"""Writes drafts of answers into the journals of their questions, where channels read them."""

from broker.context import BrokerContext
from broker.keys import stream_key
from broker.transport.scripts import DRAFT, Argument
from broker.values import Delivery, Fields
from envelope.encoding import to_json


class JournalDraftWriter:
    """Keeps one draft for each run of an agent: the newest one, which has the whole text.

    A draft is part of the journal. So it has its place among the events of its question, is read
    by the same readers, ends with the journal's time to live, and is erased with the conversation.
    """

    def __init__(self, context: BrokerContext) -> None:
        self._context = context

    async def write_draft(self, delivery: Delivery, draft: Fields, *, replaces: str = "") -> str:
        """Write a draft and delete the one with the id `replaces`; return its id.

        Returns an empty id, and writes nothing, when the delivery is not held any more or the
        question has ended. Raises `BrokerUnavailableError`.
        """
        _, names = self._context.locate(delivery.question)
        keys = [stream_key(delivery.role, delivery.shard), names.record, names.journal]
        held: list[Argument] = [delivery.entry_id, delivery.consumer, delivery.count]
        written: bytes = await self._context.run(DRAFT, keys, [*held, to_json(draft), replaces])
        return written.decode()
