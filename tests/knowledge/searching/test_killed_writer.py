"""An index whose writer was killed has whole documents, and nothing else."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from knowledge.index.embedded import EdgeEngine, open_embedded
from knowledge.index.points import layout
from knowledge.index.points.layout import Point
from knowledge.index.qdrant import QdrantIndex
from tests.knowledge.searching.conftest import document, identity, put
from tests.knowledge.searching.killed_writer import NEW, OLD, OTHERS, PARTS_OF_OTHERS
from tests.support.command_line import ROOT

pytestmark = pytest.mark.slow
POINTS_BETWEEN_FLUSHES = 1024


class CountingEngine(EdgeEngine):
    """Counts the points that are read."""

    read = 0
    most_at_once = 0

    async def pages(
        self, match: Mapping[str, str | Sequence[str]], *, fields: Sequence[str]
    ) -> AsyncIterator[Sequence[Point]]:
        async for page in super().pages(match, fields=fields):
            self._count(page)
            yield page

    async def scroll(self, *args: Any, **options: Any) -> list[Point]:
        result = await super().scroll(*args, **options)
        self._count(result)
        return result

    async def retrieve(self, *args: Any, **options: Any) -> list[Point]:
        result = await super().retrieve(*args, **options)
        self._count(result)
        return result

    def _count(self, points: Sequence[Point]) -> None:
        self.read += len(points)
        self.most_at_once = max(self.most_at_once, len(points))


async def open_counting(folder: Path) -> tuple[CountingEngine, QdrantIndex]:
    own = identity()
    engine = CountingEngine(folder / layout.namespace(own.tenant, own.assistant), own.dimensions)
    index = QdrantIndex(engine, own)
    await index.open()
    return engine, index


def write_until_killed(folder: Path, action: str, changes: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.knowledge.searching.killed_writer",
         str(folder), action, str(changes)],
        cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL


async def read_chunks(folder: Path) -> tuple[list[int], int]:
    """Return the chunks of each document, and the number of all chunks that are stored."""
    own = identity()
    engine = EdgeEngine(folder / layout.namespace(own.tenant, own.assistant), own.dimensions)
    index = QdrantIndex(engine, own)
    try:
        await index.open()
        loaded = await index.load(list(await index.versions()))
        return [len(document.chunks) for document in loaded], len(
            await engine.scroll({"kind": "chunk"})
        )
    finally:
        await index.close()


@pytest.mark.parametrize(
    ("action", "changes", "expected"),
    [
        ("replace", 0, [len(OLD)]),
        ("replace", 1, [len(OLD)]),
        ("replace", 2, [len(NEW)]),
        ("replace", 3, [len(NEW)]),
        ("remove", 0, [len(OLD)]),
        ("remove", 1, []),
        ("remove", 2, []),
    ],
)
async def test_a_writer_that_is_killed_leaves_whole_documents_only(
    tmp_path: Path, action: str, changes: int, expected: list[int]
) -> None:
    write_until_killed(tmp_path, action, changes)

    assert await read_chunks(tmp_path) == (expected, sum(expected))
    assert await read_chunks(tmp_path) == (expected, sum(expected))


async def test_a_restart_after_a_kill_reads_what_was_changed_since_the_last_flush_alone(
    tmp_path: Path,
) -> None:
    stored = OTHERS * (PARTS_OF_OTHERS + 1)
    write_until_killed(tmp_path, "grow", 1)

    engine, index = await open_counting(tmp_path)

    assert len(NEW) < engine.read <= POINTS_BETWEEN_FLUSHES + 2 * PARTS_OF_OTHERS < stored
    assert await engine.count({"kind": "chunk"}) == OTHERS * PARTS_OF_OTHERS + len(OLD)
    await index.close()
    engine, index = await open_counting(tmp_path)
    assert engine.read == 1
    await index.close()


@pytest.mark.parametrize(
    "log",
    [pytest.param("", marks=pytest.mark.long), "another boot\n[]\n",
     pytest.param(None, marks=pytest.mark.long)],
)  # fmt: skip
async def test_all_documents_are_checked_page_by_page_where_the_changes_are_not_known(
    tmp_path: Path, log: str | None
) -> None:
    write_until_killed(tmp_path, "grow", 1)
    own = identity()
    path = tmp_path / layout.namespace(own.tenant, own.assistant) / "unfinished"
    path.write_text(path.read_text("utf-8") + "[" if log is None else log, "utf-8")

    engine, index = await open_counting(tmp_path)

    assert engine.read > OTHERS * PARTS_OF_OTHERS
    assert engine.most_at_once <= 1000
    assert await engine.count({"kind": "chunk"}) == OTHERS * PARTS_OF_OTHERS + len(OLD)
    await index.close()


async def test_an_index_that_was_killed_while_it_was_made_is_made_again(tmp_path: Path) -> None:
    own = identity()
    folder = tmp_path / layout.namespace(own.tenant, own.assistant)
    (folder / "shard").mkdir(parents=True)
    (folder / "shard" / "edge_config.json").write_text("{")
    (folder / "incomplete").touch()

    index = await open_embedded(tmp_path, own)

    await put(index, document("page", "text"))
    assert set(await index.versions()) == {"page"}
    await index.close()
    assert (await read_chunks(tmp_path))[1] == 1
