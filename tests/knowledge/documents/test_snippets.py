from pathlib import Path

import pytest

from knowledge.documents.folder import walk
from knowledge.documents.snippets import read_with_snippets
from tests.knowledge.documents.conftest import Desk


def read(folder: Path, name: str = "a.md") -> tuple[str, list[str]]:
    warnings: list[str] = []
    (file,) = (file for file in walk(folder).files if str(file.path) == name)
    return read_with_snippets(file, warnings.append).decode(), warnings


def test_a_snippet_is_put_in_its_place_with_the_indent_of_its_marker(tmp_path: Path) -> None:
    (tmp_path / "code.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "a.md").write_text('- Step\n\n    --8<-- "code.txt:2:3"\n\n{* code.txt hl[1] *}\n')

    assert read(tmp_path) == ("- Step\n\n    two\n    three\n\none\ntwo\nthree\n", [])


def test_a_block_of_snippets_and_a_section_of_one(tmp_path: Path) -> None:
    (tmp_path / "part.txt").write_text("x\n# --8<-- [start:mid]\ny\n# --8<-- [end:mid]\nz\n")
    (tmp_path / "a.md").write_text("--8<--\npart.txt:mid\n--8<--\n")

    assert read(tmp_path) == ("y\n", [])


@pytest.mark.parametrize(
    "reference", ["../secret.txt", "/etc/passwd", "~/x", "link.txt", ".env", "https://a.example/b"]
)
def test_a_path_outside_the_folder_or_hidden_is_never_read(tmp_path: Path, reference: str) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (folder / ".env").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "a.md").write_text(f'Text.\n\n--8<-- "{reference}"\n')

    text, warnings = read(folder)

    assert text == "Text.\n\n"
    assert warnings == [f"the file {reference!r}, to which it refers, is not in the folder"]


async def test_a_page_whose_snippet_changed_is_read_again(desk: Desk) -> None:
    desk.write("part.txt", "Old price.")
    desk.write("a.md", '# A\n\n--8<-- "part.txt"\n')
    await desk.ingest()
    desk.write("part.txt", "New price.")

    result = await desk.ingest()

    assert result.changed == 2
    assert "New price." in desk.index.documents["docs/a"].content
