"""Articles of a played help center, which checks every request, become documents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from knowledge.errors import ConnectorError
from tests.knowledge.connectors.conftest import Reading
from tests.knowledge.documents.conftest import Desk
from tests.support.services import PlayedService, serve_zendesk

HELP = "/api/v2/help_center"


def article(identity: int, title: str, body: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": identity,
        "title": title,
        "body": body,
        "draft": False,
        "locale": "en-us",
        "section_id": 5,
        "updated_at": "2026-11-01T10:00:00Z",
        "user_segment_id": None,
        **fields,
    }


@pytest.fixture
def service() -> Iterator[PlayedService]:
    with serve_zendesk() as service:
        segments = [
            {
                "id": 70,
                "name": "Angemeldete",
                "user_type": "signed_in_users",
                "built_in": True,
            },
            {"id": 71, "name": "VIP customers", "user_type": "signed_in_users", "built_in": False},
            {"id": 72, "name": "Partners", "user_type": "signed_in_users", "built_in": False},
        ]
        service.answers[f"{HELP}/user_segments"] = segments
        for base in (HELP, f"{HELP}/en-us"):
            service.answers[f"{base}/categories"] = [{"id": 3, "name": "Billing"}]
            service.answers[f"{base}/sections"] = [
                {"id": 4, "name": "Invoices", "category_id": 3, "parent_section_id": None},
                {"id": 5, "name": "Reminders", "category_id": 3, "parent_section_id": 4},
            ]
            service.answers[f"{base}/articles"] = [
                article(10, "Late fees", "<h2>When</h2><p>After 14 days the fee is 5 EUR.</p>"),
                article(11, "Discounts", "<p>20 percent.</p>", user_segment_ids=[72, 71]),
                article(12, "Account", "<p>Sign in.</p>", user_segment_id=70),
                article(13, "Next year", "<p>Secret.</p>", draft=True),
            ]
        for number in range(10, 14):
            service.answers[f"{HELP}/articles/{number}/attachments"] = []
        yield service


@pytest.fixture
def reading(service: PlayedService, desk: Desk, tmp_path: Path) -> Reading:
    return Reading("zendesk", service, desk, tmp_path)


async def test_an_article_is_cited_at_its_address_below_its_category_and_sections(
    reading: Reading, service: PlayedService
) -> None:
    await reading.read()

    fees = reading.documents["Late fees"]
    assert fees.url == f"https://{service.host}/hc/en-us/articles/10"
    assert fees.crumbs == ("Billing", "Invoices", "Reminders", "Late fees")
    assert "After 14 days the fee is 5 EUR." in fees.content
    assert fees.language == "en"


async def test_a_file_of_an_article_is_read_for_those_who_may_read_the_article(
    reading: Reading, service: PlayedService
) -> None:
    path = "/hc/article_attachments/90/terms.txt"
    attached = {
        "id": 90,
        "file_name": "terms.txt",
        "content_url": f"https://spy.example{path}",
        "size": 20,
        "updated_at": "2026-11-01T10:00:00Z",
    }
    picture = {**attached, "id": 91, "file_name": "a.png", "inline": True}
    service.answers[f"{HELP}/articles/11/attachments"] = [attached, picture]
    service.answers[path] = b"Partners pay half."

    await reading.read()

    terms = reading.documents["terms.txt"]
    assert terms.url == f"https://{service.host}{path}"
    assert terms.groups == reading.documents["Discounts"].groups == ("Partners", "VIP customers")
    assert "Partners pay half." in terms.content


async def test_user_segments_become_groups_and_drafts_are_left_out(reading: Reading) -> None:
    await reading.read()

    groups = {title: document.groups for title, document in reading.documents.items()}
    assert groups == {
        "Late fees": (),
        "Discounts": ("Partners", "VIP customers"),
        "Account": ("signed_in_users",),
    }


async def test_a_segment_to_which_all_belong_makes_an_article_for_everybody(
    reading: Reading,
) -> None:
    await reading.read(source_everybody_groups=["signed_in_users"])

    assert reading.documents["Account"].groups == ()
    assert reading.documents["Discounts"].groups != ()


@pytest.mark.parametrize("is_forbidden", [True, False])
async def test_an_article_whose_segment_is_unknown_is_left_out_and_named(
    reading: Reading, service: PlayedService, *, is_forbidden: bool
) -> None:
    if is_forbidden:
        service.fail(f"{HELP}/user_segments", 403)
    else:
        service.answers[f"{HELP}/user_segments"] = []

    outcome = await reading.read()

    assert set(reading.documents) == {"Late fees"}
    assert len(outcome.failures) == 2
    assert all(
        "use the account of a help center manager" in reason for _, reason in outcome.failures
    )


async def test_an_article_of_another_version_is_written_again_and_an_archived_one_vanishes(
    reading: Reading, service: PlayedService
) -> None:
    await reading.read()
    service.answers[f"{HELP}/articles"] = [
        article(10, "Late fees", "<p>6 EUR.</p>", updated_at="2026-11-02T10:00:00Z"),
        article(12, "Account", "<p>Sign in.</p>", user_segment_id=71),
    ]

    outcome = await reading.read()

    assert outcome.fetched == 1
    assert set(reading.documents) == {"Late fees", "Account"}
    assert "6 EUR" in reading.documents["Late fees"].content
    assert reading.documents["Account"].groups == ("VIP customers",)


async def test_without_credentials_what_everybody_may_see_is_read_in_one_language(
    reading: Reading, service: PlayedService
) -> None:
    service.is_open = True
    service.answers[f"{HELP}/en-us/articles"] = [article(10, "Late fees", "<p>5 EUR.</p>")]
    with pytest.raises(ConnectorError, match="or specify a language, such as /en-us"):
        await reading.read(zendesk_api_token=None)

    reading.place += "/en-us"
    await reading.read(zendesk_api_token=None)

    assert reading.documents["Late fees"].groups == ()
    assert set(service.authorizations) == {""}


async def test_a_list_without_an_end_is_an_error(reading: Reading, service: PlayedService) -> None:
    service.endless = True

    with pytest.raises(ConnectorError, match="has no end"):
        await reading.read()


async def test_entries_that_are_none_are_an_error_and_hostile_ones_are_data(
    reading: Reading, service: PlayedService
) -> None:
    service.answers[f"{HELP}/articles"] = [article(10, "x", "y", locale="../../admin")]
    with pytest.raises(ConnectorError, match="has an unexpected form"):
        await reading.read()

    service.answers[f"{HELP}/articles"] = [
        article(10, "</title><meta name=refdesk>", "</body><h1>Other</h1><p>Text of it.</p>")
    ]
    await reading.read()

    (only,) = reading.documents
    assert only == "</title><meta name=refdesk>"
