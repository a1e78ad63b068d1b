"""An index whose writer was killed has whole documents, and nothing else."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from knowledge.index.embedded import EdgeEngine, open_embedded
from knowledge.index.points import layout
from knowledge.index.qdrant import QdrantIndex
from tests.knowledge.searching.conftest import document, identity, put
from tests.knowledge.searching.killed_writer import NEW, OLD
from tests.support.command_line import ROOT

pytestmark = pytest.mark.slow


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
        return [len(one.chunks) for one in loaded], len(await engine.scroll({"kind": "chunk"}))
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
