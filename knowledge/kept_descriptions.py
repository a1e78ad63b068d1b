"""Keeps the answers of models for descriptions in a file, until their ingestion has ended.

After a kill the next ingestion takes them from there. Only descriptions of pages that are not yet
in the index matter, so the last `MOST_KEPT` suffice: an ingestion writes its pages after
`knowledge.ingestion.CHUNKS_PER_BATCH` chunks.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import structlog

from knowledge.data_folder import protect_data_folder

log = structlog.get_logger("ingestion")

T = TypeVar("T")
FILE = "descriptions.sqlite"
BUSY_SECONDS = 5.0
_TABLE = (
    "CREATE TABLE IF NOT EXISTS kept (number INTEGER PRIMARY KEY, key TEXT UNIQUE, answer BLOB)"
)
MOST_KEPT = 1000


class KeptDescriptions:
    """A file in the data folder; one that cannot be used is logged and keeps nothing."""

    def __init__(self, folder: Path, *, most: int = MOST_KEPT) -> None:
        self._folder = folder
        self._most = most
        self._path = folder / FILE

    async def get(self, key: str) -> bytes | None:
        """Return the answer that was kept under a key, or None."""
        query = "SELECT answer FROM kept WHERE key = ?"
        return await asyncio.to_thread(
            self._use, lambda database: _first(database.execute(query, (key,)).fetchone())
        )

    async def put(self, key: str, answer: bytes) -> None:
        """Keep an answer; those before the last `MOST_KEPT` are dropped."""
        await asyncio.to_thread(self._use, lambda database: self._insert(database, key, answer))

    async def clear(self) -> None:
        """Delete the kept answers."""
        await asyncio.to_thread(self._remove)

    def _use(self, act: Callable[[sqlite3.Connection], T]) -> T | None:
        try:
            protect_data_folder(self._folder)
            return self._act(act)
        except sqlite3.DatabaseError as error:
            log.warning("kept_descriptions_unusable", file=str(self._path), error=str(error))
            if not isinstance(error, sqlite3.OperationalError):
                self._remove()  # the file is not a database
            return None

    def _act(self, act: Callable[[sqlite3.Connection], T]) -> T:
        with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS)) as database:
            # A killed process loses nothing by this; a power failure may.
            database.execute("PRAGMA synchronous = OFF")
            with database:
                database.execute(_TABLE)
                return act(database)

    def _insert(self, database: sqlite3.Connection, key: str, answer: bytes) -> None:
        database.execute("INSERT OR REPLACE INTO kept (key, answer) VALUES (?, ?)", (key, answer))
        oldest = "DELETE FROM kept WHERE number <= (SELECT max(number) FROM kept) - ?"
        database.execute(oldest, (self._most,))

    def _remove(self) -> None:
        self._path.unlink(missing_ok=True)


def _first(row: tuple[bytes] | None) -> bytes | None:
    return None if row is None else row[0]
