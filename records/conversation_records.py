"""The channels' operations on the records of a conversation."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.ports import EndedReader
from envelope.question import Question

if TYPE_CHECKING:
    from records.store import RecordStore


class ConversationRecords:
    """Records ratings of answers, and erases records of conversations.

    `is_recording` tells whether questions are recorded. `open_store` returns the record store, or
    None if there is none yet. Records are erased even if recording is now disabled.
    """

    def __init__(
        self,
        ended: EndedReader,
        open_store: "Callable[[], RecordStore | None]",
        *,
        is_recording: bool,
    ) -> None:
        self._ended = ended
        self._open_store = open_store
        self._is_recording = is_recording

    async def announce_rating(self, question: Question) -> None:
        """Announce a rating, so that the recorder stores it."""
        if self._is_recording:
            await self._ended.announce(question, "rated")

    async def forget(self, question: Question) -> int:
        """Delete the records of the question's conversation, and return their number.

        Processes on other machines with their own databases are notified, and delete them as well.
        """
        await self._ended.announce(question, "forgotten")
        return await asyncio.to_thread(self._forget, question)

    def _forget(self, question: Question) -> int:
        store = self._open_store()
        if store is None:
            return 0
        try:
            store.prepare()
            return store.forget(question)
        finally:
            store.close()
