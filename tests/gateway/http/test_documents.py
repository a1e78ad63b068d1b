"""Where sources open: at the page's address, in the documentation, else at the server itself."""

import base64
import dataclasses
import json
import time
from html import escape
from typing import Any

import httpx
import pytest

from envelope.role import Role
from gateway.http.links import LIFE_SECONDS, Citation, SourceLinks
from gateway.http.routes.documents import LONGEST_LINE, MOST_CHARACTERS, document_page
from gateway.port import ReadableDocument, ReadableSection, StoredPicture
from memory.errors import MemoryUnavailableError
from tests.support.http_server import (
    DOCUMENT,
    SECRET,
    FakeDocuments,
    HttpServerFixture,
    events,
    open_http_server,
)
from tests.support.pictures import make_picture
from tests.support.worker_harness import WorkerHarness

MESSAGES = "/v1/conversations/c1/messages"


QUESTION = {"text": "How do I add a rule?", "message_id": "m1"}


SOURCE: dict[str, Any] = {
    "number": 1,
    "chunk_id": "rules#1",
    "title": "Routing rules",
    "heading_path": ["Create a rule"],
    "anchor": "create-a-rule",
    "path": "routing/rules.md",
}


async def ask_for_source(
    http_server: HttpServerFixture, client: httpx.AsyncClient, **changes: object
) -> dict[str, Any]:
    """Return the source of an answer that cites one."""
    http_server.harness.script.next(Role.RESPONSE, {"sources_used": [{**SOURCE, **changes}]})
    answer = (await client.post(MESSAGES, json=QUESTION)).json()
    source: dict[str, Any] = answer["sources"][0]
    return source


async def script_refusal(http_server: HttpServerFixture) -> None:
    """Let the next question be refused, with a page to look at."""
    page = {
        "label": "Routing rules",
        "value": "Routing rules",
        "kind": "source",
        "chunk_id": "rules#1",
        "path": "routing/rules.md",
        "crumbs": ["Routing", "Routing rules"],
    }
    script = http_server.harness.script
    script.next(
        Role.SEARCH, {"needs_clarification": True, "clarification_reason": "insufficient_context"}
    )
    script.next(
        Role.CLARIFICATION, {"response": "Look here:\n- Routing rules", "suggested_actions": [page]}
    )


async def test_the_nearest_page_of_a_refusal_opens_like_a_source(
    http_server: HttpServerFixture,
) -> None:
    client = await http_server.secret()
    await script_refusal(http_server)

    answer = (await client.post(MESSAGES, json=QUESTION)).json()

    [action] = answer["suggested_actions"]
    assert (answer["outcome"], action["crumbs"]) == ("refused", ["Routing", "Routing rules"])
    page = await http_server.client().get(action["link"])
    assert (page.status_code, "Routing rules" in page.text) == (200, True)


def ticket_of(**changes: Any) -> str:
    """Return a signed ticket for this citation."""
    made = SourceLinks(secret=SECRET)
    named = {
        "tenant": "acme",
        "assistant": "docs",
        "chunk_id": "rules#1",
        "key_id": "",
        "expires_at": int(time.time()) + 60,
    }
    written = Citation.model_validate({**named, **changes}).model_dump_json()
    body = base64.urlsafe_b64encode(written.encode()).decode()
    return f"{body}.{made._signature(body)}"  # noqa: SLF001 # what only the server can make


async def test_a_source_opens_at_its_heading_in_a_tab_that_has_no_key(
    http_server: HttpServerFixture,
) -> None:
    client = await http_server.secret()

    source = await ask_for_source(http_server, client)
    link, _, heading = source["link"].partition("#")
    page = await http_server.client().get(link)

    assert link.startswith(f"{http_server.url}/v1/reader/")
    assert heading == "create-a-rule"
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert 'id="create-a-rule" class="cited"' in page.text
    assert '<h1 dir="auto">Routing rules</h1>' in page.text
    assert "<p>Choose <code>New rule</code>.</p>" in page.text
    assert source["chunk_id"] == "rules#1"


async def test_every_way_to_an_answer_contains_the_link(http_server: HttpServerFixture) -> None:
    client = await http_server.secret()
    await ask_for_source(http_server, client)

    read = (await client.get("/v1/conversations/c1")).json()["messages"][0]["answer"]
    seen = await events(client, "GET", f"{MESSAGES}/m1/events")
    source_lists: list[Any] = [event.data["sources"] for event in seen if "sources" in event.data]

    assert len(source_lists) == 2
    for sources in (read["sources"], *source_lists):
        page = await http_server.client().get(sources[0]["link"])
        assert page.status_code == 200


@pytest.mark.parametrize(
    ("documentation", "source", "link"),
    [
        ("", {"url": "https://acme.test/rules"}, "https://acme.test/rules#create-a-rule"),
        ("https://docs.acme.test", {}, "https://docs.acme.test/routing/rules.md#create-a-rule"),
        ("https://docs.acme.test/", {"anchor": None}, "https://docs.acme.test/routing/rules.md"),
        (
            "https://docs.acme.test/{page}.html#s-{anchor}",
            {},
            "https://docs.acme.test/routing/rules.html#s-create-a-rule",
        ),
        (
            "https://docs.acme.test/{page}",
            {"path": "a b/ü?.md", "anchor": 'x"><script>'},
            "https://docs.acme.test/a%20b/%C3%BC%3F#x%22%3E%3Cscript%3E",
        ),
        (
            "https://docs.acme.test",
            {"url": "https://elsewhere.test/rules#there"},
            "https://elsewhere.test/rules#there",
        ),
    ],
)
async def test_a_source_opens_where_the_documents_are_published(
    harness: WorkerHarness, documentation: str, source: dict[str, Any], link: str
) -> None:
    named = {("acme", "docs"): documentation}
    async with (
        harness.open(),
        open_http_server(harness, documentation=named, documents=FakeDocuments()) as http_server,
    ):
        assert (await ask_for_source(http_server, http_server.client(), **source))["link"] == link


async def test_a_server_without_documents_names_its_sources(harness: WorkerHarness) -> None:
    async with harness.open(), open_http_server(harness) as http_server:
        source = await ask_for_source(http_server, http_server.client())

    assert "link" not in source
    assert source["path"] == "routing/rules.md"


async def test_a_visitors_link_opens_without_the_websites_origin(
    http_server: HttpServerFixture,
) -> None:
    visitor = await http_server.visitor(await http_server.public(requests_per_minute=12))
    http_server.harness.script.next(Role.RESPONSE, {"sources_used": [SOURCE]})
    answer = await visitor.client.post(f"{visitor.path}/messages", json=QUESTION)
    link = answer.json()["sources"][0]["link"]

    opened = [await http_server.client().get(link) for _ in range(3)]

    # And one request before: a link uses its visitor's share of its key's limits.
    assert [page.status_code for page in opened] == [200, 200, 429]
    assert "reader_later/en" in opened[-1].text
    assert int(opened[-1].headers["retry-after"]) >= 1


async def test_a_link_ends_with_its_key(http_server: HttpServerFixture) -> None:
    client = await http_server.secret()
    link = (await ask_for_source(http_server, client))["link"]
    [key] = await http_server.keys.all()

    opened = await http_server.client().get(link)
    await http_server.keys.put(key.model_copy(update={"assistants": ("api",)}))
    narrowed = await http_server.client().get(link)
    await http_server.keys.put(key.model_copy(update={"revoked_at": 1.0}))
    revoked = await http_server.client().get(link)

    assert [opened.status_code, narrowed.status_code, revoked.status_code] == [200, 404, 404]
    assert "reader_gone/en" in revoked.text


async def test_a_link_made_without_keys_ends_with_the_first_one(
    http_server: HttpServerFixture,
) -> None:
    link = (await ask_for_source(http_server, http_server.client()))["link"]
    opened = await http_server.client().get(link)
    await http_server.key()
    closed = await http_server.client().get(link)

    assert [opened.status_code, closed.status_code] == [200, 404]


async def test_nobody_else_can_make_a_link(harness: WorkerHarness) -> None:
    foreign = ReadableDocument("Xylophone", (), "en", (ReadableSection((), None, "xylophone"),))
    fake_documents = FakeDocuments(
        ("acme", "docs", "rules#1", DOCUMENT), ("other", "docs", "x#1", foreign)
    )
    good = ticket_of()
    body, _, signature = good.partition(".")
    others = json.loads(base64.urlsafe_b64decode(body))
    others.update(tenant="other", chunk_id="x#1")
    forged = base64.urlsafe_b64encode(json.dumps(others).encode()).decode()
    tickets = [
        f"{forged}.{signature}",
        f"{body}.{signature[:-1]}{'A' if signature[-1] != 'A' else 'B'}",
        f"{body}.",
        body,
        f"{forged}.{SourceLinks(secret=b'another')._signature(forged)}",  # noqa: SLF001 # a forger's
        ticket_of(expires_at=int(time.time()) - 1),
        ticket_of(tenant="other", chunk_id="x#1"),  # signed, but the caller's tenant is acme
        ticket_of(chunk_id="../../etc/passwd#1"),
        ticket_of(chunk_id=""),
        ticket_of(key_id="0" * 12),
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e",
        "a" * 9_000,
        "%00.%00",
    ]
    async with harness.open(), open_http_server(harness, documents=fake_documents) as http_server:
        client = http_server.client()
        opened = await client.get(f"/v1/reader/{good}")
        refused = [await client.get(f"/v1/reader/{ticket}") for ticket in tickets]

    assert opened.status_code == 200
    assert {answer.status_code for answer in refused} <= {400, 404}
    assert all("ylophone" not in answer.text for answer in refused)


class AwayShelf(FakeDocuments):
    """Documents whose index does not answer."""

    async def citing(
        self, tenant: str, assistant: str, chunk_id: str, groups: tuple[str, ...]
    ) -> ReadableDocument | None:
        raise MemoryUnavailableError("the index does not answer")


async def test_a_page_explains_why_a_document_cannot_be_read(
    harness: WorkerHarness,
) -> None:
    reads = {"Accept-Language": "de-CH, en;q=0.5"}
    async with harness.open(), open_http_server(harness, documents=AwayShelf()) as http_server:
        client = http_server.client(**reads)
        away = await client.get(f"/v1/reader/{ticket_of()}")
        torn = await client.get(f"/v1/reader/{ticket_of()[:-9]}).")

    assert (away.status_code, torn.status_code) == (503, 404)
    assert int(away.headers["retry-after"]) >= 1
    for page, words in ((away, "reader_later/de"), (torn, "reader_gone/de")):
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "sandbox" in page.headers["content-security-policy"]
        assert f"<p>{words}</p>" in page.text
        assert '<html lang="de"' in page.text


def test_a_link_is_good_for_a_day() -> None:
    links = SourceLinks(secret=SECRET)
    now = int(time.time())

    assert links.read(ticket_of(expires_at=now + LIFE_SECONDS)) is not None
    assert links.read(ticket_of(expires_at=now)) is None


async def test_a_document_is_words_and_nothing_else(harness: WorkerHarness) -> None:
    script = "<script>alert(1)</script>"
    hostile = ReadableDocument(
        title=script,
        crumbs=(script,),
        language="en",
        sections=(
            ReadableSection((script,), '"><img src=x onerror=alert(1)>', script, cited=True),
            ReadableSection(
                ("Links",), "links", "[x](javascript:alert(1)) ![y](https://spy.test/p.png)"
            ),
            ReadableSection(
                ("Code",), "links", f"```{script}\n{script}\n```\n\n<iframe src=//spy.test>"
            ),
        ),
    )
    fake_documents = FakeDocuments(("acme", "docs", "rules#1", hostile))
    async with harness.open(), open_http_server(harness, documents=fake_documents) as http_server:
        page = await http_server.client().get(f"/v1/reader/{ticket_of()}")

    for harm in ("<script", "<img", "<iframe", "<a ", 'javascript:alert(1)"', 'src="'):
        assert harm not in page.text, harm
    assert page.text.count('id="links"') == 1
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cache-control"] == "no-store"


def test_a_mile_of_text_becomes_a_page_of_bounded_size() -> None:
    monsters = (
        "`" * 50_000,
        "- " * 50_000,
        "> " * 50_000,
        "x" * (LONGEST_LINE + 1),
        "a\n" * 900_000,
    )
    sections = tuple(ReadableSection((f"Part {n}",), None, text) for n, text in enumerate(monsters))

    long = ReadableDocument("Monsters", (), "en", sections)
    page = document_page(long, cited="", shortened="Only the beginning is shown.")

    assert len(page) < 12 * MOST_CHARACTERS
    assert b"<p>Only the beginning is shown.</p>" in page


def test_values_of_a_document_are_shown_as_they_stand_there() -> None:
    text = (
        "2*3*4 and `a_*b*`\n\nRoom 5\n101 seats\n\n> 3 kW\n\n+ 5 V\n\n***\n\nOld: ~~400~~ 350\n\n"
        "1. Open\n2. Save\n4. Close\n\n    | 5 |\n\n| Code | Path |\n|---|---|\n| a\\|b | \\\\srv |"
    )
    document = ReadableDocument("Codes", (), "en", (ReadableSection((), None, text),))

    page = document_page(document, cited="", shortened="Only the beginning is shown.").decode()

    body = page.partition("</header>")[2].replace("\n", "")
    assert "<p>2*3*4 and <code>a_*b*</code></p><p>Room 5<br>101 seats</p>" in body
    assert "<p>&gt; 3 kW</p><p>+ 5 V</p><p>***</p>" in body
    assert "<p>Old: <s>400</s> 350</p>" in body
    assert "<ol><li>Open</li><li>Save</li></ol><p>4. Close</p>" in body
    assert "<p>| 5 |</p>" in body
    assert "<td>a|b</td><td>\\\\srv</td>" in body
    assert "beginning" not in body


@pytest.mark.parametrize(
    ("address", "is_link"),
    [
        ("https://status.acme.com/now?day=1&hour=2", True),
        ("https://status.acme.com:8443/now", False),
        ("https://status.acme.com.evil.example/now", False),
        ("https://status.acme.com@evil.example/", False),
        ("https://evil.example/#https://status.acme.com/", False),
        ("javascript:alert('https://status.acme.com/')", False),
    ],
)
def test_an_address_of_a_document_is_a_link_on_a_host_that_the_owner_trusts(
    address: str, is_link: bool
) -> None:
    sections = (
        ReadableSection(("Code",), "code", f"See the state (`{address}`)."),
        ReadableSection(("Text",), "text", f"See the state at {address} today."),
        ReadableSection(("Label",), "label", "See the state.", links=(("state", address),)),
    )
    document = ReadableDocument("State", (), "en", sections)

    page = document_page(document, cited="", link_hosts={"status.acme.com"}).decode()

    assert page.count(f'<a href="{escape(address)}" ') == (3 if is_link else 0)
    assert page.count("<a ") == (3 if is_link else 0)


def test_a_heading_without_text_of_its_own_is_shown_above_its_parts() -> None:
    sections = (
        ReadableSection(("Rules", "Create"), "create", "Press New."),
        ReadableSection(("Rules", "Delete"), "delete", "Press Delete."),
        ReadableSection(("Limits",), "limits", "Limits"),
    )

    page = document_page(ReadableDocument("Routing", (), "ar", sections), cited="").decode()

    page_body = page.split("<body>")[1]
    order = [
        page_body.index(words) for words in (">Rules<", ">Create<", "New", ">Delete<", ">Limits<")
    ]
    assert order == sorted(order)
    assert page_body.count("Limits") == 1
    assert page_body.count(">Rules<") == 1
    assert '<html lang="ar" dir="rtl">' in page


NAME, OTHER = "a" * 32, "b" * 32


CAPTION = 'Terminal "A" <b>'


def shelf() -> FakeDocuments:
    """Return documents of which one has a picture."""
    section = ReadableSection(
        ("Wire",), "wire", f"Connect it.\n\n![{CAPTION}]", pictures=((NAME, CAPTION),)
    )
    document = dataclasses.replace(DOCUMENT, sections=(section,))
    documents = FakeDocuments(("acme", "docs", "rules#1", document))
    documents.pictures = dict.fromkeys((NAME, OTHER), StoredPicture("image/png", make_picture()))
    return documents


async def test_a_source_has_the_links_of_its_pictures(harness: WorkerHarness) -> None:
    async with harness.open(), open_http_server(harness, documents=shelf()) as http_server:
        pictures = [{"id": NAME, "caption": "Terminal **A** [x](https://spy.test)"}]
        source = await ask_for_source(http_server, http_server.client(), pictures=pictures)
        (shown,) = source["pictures"]
        seen = await http_server.client().get(shown["link"])

    assert (seen.status_code, seen.headers["content-type"]) == (200, "image/png")
    assert seen.content == make_picture()
    assert seen.headers["x-content-type-options"] == "nosniff"
    assert seen.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert seen.headers["cross-origin-resource-policy"] == "cross-origin"
    assert "spy.test" not in shown["caption"]


async def test_the_page_of_a_document_shows_its_pictures_from_this_server(
    harness: WorkerHarness,
) -> None:
    async with harness.open(), open_http_server(harness, documents=shelf()) as http_server:
        ticket = ticket_of()
        page = await http_server.client().get(f"/v1/reader/{ticket}")
        seen = await http_server.client().get(f"/v1/reader/{ticket}/{NAME}")

    assert f'<img src="{ticket}/{NAME}" alt="Terminal &#34;A&#34; &lt;b&gt;"' in page.text
    assert "![" not in page.text
    assert "img-src 'self';" in page.headers["content-security-policy"]
    assert seen.status_code == 200


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, OTHER),
        ({"chunk_id": "other#1"}, NAME),
        ({"tenant": "other"}, NAME),
        ({"expires_at": 1}, NAME),
        ({"conversation_id": "c1"}, NAME),
        ({"message_id": "m1"}, NAME),
        ({"key_id": "gone"}, NAME),
    ],
)
async def test_nobody_sees_a_picture_of_a_document_that_is_not_theirs(
    harness: WorkerHarness, changes: dict[str, object], name: str
) -> None:
    async with harness.open(), open_http_server(harness, documents=shelf()) as http_server:
        seen = await http_server.client().get(f"/v1/reader/{ticket_of(**changes)}/{name}")

    assert (seen.status_code, seen.content) == (404, b"")


@pytest.mark.parametrize("name", ["a" * 31, "A" * 32, "..%2f" + "a" * 27, "a" * 33])
async def test_the_name_of_a_picture_has_one_form(
    http_server: HttpServerFixture, name: str
) -> None:
    seen = await http_server.client().get(f"/v1/reader/{ticket_of()}/{name}")

    assert seen.status_code in {400, 404, 422}
