import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.errors import IndexMismatch, IndexOwned, IndexUnavailable
from knowledge.index.embedded import open_embedded
from tests.knowledge.searching.conftest import document, identity, put

_OWNER = """
import asyncio, sys
from pathlib import Path
from knowledge.index.embedded import open_embedded
from knowledge.index.qdrant import Identity

async def main():
    index = await open_embedded(Path(sys.argv[1]), Identity("tenant", "desk", "words", 64))
    print("open", flush=True)
    sys.stdin.read()
    await index.close()

asyncio.run(main())
"""


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has the index open."""
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        yield process
        process.kill()


async def test_documents_are_there_after_a_restart(tmp_path: Path) -> None:
    index = await open_embedded(tmp_path, identity())
    await put(index, document("page", "text"))
    await index.close()

    again = await open_embedded(tmp_path, identity())

    assert set(await again.versions()) == {"page"}
    await again.close()


async def test_a_second_owner_learns_who_the_first_is_and_of_the_server(
    tmp_path: Path, owner: subprocess.Popen[bytes]
) -> None:
    with pytest.raises(IndexOwned, match=f"in use by process {owner.pid}.*QDRANT_URL"):
        await open_embedded(tmp_path, identity())


async def test_an_index_whose_owner_was_killed_can_be_opened(
    tmp_path: Path, owner: subprocess.Popen[bytes]
) -> None:
    owner.kill()
    owner.wait()

    index = await open_embedded(tmp_path, identity())
    assert await index.versions() == {}
    await index.close()


async def test_an_index_that_could_not_be_opened_is_not_owned(tmp_path: Path) -> None:
    index = await open_embedded(tmp_path, identity())
    await index.close()
    with pytest.raises(IndexMismatch):
        await open_embedded(tmp_path, identity(embedding="others"))

    again = await open_embedded(tmp_path, identity())
    await again.close()


async def test_a_closed_index_says_so(tmp_path: Path) -> None:
    index = await open_embedded(tmp_path, identity())
    await index.close()
    await index.close()

    with pytest.raises(IndexUnavailable, match="is closed"):
        await index.versions()


async def test_files_that_are_no_index_are_one_clear_line(tmp_path: Path) -> None:
    index = await open_embedded(tmp_path, identity())
    place = Path((await index.info()).location)
    await index.close()
    (place / "shard" / "edge_config.json").write_text("nonsense")

    with pytest.raises(IndexUnavailable, match="cannot be opened") as raised:
        await open_embedded(tmp_path, identity())
    assert "\n" not in str(raised.value)


async def test_a_place_that_is_a_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(IndexUnavailable, match="cannot be opened"):
        await open_embedded(tmp_path / "file", identity())
