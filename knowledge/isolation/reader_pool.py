"""Reads documents in several processes, one document at a time in each."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import PurePosixPath
from typing import Protocol

from knowledge.documents.formats import Item
from knowledge.documents.location import Location
from knowledge.isolation.preparation import Preparation
from knowledge.isolation.reader_process import ReaderProcess


class Allowance(Protocol):
    """The processor time, in seconds, that reading may take."""

    @property
    def next_seconds(self) -> float: ...

    @property
    def is_spent(self) -> bool: ...

    def spend(self, seconds: float) -> None: ...


class ReaderPool:
    """Reads with whichever reader is free; see `knowledge.ingestion.DocumentReading`."""

    def __init__(self, readers: Sequence[ReaderProcess]) -> None:
        self.at_once = len(readers)
        self._free: asyncio.Queue[ReaderProcess] = asyncio.Queue()
        for reader in readers:
            self._free.put_nowait(reader)

    async def read(
        self, item: Item, file: PurePosixPath, place: Location, allowance: Allowance
    ) -> Preparation | None:
        async with self._borrow() as reader:
            if allowance.is_spent:
                return None
            try:
                return await asyncio.to_thread(
                    reader.prepare, item, file, place, allowance.next_seconds
                )
            finally:
                # Not the time of the clock: a busy machine would drop the end of a file.
                allowance.spend(reader.seconds_used)

    async def split(self, file: PurePosixPath, data: bytes, place: Location) -> Iterable[Item]:
        """Return the documents in a file that must be parsed; raises a `ReadingError`."""
        async with self._borrow() as reader:
            return await asyncio.to_thread(reader.split, file, data, place)

    @asynccontextmanager
    async def _borrow(self) -> AsyncIterator[ReaderProcess]:
        reader = await self._free.get()
        try:
            yield reader
        finally:
            self._free.put_nowait(reader)
