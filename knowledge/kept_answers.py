"""Stores paid answers from models in a file until their ingestion has ended.

After a kill, the next ingestion uses them. Only answers for documents that are not yet in the index
matter, so it is sufficient to keep the last ones: the vectors of one long document, and
descriptions for twice the pages that wait for `knowledge.document_writer.CHUNKS_PER_BATCH` chunks.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import structlog

from knowledge.data_folder import protect_data_folder

log = structlog.get_logger("ingestion")

T = TypeVar("T")
DESCRIPTIONS = "descriptions.sqlite"
VECTORS = "vectors.sqlite"
BUSY_SECONDS = 5.0
_TABLE = (
    "CREATE TABLE IF NOT EXISTS kept (number INTEGER PRIMARY KEY, key TEXT UNIQUE, answer BLOB)"
)
MOST_DESCRIPTIONS = 1_000
MOST_VECTORS = 20_000


class KeptAnswers:
    """Stores answers in a file in the data folder. If the file is unusable, this is logged and
    nothing is stored.

    Answers before the last `most` are dropped.
    """

    def __init__(self, folder: Path, file: str, *, most: int) -> None:
        self._folder = folder
        self._most = most
        self._path = folder / file

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the answers that are stored under any of these keys."""
        kept = await asyncio.to_thread(self._use, lambda database: _select(database, keys))
        return {} if kept is None else kept

    async def put(self, answers: Mapping[str, bytes]) -> None:
        """Store answers by key."""
        await asyncio.to_thread(self._use, lambda database: self._insert(database, answers))

    async def clear(self) -> None:
        """Delete the stored answers."""
        await asyncio.to_thread(self._remove)

    def _use(self, act: Callable[[sqlite3.Connection], T]) -> T | None:
        try:
            protect_data_folder(self._folder)
            return self._act(act)
        except sqlite3.DatabaseError as error:
            log.warning("kept_answers_unusable", file=str(self._path), error=str(error))
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

    def _insert(self, database: sqlite3.Connection, answers: Mapping[str, bytes]) -> None:
        insert = "INSERT OR REPLACE INTO kept (key, answer) VALUES (?, ?)"
        database.executemany(insert, answers.items())
        oldest = "DELETE FROM kept WHERE number <= (SELECT max(number) FROM kept) - ?"
        database.execute(oldest, (self._most,))

    def _remove(self) -> None:
        self._path.unlink(missing_ok=True)


def _select(database: sqlite3.Connection, keys: Sequence[str]) -> dict[str, bytes]:
    query = "SELECT key, answer FROM kept WHERE key = ?"
    return dict(row for key in keys for row in database.execute(query, (key,)))
