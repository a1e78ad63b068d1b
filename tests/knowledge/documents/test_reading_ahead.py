import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from knowledge.errors import EmbeddingFailed
from knowledge.ingestion import AHEAD_PER_READER
from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.preparation import Preparation
from knowledge.isolation.reader_process import ReaderProcess
from tests.knowledge.documents.conftest import Desk, LengthEmbedder

READERS = 2
LIMIT_SECONDS = 30.0


class WatchedReader(ReaderProcess):
    """A reader that calls `before` with the path of each document that it is given."""

    before: Callable[["WatchedReader", PurePosixPath], None] = staticmethod(lambda *_: None)

    def prepare(self, item: Any, path: PurePosixPath, *more: Any, **limits: Any) -> Preparation:
        self.before(self, path)
        return super().prepare(item, path, *more, **limits)


class GatedEmbedder(LengthEmbedder):
    """Embeds nothing before its gate is open."""

    def __init__(self, gate: asyncio.Event) -> None:
        super().__init__()
        self.gate = gate

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        async with asyncio.timeout(LIMIT_SECONDS):
            await self.gate.wait()
        return await super().embed(texts)


class BrokenEmbedder(LengthEmbedder):
    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        raise EmbeddingFailed("out of order")


@pytest.fixture(scope="module")
def readers() -> Iterator[list[WatchedReader]]:
    with ExitStack() as stack:
        yield [stack.enter_context(WatchedReader(ReadingLimits())) for _ in range(READERS)]


@pytest.fixture
def desk(tmp_path: Path, readers: list[WatchedReader]) -> Desk:
    folder = tmp_path / "docs"
    folder.mkdir()
    for reader in readers:
        reader.before = lambda *_: None
    return Desk(folder, *readers)


def write_pages(desk: Desk, number: int) -> None:
    for page in range(number):
        desk.write(f"{page:03}.md", f"# Page {page}\n\nText {page}.\n")


async def test_files_are_read_while_earlier_ones_are_embedded(
    desk: Desk, readers: list[WatchedReader]
) -> None:
    loop, gate = asyncio.get_running_loop(), asyncio.Event()

    def open_gate(_reader: WatchedReader, path: PurePosixPath) -> None:
        if path.name == "002.md":
            loop.call_soon_threadsafe(gate.set)

    for reader in readers:
        reader.before = open_gate
    desk.embedder = GatedEmbedder(gate)
    write_pages(desk, 6)

    result = await desk.ingest()

    assert (result.added, result.failed) == (6, ())


async def test_documents_are_written_in_the_order_of_their_files_however_long_each_takes(
    desk: Desk,
) -> None:
    desk.write("000.md", "# First\n\n" + "A sentence of five words.\n\n" * 4000)
    for page in range(1, 9):
        desk.write(f"{page:03}.md", f"# Page {page}\n\nText.\n")

    await desk.ingest()

    assert desk.index.puts == [f"docs/{page:03}" for page in range(9)]


async def test_of_two_documents_with_one_id_the_first_is_written_and_the_second_is_named(
    desk: Desk,
) -> None:
    record = {"passage_id": "same", "title": "One", "text": "First. " * 3000}
    desk.write("a.jsonl", json.dumps(record))
    desk.write("b.jsonl", json.dumps({"passage_id": "same", "title": "Two", "text": "Second."}))

    result = await desk.ingest()

    assert desk.index.documents["same"].title == "One"
    assert [source for source, _ in result.failed] == ["b.jsonl:1"]


async def test_few_documents_are_in_memory_before_their_turn(
    desk: Desk, readers: list[WatchedReader]
) -> None:
    begun: list[str] = []

    def note(_reader: WatchedReader, path: PurePosixPath) -> None:
        begun.append(path.name)

    for reader in readers:
        reader.before = note
    most: list[int] = []
    desk.index.before_put = lambda: most.append(len(begun) - len(desk.index.puts))
    for page in range(12):
        desk.write(f"{page:03}.txt", "A sentence of words.\n\n" * 12_000)

    await desk.ingest()

    # One that is written, one that waits for it, and one that waits for room.
    assert max(most) <= READERS * AHEAD_PER_READER + 3


@pytest.mark.slow
async def test_readers_that_are_killed_lose_no_document(
    desk: Desk, readers: list[WatchedReader]
) -> None:
    def kill_often(reader: WatchedReader, path: PurePosixPath) -> None:
        if int(path.stem) % 4 == 1:
            os.kill(reader.process_id, signal.SIGKILL)

    for reader in readers:
        reader.before = kill_often
    write_pages(desk, 12)

    result = await desk.ingest()

    assert (result.added, result.failed) == (12, ())
    assert len(desk.index.puts) == 12


async def test_an_error_of_the_embedder_ends_the_ingestion_as_it_is(desk: Desk) -> None:
    desk.embedder = BrokenEmbedder()
    write_pages(desk, 20)

    with pytest.raises(EmbeddingFailed, match="out of order"):
        await desk.ingest()

    assert desk.index.puts == []
