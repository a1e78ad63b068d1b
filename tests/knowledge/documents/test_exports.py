"""Exports of Notion, Slack, Confluence and Zendesk get their names and addresses back."""

import json
import stat
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath

import pytest

from knowledge.documents import exports as zip_archive
from knowledge.documents.exports import make_address
from knowledge.index.overlap import survey_part
from tests.knowledge.documents.conftest import Desk
from tests.knowledge.documents.test_confluence import EXPORT

pytestmark = pytest.mark.slow

HANDBOOK, LEAVE = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
OTHER = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"


async def test_pages_of_notion_have_titles_without_ids_and_addresses(desk: Desk) -> None:
    export = f"Export-{'1' * 8}-2222-3333-4444-{'5' * 12}"
    archive = write_zip(
        desk.folder / "notion.zip",
        {
            f"{export}/Handbook {HANDBOOK}.md": "# Handbook\n\nAll rules.",
            f"{export}/Handbook {HANDBOOK}/Leave {LEAVE}.md": "# Leave\n\n27 days.",
            f"{export}/Handbook {HANDBOOK}/Leave {OTHER}.md": "# Leave\n\nOf parents.",
        },
    )

    await desk.ingest(archive)

    found = {one.id: (one.crumbs, one.url) for one in desk.index.documents.values()}
    assert found == {
        "notion.zip/Handbook": (("Notion", "Handbook"), f"https://www.notion.so/{HANDBOOK}"),
        "notion.zip/Handbook/Leave": (
            ("Notion", "Handbook", "Leave"),
            f"https://www.notion.so/{OTHER}",
        ),
        "notion.zip/Handbook/Leave fedcba": (
            ("Notion", "Handbook", "Leave"),
            f"https://www.notion.so/{LEAVE}",
        ),
    }


def write_slack(folder: Path) -> None:
    """Write an export of one channel with a thread over two days."""
    people = [
        {"id": "U1", "name": "ann", "profile": {"real_name": "Ann Lee"}},
        {"id": "U2", "name": "bob", "profile": {"real_name": "Bob Ray"}},
    ]
    posts = {
        "2026-03-01": [
            {"type": "message", "user": "U1", "ts": "1772355600.000100", "text": "Lunch at noon."},
            {"type": "message", "user": "U1", "ts": "1772355700.000200", "reply_count": 1,
             "thread_ts": "1772355700.000200", "text": "Who restarts the <#C1|ops> node, <@U2>?"},
            {"type": "message", "subtype": "channel_join", "user": "U2", "ts": "1772355701.0",
             "text": "<@U2> has joined"},
        ],
        "2026-03-02": [
            {"type": "message", "user": "U2", "ts": "1772442000.000300",
             "thread_ts": "1772355700.000200", "text": "I do, see <https://a.test/x|the manual>."},
        ],
    }  # fmt: skip
    (folder / "ops").mkdir(parents=True)
    (folder / "users.json").write_text(json.dumps(people))
    (folder / "channels.json").write_text(json.dumps([{"id": "C1", "name": "ops"}]))
    for day, entries in posts.items():
        (folder / "ops" / f"{day}.json").write_text(json.dumps(entries))


async def test_a_thread_of_slack_is_one_document_with_names_and_an_address(desk: Desk) -> None:
    write_slack(desk.folder)

    result = await desk.ingest(
        partial(survey_part, desk.folder, web_address="https://acme.slack.com")
    )

    day, thread = sorted(desk.index.documents.values(), key=lambda one: one.title)
    assert day.title == "#ops, 2026-03-01"
    assert day.url == "https://acme.slack.com/archives/C1/p1772355600000100"
    assert "Ann Lee, 2026-03-01 09:00" in day.content
    assert thread.title == "Who restarts the #ops node, @Bob Ray?"
    assert thread.url == "https://acme.slack.com/archives/C1/p1772355700000200"
    assert thread.crumbs == ("#ops", thread.title)
    assert "I do, see the manual." in thread.content
    assert "joined" not in day.content
    assert result.failed == ()


async def test_a_channel_of_threads_alone_is_read_and_each_thread_once(desk: Desk) -> None:
    write_slack(desk.folder)
    days = desk.folder / "ops"
    _, thread, _ = json.loads((days / "2026-03-01.json").read_text())
    (days / "2026-03-01.json").write_text(json.dumps([thread]))

    result = await desk.ingest()

    assert (result.added, result.changed, result.failed) == (1, 0, ())
    assert desk.index.puts == ["docs/ops/thread-1772355700.000200"]


async def test_a_broken_day_of_slack_is_listed_and_the_others_are_read(desk: Desk) -> None:
    write_slack(desk.folder)
    (desk.folder / "ops" / "2026-03-03.json").write_text("[{")

    result = await desk.ingest()

    assert len(desk.index.documents) == 2
    ((source, reason),) = result.failed
    assert source == "ops/2026-03-03.json"
    assert reason.startswith("expected a file of a Slack export")


async def test_pages_of_confluence_have_the_pages_above_them_and_an_address(desk: Desk) -> None:
    desk.write("PLAT/Restart-a-node_98765.html", EXPORT)
    address = "https://wiki.test/pages/viewpage.action?pageId={id}"

    await desk.ingest(partial(survey_part, desk.folder, web_address=address))

    (document,) = desk.index.documents.values()
    assert document.crumbs == ("Platform", "Restart a node")
    assert document.url == "https://wiki.test/pages/viewpage.action?pageId=98765"


async def test_articles_of_zendesk_are_documents_with_sections_and_addresses(desk: Desk) -> None:
    export = {
        "articles": [
            {"id": 7, "title": "Reset a password", "body": "<p>Choose <b>Forgot</b>.</p>",
             "section_id": 3, "html_url": "https://help.test/articles/7", "locale": "en-us",
             "label_names": ["login"]},
            {"id": 8, "title": "Secret plan", "body": "<p>Not yet.</p>", "draft": True},
        ],
        "sections": [{"id": 3, "name": "Accounts", "category_id": 1}],
        "categories": [{"id": 1, "name": "Using the app"}],
    }  # fmt: skip
    desk.write("help.json", json.dumps(export))

    await desk.ingest()

    (document,) = desk.index.documents.values()
    assert document.title == "Reset a password"
    assert document.crumbs == ("Using the app", "Accounts", "Reset a password")
    assert document.url == "https://help.test/articles/7"
    assert document.stated_keywords == ("login",)
    assert document.content == "Choose Forgot."


@pytest.mark.parametrize(
    ("pattern", "address"),
    [
        ("https://h.test/blob/{revision}/{path}", "https://h.test/blob/main/a%20b/c_4242.md"),
        ("https://h.test/{page}/", "https://h.test/a%20b/c_4242/"),
        ("https://h.test/?id={id}", "https://h.test/?id=4242"),
        ("https://h.test/docs/", "https://h.test/docs/a%20b/c_4242.md"),
    ],
)
def test_a_pattern_makes_the_address_of_a_file(pattern: str, address: str) -> None:
    assert make_address(pattern, PurePosixPath("a b/c_4242.md"), "main") == address


def test_a_file_without_a_number_has_no_address_by_number() -> None:
    assert make_address("https://h.test/?id={id}", PurePosixPath("index.html")) == ""


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
        ("handbook.zip/hr/plan.png", "a picture; it is shown with the pages that refer to it"),
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
        "its path leads outside of the archive",
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
    assert reason.endswith("times its size, like a zip bomb")

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
    assert "access rules (refdesk.toml) are supported in folders only" in result.failed[0][1]
