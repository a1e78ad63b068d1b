import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.folder import DEEPEST_FOLDER, FoundFile, walk
from tests.knowledge.documents.conftest import Desk


async def test_whatever_stands_in_a_folder_is_one_clear_line(desk: Desk) -> None:
    os.mkfifo(desk.folder / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(desk.folder / "socket.md"))
        (desk.folder / "nowhere.md").symlink_to(desk.folder / "gone.md")
        (desk.folder / "me.md").symlink_to(desk.folder / "me.md")
        (desk.folder / "device.md").symlink_to("/dev/zero")
        desk.write("two\nlines \x1b[31mred.md", b"\x00")
        desk.write("n" * 240 + ".md", b"\x00")
        (desk.folder / os.fsdecode(b"caf\xe9.md")).write_bytes(b"\x00")
        desk.write("good.md", "# Good\n\nText.\n")

        result = await desk.ingest()

    assert set(desk.index.documents) == {"docs/good"}
    assert dict(result.warned) == {"device.md": "a link that leaves the folder was not followed"}
    found = dict(result.failed)
    assert found["pipe.md"] == "expected a file, found a pipe"
    assert found["socket.md"] == "expected a file, found a socket"
    assert "No such file" in found["nowhere.md"]
    assert "symbolic links" in found["me.md"]
    assert {"two lines [31mred.md", "caf\ufffd.md", "n" * 240 + ".md"} < set(found)
    assert all(line.isprintable() for pair in result.failed for line in pair)


def test_a_file_that_became_a_link_after_it_was_found_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret\n\nNo.\n")
    (folder / "a.md").write_text("# A\n\nText.\n")
    (found,) = walk(folder).files
    (folder / "a.md").unlink()
    (folder / "a.md").symlink_to(secret)

    with pytest.raises(WrongFormatError, match="leaves the folder"):
        found.read()


def test_a_file_below_a_folder_that_became_a_link_is_not_read(tmp_path: Path) -> None:
    folder, outside = tmp_path / "docs", tmp_path / "outside"
    for place in (folder / "part", outside):
        place.mkdir(parents=True)
        (place / "a.md").write_text("# A\n\nText.\n")
    (found,) = walk(folder).files
    (folder / "part").rename(tmp_path / "moved")
    (folder / "part").symlink_to(outside)

    with pytest.raises(WrongFormatError, match="leaves the folder"):
        found.read()


def test_a_file_that_became_a_pipe_after_it_was_found_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nText.\n")
    (found,) = walk(tmp_path).files
    (tmp_path / "a.md").unlink()
    os.mkfifo(tmp_path / "a.md")

    with pytest.raises(WrongFormatError, match="found a pipe"):
        found.read()


@pytest.mark.parametrize("target", [".env", ".git/config", "part/.htpasswd"])
def test_a_link_to_a_hidden_file_is_not_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / target).parent.mkdir(exist_ok=True)
    (tmp_path / target).write_text("PASSWORD=secret")
    (tmp_path / "a.md").symlink_to(tmp_path / target)

    found = walk(tmp_path)

    assert found.files == []
    assert [(str(place), reason) for place, reason in found.warnings] == [
        ("a.md", "a link to a hidden file was not followed")
    ]


def test_folders_are_walked_to_a_depth(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(DEEPEST_FOLDER + 2):
        deep = deep / "d"
        deep.mkdir()
        (deep / "a.md").write_text("# A\n\nText.\n")

    found = walk(tmp_path)

    assert len(found.files) == DEEPEST_FOLDER
    assert [reason for _, reason in found.failures] == [
        f"it is deeper than {DEEPEST_FOLDER} folders"
    ]


def test_a_link_that_is_named_by_hand_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_text("# A\n\nText.\n")
    (tmp_path / "named").symlink_to(tmp_path / "real")

    found = walk(tmp_path / "named")

    assert [file.read() for file in found.files] == [b"# A\n\nText.\n"]
    assert isinstance(found.files[0], FoundFile)


NOBODY = 65534


@contextmanager
def act_as_nobody() -> Iterator[None]:
    """Gives up the rights of an administrator, for whom every folder is open."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(own)


def test_a_folder_without_rights_is_one_line_and_costs_itself_alone() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "open.md").write_text("# Open\n")
        (folder / "closed").mkdir()
        (folder / "closed" / "a.md").write_text("# A\n")
        (folder / "closed").chmod(0)
        with act_as_nobody():
            found = walk(folder)
            alone = walk(folder / "closed")
        (folder / "closed").chmod(0o700)

    assert [str(file.path) for file in found.files] == ["open.md"]
    assert [(str(path), reason) for path, reason in found.failures] == [
        ("closed", "the folder cannot be listed: Permission denied")
    ]
    assert not alone.files
    assert [reason for _, reason in alone.failures] == [
        "the folder cannot be listed: Permission denied"
    ]
