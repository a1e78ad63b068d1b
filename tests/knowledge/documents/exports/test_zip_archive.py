"""Archives of documents are read as folders, within bounds."""

import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from knowledge.documents.exports import zip_archive
from tests.knowledge.documents.conftest import Desk

pytestmark = pytest.mark.slow


def write_zip(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write an archive of files by their names."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


async def test_an_archive_is_read_as_a_folder(desk: Desk) -> None:
    archive = write_zip(
        desk.folder / "handbook.zip",
        {
            "hr/leave.md": "# Leave\n\nEverybody has 27 days of leave in each year.",
            "hr/plan.png": b"PNG",
            "__MACOSX/hr/x.md": "x",
        },
    )

    alone = await desk.ingest(archive)
    (document,) = desk.index.documents.values()
    assert (document.id, document.source) == ("handbook.zip/hr/leave", "handbook.zip/hr/leave.md")
    assert document.crumbs == ("Handbook", "Hr", "Leave")
    assert alone.skipped == (
        ("handbook.zip/hr/plan.png", "a picture; text in pictures is not read"),
    )

    again = await desk.ingest(archive)
    assert (again.added, again.unchanged) == (0, 1)


async def test_an_archive_in_a_folder_is_read_with_it(desk: Desk) -> None:
    desk.write("billing.md", "# Billing\n\nMonthly.")
    write_zip(desk.folder / "old.zip", {"leave.md": "# Leave\n\n27 days."})
    await desk.ingest()
    assert set(desk.index.documents) == {"docs/billing", "docs/old.zip/leave"}

    (desk.folder / "old.zip").unlink()
    assert (await desk.ingest()).removed == 1


async def test_members_that_lead_out_link_or_hide_archives_are_left_out(desk: Desk) -> None:
    link = zipfile.ZipInfo("link.md")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive = desk.folder / "hostile.zip"
    with zipfile.ZipFile(archive, "w") as writing:
        writing.writestr("../escape.md", "# Escape")
        writing.writestr("/etc/absolute.md", "# Absolute")
        writing.writestr("C:\\windows.md", "# Windows")
        writing.writestr(link, "/etc/passwd")
        writing.writestr("inner.zip", b"PK")
        writing.writestr("good.md", "# Good\n\nText.")

    result = await desk.ingest(archive)

    assert set(desk.index.documents) == {"hostile.zip/good"}
    assert {reason for _, reason in result.skipped} == {
        "its path leads out of the archive",
        "a link in an archive is not followed",
        "an archive in an archive; unpack the outer one first",
    }
    assert result.failed == ()


async def test_a_zip_bomb_costs_itself_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    write_zip(
        desk.folder / "bomb.zip", {"zeros.md": b"\0" * 40_000_000, "good.md": "# Good\n\nOk."}
    )
    result = await desk.ingest()
    assert set(desk.index.documents) == {"docs/bomb.zip/good"}
    ((_, reason),) = result.skipped
    assert reason.endswith("times its size, as a zip bomb does")

    monkeypatch.setattr(zip_archive, "MOST_UNPACKED_BYTES", 1000)
    write_zip(desk.folder / "large.zip", {"large.md": "text " * 1000})
    desk.write("page.md", "# Page\n\nText.")
    again = await desk.ingest()
    assert "docs/page" in desk.index.documents
    assert (
        "large.zip",
        "an archive may have 1000 bytes unpacked, this one has 5000",
    ) in again.failed


async def test_what_is_unpacked_is_counted_whatever_the_archive_states(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zip_archive, "MAX_BYTES", 1000)
    archive = write_zip(desk.folder / "lying.zip", {"a.md": "text " * 1000})

    result = await desk.ingest(archive)

    assert result.failed == (("lying.zip/a.md", "a file may have 1000 bytes, this one has more"),)


async def test_a_damaged_archive_removes_nothing(desk: Desk) -> None:
    archive = write_zip(desk.folder / "a.zip", {"a.md": "# A\n\nText."})
    await desk.ingest()
    archive.write_bytes(b"PK\x03\x04 damaged")

    result = await desk.ingest()

    assert set(desk.index.documents) == {"docs/a.zip/a"}
    assert "expected a zip archive, found a damaged one" in result.failed[0][1]


async def test_rules_for_an_archive_hold_for_its_files(desk: Desk) -> None:
    desk.write("refdesk.toml", '[[documents]]\npath = "pay.zip"\ngroups = ["hr"]\n')
    archive = write_zip(desk.folder / "pay.zip", {"bonus.md": "# Bonus\n\nTwo salaries."})

    await desk.ingest()
    await desk.ingest(archive)

    assert [one.groups for one in desk.index.documents.values()] == [("hr",)]


async def test_an_archive_with_rules_of_access_is_refused(desk: Desk) -> None:
    rules = '[[documents]]\npath = "*"\ngroups = ["hr"]\n'
    archive = write_zip(
        desk.folder / "pay.zip", {"refdesk.toml": rules, "bonus.md": "# Bonus\n\nTwo salaries."}
    )

    result = await desk.ingest(archive)

    assert desk.index.documents == {}
    assert "rules of access (refdesk.toml) are read in folders only" in result.failed[0][1]
