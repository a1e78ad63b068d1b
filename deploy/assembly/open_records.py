"""Opens the records, and the gap finder that reads them."""

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


def connect_records(url: SecretStr | None, data_folder: Path) -> "RecordStore":
    """Return the record store; raises `CommandError` for an unusable `RECORDS_URL`."""
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
    """Provide the gap finder; if no embedder is given, one is created on first use."""
    from knowledge.calibration.queries import find_foreign_questions
    from knowledge.embedding import name_vectors
    from records.gaps import GapFinder

    made: list[Embedder] = []
    making = asyncio.Lock()

    async def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if embedder is not None:
            return await embedder.embed_questions(texts)
        async with making:
            if not made:
                from deploy.assembly.knowledge import make_embedder

                made.append(await asyncio.to_thread(make_embedder, settings))
        return await made[0].embed_questions(texts)

    try:
        yield GapFinder(
            store,
            embed,
            name_vectors(settings.embedding_model),
            find_foreign_questions(settings.default_language) or find_foreign_questions("en"),
        )
    finally:
        for own in made:
            from deploy.assembly.knowledge import close_embedder

            await close_embedder(own)
