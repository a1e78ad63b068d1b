"""Rules of access hold for every name that a page has or had; what is unclear is not published."""

import json
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unicodedata import normalize

import pytest

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.folder import DEEPEST_FOLDER, FoundFile, walk
from tests.knowledge.documents.conftest import Desk
from tests.knowledge.documents.test_exports import HANDBOOK, LEAVE, write_slack, write_zip


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
    results = dict(result.failed)
    assert results["pipe.md"] == "expected a file, found a pipe"
    assert results["socket.md"] == "expected a file, found a socket"
    assert "No such file" in results["nowhere.md"]
    assert "symbolic links" in results["me.md"]
    assert {"two lines [31mred.md", "caf\ufffd.md", "n" * 240 + ".md"} < set(results)
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

    walked = walk(tmp_path)

    assert walked.files == []
    assert [(str(place), reason) for place, reason in walked.warnings] == [
        ("a.md", "a link to a hidden file was not followed")
    ]


def test_folders_are_walked_to_a_depth(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(DEEPEST_FOLDER + 2):
        deep = deep / "d"
        deep.mkdir()
        (deep / "a.md").write_text("# A\n\nText.\n")

    walked = walk(tmp_path)

    assert len(walked.files) == DEEPEST_FOLDER
    assert [reason for _, reason in walked.failures] == [
        f"it is deeper than {DEEPEST_FOLDER} folders"
    ]


def test_a_link_that_is_named_by_hand_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_text("# A\n\nText.\n")
    (tmp_path / "named").symlink_to(tmp_path / "real")

    walked = walk(tmp_path / "named")

    assert [file.read() for file in walked.files] == [b"# A\n\nText.\n"]
    assert isinstance(walked.files[0], FoundFile)


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
            walked = walk(folder)
            alone = walk(folder / "closed")
        (folder / "closed").chmod(0o700)

    assert [str(file.path) for file in walked.files] == ["open.md"]
    assert [(str(path), reason) for path, reason in walked.failures] == [
        ("closed", "the folder cannot be listed: Permission denied")
    ]
    assert not alone.files
    assert [reason for _, reason in alone.failures] == [
        "the folder cannot be listed: Permission denied"
    ]


pytestmark = pytest.mark.slow

PAGE = "# Bonus\n\nTwo salaries in each year."
DAY, THREAD = "ops/2026-03-01.md", "ops/thread-1772355700.000200.md"


def write_rules(folder: Path, rules: dict[str, list[str]]) -> None:
    """Write the groups of patterns into the rules of a folder."""
    tables = (
        f"[[documents]]\npath = {json.dumps(pattern)}\ngroups = {json.dumps(groups)}\n"
        for pattern, groups in rules.items()
    )
    (folder / "refdesk.toml").write_text("".join(tables), encoding="utf-8")


def readers(desk: Desk) -> dict[str, tuple[str, ...]]:
    """Return the groups of each document by its source."""
    return {document.source: document.groups for document in desk.index.documents.values()}


@pytest.mark.parametrize(
    ("rules", "day", "thread"),
    [
        *(
            ({pattern: ["ops"]}, ("ops",), ("ops",))
            for pattern in (
                "ops/*.json", "ops/2026-03-01.json", "ops/*", "users.json", "channels.json",
            )
        ),
        ({"ops/2026-03-02.json": ["ops"]}, (), ("ops",)),
        ({"*-01.json": ["hr", "ops"], "*-02.json": ["board", "ops"]}, ("hr", "ops"), ("ops",)),
    ],
)  # fmt: skip
async def test_rules_for_files_of_a_slack_export_hold_for_its_days_and_threads(
    desk: Desk, rules: dict[str, list[str]], day: tuple[str, ...], thread: tuple[str, ...]
) -> None:
    write_slack(desk.folder)
    write_rules(desk.folder, rules)

    result = await desk.ingest()

    assert readers(desk) == {DAY: day, THREAD: thread}
    assert result.warned == ()


async def test_a_page_that_no_group_may_read_wholly_is_left_out_and_removed(desk: Desk) -> None:
    write_slack(desk.folder)
    await desk.ingest()
    write_rules(desk.folder, {"*-01.json": ["hr"], "*-02.json": ["board"]})

    result = await desk.ingest()

    assert readers(desk) == {DAY: ("hr",)}
    ((source, reason),) = result.skipped
    assert (source, result.removed) == (THREAD, 1)
    assert reason.startswith(
        "the document was skipped, because its access rules have no group in common, so nobody "
        "could read it: "
    )
    assert "ops/2026-03-01.json is for hr; ops/2026-03-02.json is for board" in reason


async def test_rules_hold_for_an_export_of_slack_in_an_archive(desk: Desk) -> None:
    export = desk.folder.parent / "export"
    export.mkdir()
    write_slack(export)
    files = {str(file.relative_to(export)): file.read_text() for file in export.rglob("*.json")}
    write_zip(desk.folder / "chat.zip", files)
    write_rules(desk.folder, {"chat.zip/ops/*.json": ["ops"]})

    await desk.ingest()
    assert set(readers(desk).values()) == {("ops",)}

    desk.index.documents.clear()
    await desk.ingest(desk.folder / "chat.zip")
    assert set(readers(desk).values()) == {("ops",)}


@pytest.mark.parametrize(
    "pattern",
    [
        f"notion.zip/Handbook {HANDBOOK}/*",
        f"notion.zip/Handbook {HANDBOOK}/Leave {LEAVE}.md",
        "notion.zip/Handbook/Leave.md",
        "notion.zip",
    ],
)
async def test_a_rule_for_a_notion_page_holds_by_its_exported_and_its_restored_name(
    desk: Desk, pattern: str
) -> None:
    write_zip(desk.folder / "notion.zip", {f"Handbook {HANDBOOK}/Leave {LEAVE}.md": PAGE})
    write_rules(desk.folder, {pattern: ["hr"]})

    await desk.ingest()

    assert readers(desk) == {"notion.zip/Handbook/Leave.md": ("hr",)}


async def test_rules_in_an_exported_folder_hold_although_its_name_is_restored(desk: Desk) -> None:
    file = desk.write(f"Handbook {HANDBOOK}/Leave {LEAVE}.md", PAGE)
    write_rules(file.parent, {"*": ["hr"]})

    await desk.ingest()

    assert readers(desk) == {"Handbook/Leave.md": ("hr",)}


@pytest.mark.parametrize("public", ["pay.zip/*", "*.md"])
async def test_a_public_rule_for_pages_does_not_open_a_restricted_archive(
    desk: Desk, public: str
) -> None:
    write_zip(desk.folder / "pay.zip", {"bonus.md": PAGE})
    write_rules(desk.folder, {"pay.zip": ["board"], public: []})

    await desk.ingest()

    assert readers(desk) == {"pay.zip/bonus.md": ("board",)}


async def test_a_general_rule_for_pages_does_not_replace_the_rule_for_their_archive(
    desk: Desk,
) -> None:
    write_zip(desk.folder / "pay.zip", {"bonus.md": PAGE})
    write_rules(desk.folder, {"*": ["staff"], "pay.zip": ["board"]})

    result = await desk.ingest()

    assert readers(desk) == {}
    assert "bonus.md is for staff; pay.zip is for board" in dict(result.skipped)["pay.zip/bonus.md"]


async def test_a_link_to_a_restricted_file_does_not_publish_it(desk: Desk) -> None:
    hidden = desk.write("node_modules/bonus.md", PAGE)
    (desk.folder / "open.md").symlink_to(hidden)
    write_rules(desk.folder, {"node_modules/*": ["board"]})

    await desk.ingest()
    assert readers(desk) == {"open.md": ("board",)}

    desk.index.documents.clear()
    await desk.ingest(desk.folder / "open.md")
    assert set(readers(desk).values()) == {("board",)}


async def test_rules_above_a_linked_folder_and_above_its_target_hold(desk: Desk) -> None:
    desk.write("bonus.md", PAGE)
    links = desk.folder.parent / "links"
    links.mkdir()
    (links / "open").symlink_to(desk.folder)
    write_rules(links, {"open/*": ["board", "hr"]})
    write_rules(desk.folder.parent, {"docs/*": ["board"]})

    await desk.ingest(links / "open")

    assert readers(desk) == {"bonus.md": ("board",)}


@pytest.mark.parametrize("name", ["two  blanks.md", normalize("NFD", "pr\u00e4mien.md")])
async def test_a_rule_holds_for_a_name_that_is_shown_or_written_in_another_way(
    desk: Desk, name: str
) -> None:
    desk.write(name, PAGE)
    write_rules(desk.folder, {normalize("NFC", name): ["board"]})

    await desk.ingest()

    assert list(readers(desk).values()) == [("board",)]


async def test_rules_that_are_a_link_to_nowhere_stop_the_ingestion(desk: Desk) -> None:
    desk.write("bonus.md", PAGE)
    (desk.folder / "refdesk.toml").symlink_to("gone.toml")

    result = await desk.ingest()

    assert readers(desk) == {}
    assert "is a broken link" in result.failed[0][1]
