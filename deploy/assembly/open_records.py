"""Opens the records, and what finds the gaps in them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from config.settings import Settings
from deploy.errors import CommandError

if TYPE_CHECKING:
    from knowledge.embedding import Embedder
    from records.gaps import GapFinder
    from records.store import RecordStore

FILE = "records.sqlite3"


class _LazyEmbedder:
    def __init__(self, settings: Settings, given: "Embedder | None") -> None:
        self._settings = settings
        self._given = given
        self._own: Embedder | None = None
        self._making = asyncio.Lock()

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return await (await self._find()).embed_questions(texts)

    async def _find(self) -> "Embedder":
        if self._given is not None:
            return self._given
        async with self._making:
            if self._own is None:
                from deploy.assembly.knowledge import make_embedder

                self._own = await asyncio.to_thread(make_embedder, self._settings)
            return self._own

    async def close(self) -> None:
        if self._own is not None:
            from deploy.assembly.knowledge import close_embedder

            await close_embedder(self._own)


def connect_records(url: SecretStr | None, data_folder: Path) -> "RecordStore":
    """Return the store of the records; raises `CommandError` for an unusable `RECORDS_URL`."""
    from records.store import RecordsUrlError, connect_store

    place = f"sqlite:///{(data_folder / FILE).resolve()}"
    try:
        return connect_store(place if url is None else url.get_secret_value())
    except RecordsUrlError as error:
        raise CommandError(f"RECORDS_URL: {error}") from error


@asynccontextmanager
async def finding_gaps(
    settings: Settings, store: "RecordStore", embedder: "Embedder | None" = None
) -> AsyncIterator["GapFinder"]:
    """Provide what finds the gaps; the embedder is made when it is first used, if none is given."""
    from knowledge.calibration.queries import find_foreign_questions
    from knowledge.embedding import name_vectors
    from records.gaps import GapFinder

    lazy = _LazyEmbedder(settings, embedder)
    try:
        yield GapFinder(
            store,
            lazy.embed,
            name_vectors(settings.embedding_model),
            find_foreign_questions(settings.default_language) or find_foreign_questions("en"),
        )
    finally:
        await lazy.close()
