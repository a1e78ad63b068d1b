"""Pages of a played Confluence, which checks every request, become documents of their groups."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.assembly.source_opening import fetch_sources, open_copy
from knowledge.connectors.confluence_storage import write_html
from knowledge.documents.markup import html
from knowledge.errors import ConnectorError
from knowledge.ingestion_report import PlainReport
from knowledge.source_registry import STORES, locate_copy, parse_source
from tests.knowledge.connectors.conftest import Reading
from tests.knowledge.documents.conftest import Desk
from tests.support.app_harness import settings_of
from tests.support.services import TOKEN, PlayedService, Wiki, serve_confluence

BODY = (
    "<h2>Before</h2><p>Drain the node&nbsp;first &ndash; see "
    '<ac:link><ri:page ri:content-title="Holidays" /></ac:link>.</p>'
    '<ac:structured-macro ac:name="code"><ac:parameter ac:name="language">bash</ac:parameter>'
    "<ac:plain-text-body><![CDATA[drain --wait && echo '&nbsp;']]></ac:plain-text-body>"
    "</ac:structured-macro>"
    "<table><tbody><tr><th>Plan</th><th>Price</th></tr><tr><td>Small</td><td>4 EUR</td></tr>"
    "</tbody></table>"
)


@pytest.fixture
def service() -> Iterator[PlayedService]:
    with serve_confluence() as service:
        yield service


@pytest.fixture
def wiki(service: PlayedService) -> Wiki:
    wiki = Wiki(service)
    wiki.add_group("staff", "ann", "bob", "eve")
    wiki.add_group("hr", "ann")
    wiki.add_group("board", "zoe")
    wiki.add_space("1", "OPS", "Operations", "staff")
    wiki.add_page("10", "Restart a node", BODY)
    wiki.add_page("11", "Holidays", "<p>There are 27 days of leave.</p>", above="10")
    wiki.add_page("12", "Salaries", "<p>Salaries rise in May.</p>", above="11")
    return wiki


@pytest.fixture
def reading(service: PlayedService, wiki: Wiki, desk: Desk, tmp_path: Path) -> Reading:
    return Reading("confluence", service, desk, tmp_path, "/OPS")


async def test_a_page_keeps_headings_code_tables_and_links_and_is_cited_at_its_address(
    reading: Reading, service: PlayedService
) -> None:
    await reading.read()

    page = reading.documents["Restart a node"]
    assert page.url == f"https://{service.host}/wiki/spaces/OPS/pages/10"
    assert page.crumbs == ("Operations", "Restart a node")
    assert reading.documents["Salaries"].crumbs == (
        "Operations", "Restart a node", "Holidays", "Salaries",
    )  # fmt: skip
    assert "drain --wait && echo '&nbsp;'" in page.content
    assert "Drain the node first – see" in page.content
    assert "Small" in page.content
    assert "4 EUR" in page.content
    assert "Before" in page.content
    linked = [link for chunk in page.chunks for link in chunk.links]
    assert linked == [("Holidays", f"https://{service.host}/wiki/spaces/OPS/pages/11")]


async def test_a_blog_post_is_cited_at_its_day_and_has_its_own_restrictions(
    reading: Reading, service: PlayedService, wiki: Wiki
) -> None:
    wiki.add_post("40", "New data centre", "<p>We moved to Lund.</p>", "2026-05-04")
    wiki.restrict("40", "hr")

    await reading.read()

    post = reading.documents["New data centre"]
    assert post.url == f"https://{service.host}/wiki/spaces/OPS/blog/2026/05/04/40"
    assert (post.crumbs, post.groups) == (("Operations", "New data centre"), ("hr",))
    assert "We moved to Lund." in post.content


async def test_a_token_with_scopes_is_sent_to_the_address_for_such_tokens(
    reading: Reading, service: PlayedService, wiki: Wiki
) -> None:
    service.base = "/ex/confluence/0f-1"
    wiki.attach("10", "att5", "a.txt", b"Attached text.")

    await reading.read(confluence_api_url=f"http://{service.host}{service.base}")

    page = reading.documents["Restart a node"]
    assert page.url == f"https://{service.host}/wiki/spaces/OPS/pages/10"
    assert "Attached text." in reading.documents["a.txt"].content


async def test_only_changed_pages_are_fetched_and_deleted_ones_vanish(
    reading: Reading, service: PlayedService, wiki: Wiki
) -> None:
    first = await reading.read()
    wiki.add_page("11", "Holidays", "<p>There are 30 days of leave.</p>", above="10", version=2)
    wiki.remove_page("12")
    service.take_requests()

    second = await reading.read()

    assert (first.fetched, second.fetched) == (3, 1)
    assert "/wiki/api/v2/pages/10" not in service.take_requests()
    assert set(reading.documents) == {"Restart a node", "Holidays"}
    assert "30 days" in reading.documents["Holidays"].content


async def test_a_restricted_page_and_those_below_it_are_for_its_groups_alone(
    reading: Reading, wiki: Wiki
) -> None:
    wiki.restrict("11", "hr", people=1)

    await reading.read()

    groups = {title: document.groups for title, document in reading.documents.items()}
    assert groups == {"Restart a node": ("staff",), "Holidays": ("hr",), "Salaries": ("hr",)}


async def test_rights_that_change_without_a_new_version_hold_from_the_next_time_on(
    reading: Reading, wiki: Wiki
) -> None:
    await reading.read()
    wiki.restrict("11", "hr")

    outcome = await reading.read()

    assert outcome.fetched == 0
    assert reading.documents["Salaries"].groups == ("hr",)


async def test_a_group_with_a_member_whom_the_space_keeps_out_reads_nothing(
    reading: Reading, wiki: Wiki
) -> None:
    wiki.restrict("10", "board")
    wiki.restrict("12", people=2)

    outcome = await reading.read()

    assert reading.documents == {}
    reasons = dict(outcome.skipped)
    assert len(reasons) == 3
    assert all("no group can read this page" in reason for reason in reasons.values())
    assert any("'Salaries': people only" in reason for reason in reasons.values())


async def test_every_member_of_a_group_counts_however_short_the_pages_of_the_service_are(
    reading: Reading, service: PlayedService, wiki: Wiki
) -> None:
    service.most_members = 2
    wiki.add_group("project", "ann", "bob", "zoe")
    wiki.restrict("12", "project")

    await reading.read()

    assert set(reading.documents) == {"Restart a node", "Holidays"}


async def test_a_page_that_is_closed_to_all_groups_vanishes(reading: Reading, wiki: Wiki) -> None:
    await reading.read()
    wiki.restrict("12", people=1)

    await reading.read()

    assert set(reading.documents) == {"Restart a node", "Holidays"}


async def test_groups_to_which_all_belong_make_documents_for_everybody(
    reading: Reading, wiki: Wiki
) -> None:
    wiki.restrict("12", "hr")

    await reading.read(source_everybody_groups=["staff"])

    assert reading.documents["Holidays"].groups == ()
    assert reading.documents["Salaries"].groups == ("hr",)


async def test_a_page_whose_rights_cannot_be_read_is_left_out_and_named(
    reading: Reading, service: PlayedService, wiki: Wiki
) -> None:
    wiki.add_page("13", "Plans", "<p>Plans.</p>", above="77", kind="folder")
    service.fail("/wiki/rest/api/content/12/restriction/byOperation/read", 403)

    outcome = await reading.read()

    assert set(reading.documents) == {"Restart a node", "Holidays"}
    reasons = dict(outcome.failures)
    assert len(reasons) == 2
    assert (
        "a page above it cannot be read"
        in reasons[f"https://{service.host}/wiki/spaces/OPS/pages/13"]
    )


async def test_the_restriction_of_a_folder_holds_for_the_pages_in_it(
    reading: Reading, service: PlayedService, wiki: Wiki
) -> None:
    wiki.add_page("13", "Plans", "<p>Plans.</p>", above="77", kind="folder")
    service.answers["/wiki/api/v2/folders/77"] = {"id": "77", "title": "Drafts", "parentId": None}
    wiki.restrict("77", "hr")

    await reading.read()

    plans = reading.documents["Plans"]
    assert (plans.groups, plans.crumbs) == (("hr",), ("Operations", "Drafts", "Plans"))


async def test_attachments_are_read_with_the_groups_of_their_page(
    reading: Reading, service: PlayedService, wiki: Wiki
) -> None:
    open_to_all = b"---\ngroups: [everyone]\nid: handbook\n---\n# Rates\n\nThe rate is 7 percent.\n"
    wiki.attach("12", "att5", "../../etc/rates.md", open_to_all)
    wiki.attach("12", "att6", "logo.png", b"picture")
    wiki.attach("12", "att7", "all.zip", b"archive")
    wiki.restrict("12", "hr")

    await reading.read()

    rates = reading.documents["Rates"]
    assert rates.groups == ("hr",)
    assert rates.url == f"https://{service.host}/wiki/spaces/OPS/pages/12?preview=/12/5"
    assert rates.id != "handbook"
    assert ".." not in Path(rates.source).parts
    assert not list(reading.folder.glob("**/etc"))
    assert (await reading.read()).fetched == 0

    wiki.remove_page("12")
    await reading.read()
    assert "Rates" not in reading.documents


@pytest.mark.parametrize(
    ("status", "headers", "message"),
    [
        (503, {"Retry-After": "3600"}, "requested a wait of 3600 s"),
        (401, {}, "set CONFLUENCE_EMAIL and CONFLUENCE_API_TOKEN"),
        (429, {"Retry-After": "3600"}, "requested a wait of 3600 s"),
        (302, {"Location": "http://169.254.169.254/latest"}, "check the configured address"),
        (403, {}, "check its permissions"),
        (500, {}, "status 500"),
    ],
)
async def test_a_service_that_is_away_loses_nothing_and_says_what_to_do(
    reading: Reading,
    service: PlayedService,
    status: int,
    headers: dict[str, str],
    message: str,
) -> None:
    await reading.read()
    before = dict(reading.documents)
    service.fail("/wiki/api/v2/spaces/1/pages", status, headers)

    with pytest.raises(ConnectorError, match=message) as caught:
        await reading.read()

    assert TOKEN not in str(caught.value)
    assert reading.documents == before


async def test_a_busy_service_is_asked_again_after_the_time_that_it_states(
    reading: Reading, service: PlayedService
) -> None:
    service.fail("/wiki/api/v2/pages/11", 429, {"Retry-After": "0"}, times=2)

    assert (await reading.read()).fetched == 3
    assert service.requests.count("/wiki/api/v2/pages/11") == 3


async def test_a_service_that_allows_few_requests_at_a_time_is_read_in_full(
    reading: Reading, service: PlayedService
) -> None:
    service.in_a_window, service.window_seconds = 12, 1.0

    assert (await reading.read()).fetched == 3
    assert len(service.requests) > 12


@pytest.mark.parametrize(
    "body",
    [b'{"id": "11", "body": {"sto', b'{"id": "11"}', b"<html>sign in</html>", b"[" * 100_000],
)
async def test_half_a_page_keeps_its_last_version_and_is_named(
    reading: Reading, service: PlayedService, wiki: Wiki, body: bytes
) -> None:
    await reading.read()
    wiki.add_page("11", "Holidays", "<p>New.</p>", above="10", version=2)
    service.fail("/wiki/api/v2/pages/11", 200, body=body)

    outcome = await reading.read()

    assert "27 days" in reading.documents["Holidays"].content
    assert [place[-3:] for place, _ in outcome.failures] == ["/11"]


async def test_an_answer_that_breaks_off_is_no_page(
    reading: Reading, service: PlayedService
) -> None:
    service.fail("/wiki/api/v2/pages/11", 200, {"Content-Length": "900"}, body=b'{"id"')

    outcome = await reading.read()

    assert set(reading.documents) == {"Restart a node", "Salaries"}
    assert len(outcome.failures) == 1


async def test_storage_that_is_no_xml_is_named_and_hostile_markup_is_data(
    reading: Reading, wiki: Wiki
) -> None:
    wiki.add_page("20", "Torn", "<p>Torn <b>text</p>")
    wiki.add_page("21", "Deep", "<div>" * 900 + "text" + "</div>" * 900)
    bomb = '<!DOCTYPE a [<!ENTITY a "b">]><p>&a;</p>'
    wiki.add_page("22", "Bomb", bomb)
    wiki.add_page(
        "23",
        "<script>alert(1)</script>\n../../x",
        '<script>steal()</script><p style="display:none">hidden words of nobody here</p>'
        '<p onclick="x()">Shown.</p><a href="javascript:x()">Go</a>',
    )

    outcome = await reading.read()

    assert sorted(place.rpartition("/")[2] for place, _ in outcome.failures) == ["20", "21", "22"]
    (hostile,) = [document for title, document in reading.documents.items() if "alert" in title]
    assert "Shown." in hostile.content
    assert "steal" not in hostile.content
    assert "hidden words" not in hostile.content
    assert not hostile.source.startswith((".", "/"))
    assert ".." not in Path(hostile.source).parts


async def test_a_list_without_an_end_is_an_error(reading: Reading, service: PlayedService) -> None:
    service.endless = True

    with pytest.raises(ConnectorError, match="has no end"):
        await reading.read()


async def test_credentials_go_to_the_site_of_the_settings_alone(
    reading: Reading, service: PlayedService, wiki: Wiki
) -> None:
    with serve_confluence() as other:
        other.is_open = True
        reading.place = f"confluence://{other.host}/OPS"
        with pytest.raises(ConnectorError, match="set CONFLUENCE_URL"):
            await reading.read()
        assert other.requests == []

        reading.place = f"confluence://{service.host}/OPS"
        wiki.attach("12", "att5", "rates.md", b"# Rates\n")
        download = "/wiki/rest/api/content/12/child/attachment/att5/download"
        service.fail(download, 302, {"Location": f"http://localhost:{other.port}/secret.md"})

        outcome = await reading.read()

        assert other.requests == []
    assert [place[-1:] for place, _ in outcome.failures] == ["5"]


async def test_a_site_that_shows_nothing_any_more_is_an_error_and_no_deletion(
    reading: Reading, service: PlayedService
) -> None:
    await reading.read()
    service.answers["/wiki/api/v2/spaces/1/pages"] = []

    with pytest.raises(
        ConnectorError, match="contains nothing that the account can read, but had 3 documents"
    ):
        await reading.read()

    assert len(reading.documents) == 3


async def test_a_space_that_is_not_there_is_an_error_that_names_it(reading: Reading) -> None:
    reading.place = reading.place.replace("OPS", "NONE")

    with pytest.raises(ConnectorError, match="cannot read the space 'NONE'"):
        await reading.read()


async def test_without_credentials_the_error_names_the_settings(reading: Reading) -> None:
    with pytest.raises(ConnectorError, match="set CONFLUENCE_EMAIL and CONFLUENCE_API_TOKEN"):
        await reading.read(confluence_api_token=None)


async def test_a_service_is_fetched_and_opened_as_a_source(
    reading: Reading, service: PlayedService, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path / "data", **reading.settings)
    spec = parse_source(reading.place)
    report = PlainReport(lambda _line: None)

    (fetched,) = await fetch_sources(settings, [spec], report)
    assert fetched.copied is not None
    folder = locate_copy(*settings.data_place, STORES, spec.place)
    await reading.desk.ingest(open_copy(folder, fetched.spec, fetched.copied))

    assert len(reading.documents) == 3
    assert set(reading.desk.index.roots.values()) == {spec.root}


def test_macros_keep_their_text_and_leave_out_what_is_elsewhere() -> None:
    storage = (
        '<ac:structured-macro ac:name="warning"><ac:parameter ac:name="title">Heat</ac:parameter>'
        "<ac:rich-text-body><p>Do not touch.</p></ac:rich-text-body></ac:structured-macro>"
        '<p>State: <ac:structured-macro ac:name="status"><ac:parameter ac:name="title">DONE'
        "</ac:parameter></ac:structured-macro></p>"
        "<ac:task-list><ac:task><ac:task-id>7</ac:task-id><ac:task-status>complete"
        "</ac:task-status><ac:task-body>Order lamps</ac:task-body></ac:task></ac:task-list>"
        '<ac:structured-macro ac:name="jira"><ac:parameter ac:name="key">OPS-1</ac:parameter>'
        "</ac:structured-macro>"
        '<ac:link><ri:page ri:content-title="Nowhere" /><ac:plain-text-link-body><![CDATA[a < b]]>'
        '</ac:plain-text-link-body></ac:link> <a href="/wiki/x">here</a>'
    )

    page = html.read(
        write_html(storage, "T & t", "https://a.example/wiki", lambda *_: ""), "a.html"
    )

    assert page.title == "T & t"
    assert [block.text for block in page.blocks] == [
        "T & t", "Heat", "Do not touch.", "State: DONE", "- [x] Order lamps", "a < b here",
    ]  # fmt: skip
    assert page.links == (("here", "https://a.example/wiki/x"),)
