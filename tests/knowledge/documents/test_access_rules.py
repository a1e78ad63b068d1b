"""Rules of access hold for every name that a page has or had; what is unclear is not published."""

import json
from pathlib import Path
from unicodedata import normalize

import pytest

from tests.knowledge.documents.conftest import Desk
from tests.knowledge.documents.exports.test_restoring import HANDBOOK, LEAVE, write_slack
from tests.knowledge.documents.exports.test_zip_archive import write_zip

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
    return {one.source: one.groups for one in desk.index.documents.values()}


@pytest.mark.parametrize(
    "pattern", ["ops/*.json", "ops/2026-03-01.json", "ops/*", "users.json", "channels.json"]
)
async def test_a_rule_for_files_of_a_slack_export_holds_for_its_conversations(
    desk: Desk, pattern: str
) -> None:
    write_slack(desk.folder)
    write_rules(desk.folder, {pattern: ["ops"]})

    result = await desk.ingest()

    assert readers(desk) == {DAY: ("ops",), THREAD: ("ops",)}
    assert result.warned == ()


async def test_a_thread_with_one_restricted_day_is_restricted_and_other_days_are_not(
    desk: Desk,
) -> None:
    write_slack(desk.folder)
    write_rules(desk.folder, {"ops/2026-03-02.json": ["ops"]})

    await desk.ingest()

    assert readers(desk) == {DAY: (), THREAD: ("ops",)}


async def test_a_thread_of_days_for_different_groups_is_for_those_that_may_read_both(
    desk: Desk,
) -> None:
    write_slack(desk.folder)
    write_rules(desk.folder, {"*-01.json": ["hr", "ops"], "*-02.json": ["board", "ops"]})

    await desk.ingest()

    assert readers(desk) == {DAY: ("hr", "ops"), THREAD: ("ops",)}


async def test_a_page_that_no_group_may_read_wholly_is_left_out_and_removed(desk: Desk) -> None:
    write_slack(desk.folder)
    await desk.ingest()
    write_rules(desk.folder, {"*-01.json": ["hr"], "*-02.json": ["board"]})

    result = await desk.ingest()

    assert readers(desk) == {DAY: ("hr",)}
    ((source, reason),) = result.skipped
    assert (source, result.removed) == (THREAD, 1)
    assert reason.startswith("its rules of access name no common group, so that it is left out: ")
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
    assert "is a link that leads nowhere" in result.failed[0][1]
