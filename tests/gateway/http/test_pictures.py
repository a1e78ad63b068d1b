"""A picture that stands in a cited section is shown by this server, to whoever may read that."""

import dataclasses

import pytest

from gateway.port import ReadableSection, StoredPicture
from tests.gateway.http.test_sources import ask_for_source, ticket_of
from tests.support.http_server import (
    DOCUMENT,
    FakeDocuments,
    HttpServerFixture,
    open_http_server,
)
from tests.support.pictures import make_picture
from tests.support.worker_harness import WorkerHarness

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
