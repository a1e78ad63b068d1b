"""Exports of Notion, Slack, Confluence and Zendesk get their names and addresses back."""

import json
from functools import partial
from pathlib import Path, PurePosixPath

import pytest

from knowledge.documents.exports.restoring import make_address
from knowledge.index.overlap import survey_part
from tests.knowledge.documents.conftest import Desk
from tests.knowledge.documents.exports.test_zip_archive import write_zip
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
