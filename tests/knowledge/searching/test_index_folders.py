"""The folders of the index that answers and of those that replace it or were replaced."""

from pathlib import Path

import pytest

from knowledge.errors import IndexUnavailable
from knowledge.index.index_folders import IndexFolders
from knowledge.index.points import layout
from tests.knowledge.searching.conftest import document, identity, put


@pytest.fixture
def folders(tmp_path: Path) -> IndexFolders:
    return IndexFolders(tmp_path, "tenant", "desk")


async def replace_index(folders: IndexFolders, embedding: str) -> str:
    """Let an empty index of a model replace the present one, and return its name."""
    chosen = identity(embedding=embedding)
    await (await folders.open_replacement(chosen)).close()
    name = folders.name_replacement(chosen.vectors)
    folders.switch(name)
    return name


async def test_a_replaced_index_is_removed_when_nobody_has_it_open(folders: IndexFolders) -> None:
    running = await folders.open_serving(identity())
    await put(running, document("page", "text"))
    earlier = folders.serving
    name = await replace_index(folders, "others")

    assert (folders.serving, folders.remove_replaced()) == (name, [earlier])
    assert set(await running.versions()) == {"page"}

    await running.close()
    await (await folders.open_serving(identity(embedding="others"))).close()

    assert (folders.has(earlier), folders.has(name)) == (False, True)


async def test_an_unfinished_replacement_by_a_model_that_was_replaced_before_is_kept(
    folders: IndexFolders,
) -> None:
    await replace_index(folders, "others")
    await replace_index(folders, "third")
    folders.remove_replaced()
    unfinished = await folders.open_replacement(identity(embedding="others"))
    await put(unfinished, document("page", "text"))
    await unfinished.close()

    folders.remove_replaced()

    again = await folders.open_replacement(identity(embedding="others"))
    assert set(await again.versions()) == {"page"}
    await again.close()


@pytest.mark.parametrize(
    "written",
    [
        "nonsense",
        '{"serving": "../documents"}',
        '{"serving": "NAME", "replaced": ["../documents"]}',
        '{"serving": "NAME", "replaced": ["NAME.1/../../documents"]}',
    ],
)
async def test_a_damaged_name_of_the_index_is_one_clear_line_and_removes_nothing(
    tmp_path: Path, written: str
) -> None:
    (tmp_path / "documents").mkdir()
    folders = IndexFolders(tmp_path / "index", "tenant", "desk")
    await replace_index(folders, "others")
    name = layout.namespace("tenant", "desk")
    (tmp_path / "index" / f"{name}.json").write_text(written.replace("NAME", name))

    with pytest.raises(IndexUnavailable, match="is damaged") as raised:
        await folders.open_serving(identity())

    assert "\n" not in str(raised.value)
    assert (tmp_path / "documents").exists()
