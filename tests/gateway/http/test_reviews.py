"""Reviews over HTTP: jobs with events, one outcome, and documents that belong to them alone."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from envelope.role import Role
from tests.gateway.connections.raw_connection import RawConnection
from tests.support.http_server import HttpServerFixture, events
from tests.support.review_server import CLEAN, FAULTY, open_review_server
from tests.support.worker_harness import WorkerHarness

REVIEWS = "/v1/reviews"
UPLOAD = {"name": "contract.md", "against": "laws/privacy"}
BINARY = {"Content-Type": "application/octet-stream"}


@pytest.fixture
async def server(any_harness: WorkerHarness, tmp_path: Path) -> AsyncIterator[HttpServerFixture]:
    async with any_harness.open(), open_review_server(any_harness, tmp_path) as opened:
        yield opened


@pytest.fixture
async def client(server: HttpServerFixture) -> httpx.AsyncClient:
    return await server.secret(scopes=("ask", "read", "forget"))


async def start(client: httpx.AsyncClient, **options: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"params": UPLOAD, "content": FAULTY, "headers": BINARY, **options}
    reply = await client.post(REVIEWS, **made)
    assert reply.status_code == 202, reply.text
    assert reply.headers["location"] == f"{REVIEWS}/{reply.json()['id']}"
    found: dict[str, Any] = reply.json()
    return found


async def wait_for_end(client: httpx.AsyncClient, review: dict[str, Any]) -> dict[str, Any]:
    seen = await events(client, "GET", f"{REVIEWS}/{review['id']}/events")
    assert seen[-1].name == "done"
    reply = await client.get(f"{REVIEWS}/{review['id']}")
    found: dict[str, Any] = reply.json()
    return found


async def test_a_review_of_a_file_is_accepted_followed_and_read(
    server: HttpServerFixture, client: httpx.AsyncClient
) -> None:
    review = await start(client)

    assert [document["name"] for document in review["documents"]] == ["contract.md"]
    assert [item["id"] for item in review["against"]] == ["laws/privacy"]
    ended = await wait_for_end(client, review)
    assert (ended["status"], ended["answer"]["outcome"]) == ("ended", "answered")
    title = review["documents"][0]["title"]
    assert ended["text"] == f"review_request/en {title} – Privacy Law"
    listed = await client.get(f"/v1/conversations/{review['conversation_id']}/documents")
    assert [document["id"] for document in listed.json()["documents"]] == [
        review["documents"][0]["id"]
    ]


async def test_the_cost_of_a_review_is_estimated_before_it_begins(
    server: HttpServerFixture, client: httpx.AsyncClient
) -> None:
    only = {**UPLOAD, "estimate_only": "true", "conversation_id": "c8"}

    told = await client.post(REVIEWS, params=only, content=FAULTY, headers=BINARY)
    kept = await client.get("/v1/conversations/c8/documents")
    review = await start(client)

    assert told.status_code == 200, told.text
    assert [document["name"] for document in told.json()["documents"]] == ["contract.md"]
    estimate = told.json()["estimate"]
    assert estimate == {
        "model": "large",
        "calls": estimate["calls"],
        "tokens": 1000,
        "cost_usd": 0.25,
    }
    assert estimate["calls"] > 0
    assert kept.json()["documents"] == []
    assert review["estimate"] == estimate
    assert len(server.harness.script.seen[Role.SEARCH]) <= 1, "the estimate began nothing"


async def test_a_review_names_its_documents_by_id_file_title_or_folder(
    client: httpx.AsyncClient,
) -> None:
    base = "/v1/conversations/c7/documents"
    given = (await client.post(base, params={"name": "a.md"}, content=CLEAN)).json()
    for document in (given["id"], "a.md", given["title"]):
        for against in ("laws/privacy", "laws/privacy.md", "privacy law", "laws"):
            review = await start(
                client,
                params={},
                content=None,
                json={"document": document, "against": [against], "conversation_id": "c7"},
                headers={},
            )
            assert [document["id"] for document in review["documents"]] == [given["id"]]
            expected = ["laws/labour", "laws/privacy"] if against == "laws" else ["laws/privacy"]
            assert [item["id"] for item in review["against"]] == expected
            assert (await wait_for_end(client, review))["status"] == "ended"


async def test_events_are_resumed_after_the_last_one_that_was_received(
    client: httpx.AsyncClient,
) -> None:
    review = await start(client)
    path = f"{REVIEWS}/{review['id']}/events"
    seen = await events(client, "GET", path)

    rest = await events(client, "GET", path, headers={"Last-Event-ID": seen[2].id})
    nothing = await client.get(path, headers={"Last-Event-ID": seen[-1].id})

    assert [requests.id for requests in rest] == [item.id for item in seen[3:]]
    assert nothing.status_code == 204


async def test_a_running_review_shows_its_progress_and_can_be_cancelled(
    server: HttpServerFixture, client: httpx.AsyncClient
) -> None:
    held = server.harness.script.hold(Role.SEARCH)
    review = await start(client)
    await held.reached.wait()
    path = f"{REVIEWS}/{review['id']}"

    running = (await client.get(path)).json()
    early = await client.get(f"{path}/report")
    cancelled = (await client.post(f"{path}/cancel")).json()
    held.goes_on.set()
    again = (await client.post(f"{path}/cancel")).json()

    assert (running["status"], running["progress"]["stage"]) == ("running", "search")
    assert (early.status_code, early.json()["error"]["code"]) == (409, "review_not_finished")
    assert (cancelled["status"], cancelled["answer"]["outcome"]) == ("ended", "superseded")
    assert cancelled["answer"]["termination_reason"] == "stopped"
    assert again == cancelled


async def test_a_key_names_one_review_whatever_is_repeated(
    server: HttpServerFixture, client: httpx.AsyncClient
) -> None:
    headers = {**BINARY, "Idempotency-Key": "once"}
    first = await start(client, headers=headers)
    again = await start(client, headers=headers)
    other = await client.post(REVIEWS, params=UPLOAD, content=CLEAN, headers=headers)
    stranger = await server.secret()
    own = await start(stranger, headers=headers)

    assert first["id"] == again["id"]
    assert (other.status_code, other.json()["error"]["code"]) == (409, "message_id_reused")
    assert own["id"] != first["id"]
    await wait_for_end(client, first)
    await wait_for_end(stranger, own)
    assert len(server.harness.script.seen[Role.LANG]) == 2


@pytest.mark.parametrize(
    ("params", "content", "status", "code"),
    [
        ({**UPLOAD, "against": "no law"}, FAULTY, 404, "unknown_document"),
        ({**UPLOAD, "against": "Twice"}, FAULTY, 404, "unknown_document"),
        ({**UPLOAD, "against": "secret"}, FAULTY, 404, "unknown_document"),
        ({"name": "contract.md"}, FAULTY, 400, "invalid_request"),
        (UPLOAD, b"", 400, "empty_document"),
        ({**UPLOAD, "name": "contract.exe"}, FAULTY, 415, "unsupported_document"),
        ({**UPLOAD, "name": "contract.pdf"}, FAULTY, 415, "unsupported_document"),
        (UPLOAD, bytes(5_000_000), 413, "body_too_large"),
    ],
)
async def test_bad_input_is_refused_with_the_reason_and_leaves_nothing(
    client: httpx.AsyncClient,
    server: HttpServerFixture,
    params: dict[str, str],
    content: bytes,
    status: int,
    code: str,
) -> None:
    reply = await client.post(REVIEWS, params=params, content=content, headers=BINARY)

    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code), reply.text
    assert [key async for key in server.harness.client.scan_iter("*:attachments")] == []


async def test_a_hidden_law_is_as_unknown_as_one_that_does_not_exist(
    client: httpx.AsyncClient, server: HttpServerFixture
) -> None:
    hidden, missing = [
        (await client.post(REVIEWS, params={**UPLOAD, "against": name}, content=FAULTY)).json()
        for name in ("Secret Law", "Sacred Law")
    ]
    board = await server.secret(groups=("board",))
    allowed = await start(board, params={**UPLOAD, "against": "Secret Law"})

    texts = [item["error"]["message"].replace("Secret", "Sacred") for item in (hidden, missing)]
    assert texts[0] == texts[1]
    assert [item["id"] for item in allowed["against"]] == ["secret"]


async def test_a_review_of_nothing_is_refused(client: httpx.AsyncClient) -> None:
    reply = await client.post(REVIEWS, json={"against": ["laws/privacy"]})

    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "missing_document")


async def test_a_form_is_refused_with_the_way_to_send_a_file(client: httpx.AsyncClient) -> None:
    reply = await client.post(REVIEWS, params=UPLOAD, files={"file": ("a.md", FAULTY)})

    assert (reply.status_code, reply.json()["error"]["code"]) == (415, "unsupported_body")
    assert "--data-binary" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"against": ["laws/privacy"]}, "document"),
        ({"document": "laws/labour"}, "against"),
        ({"document": "laws/labour", "against": []}, "against"),
        ({"document": "laws/labour", "against": ["laws/privacy"], "groups": ["board"]}, None),
    ],
)
async def test_a_wrong_request_names_the_field(
    client: httpx.AsyncClient, body: dict[str, Any], param: str | None
) -> None:
    reply = await client.post(REVIEWS, json=body)

    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == param


async def test_a_field_stands_in_the_address_or_in_the_json_and_not_in_both(
    client: httpx.AsyncClient,
) -> None:
    body = {"document": "laws/labour", "against": ["laws/privacy"]}

    told = await client.post(REVIEWS, json=body, params={"estimate_only": "true"})
    doubled = await client.post(REVIEWS, json=body, params={"against": "laws/labour"})
    unknown = await client.post(REVIEWS, json=body, params={"specialists": "lawyer"})

    assert (told.status_code, told.json()["estimate"]["model"]) == (200, "large")
    assert (doubled.status_code, doubled.json()["error"]["param"]) == (400, "against")
    assert (unknown.status_code, unknown.json()["error"]["param"]) == (400, "specialists.0")


async def test_another_conversation_never_sees_the_document(client: httpx.AsyncClient) -> None:
    review = await start(client)
    document = review["documents"][0]["id"]

    reply = await client.post(
        REVIEWS, json={"document": document, "against": ["laws/privacy"], "conversation_id": "c2"}
    )

    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "unknown_document")
    assert (await client.get("/v1/conversations/c2/documents")).json() == {"documents": []}


async def test_a_person_without_the_groups_sees_neither_review_nor_document(
    server: HttpServerFixture,
) -> None:
    legal = await server.secret(groups=("legal",))
    sales = await server.secret(groups=("sales",))
    review = await start(legal)

    documents = f"/v1/conversations/{review['conversation_id']}/documents"
    assert (await sales.get(f"{REVIEWS}/{review['id']}")).status_code == 404
    assert (await sales.get(documents)).json() == {"documents": []}
    assert len((await legal.get(documents)).json()["documents"]) == 1


@pytest.mark.parametrize("path", [f"{REVIEWS}?name=a.md&against=laws", "{own}/documents?name=a.md"])
async def test_a_visitor_of_a_website_is_refused_before_a_document_is_read(
    server: HttpServerFixture, path: str
) -> None:
    visitor = await server.visitor(await server.public())
    headers = visitor.client.headers
    lines = [
        f"POST {path.format(own=visitor.path)} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: {headers['authorization']}",
        f"Origin: {headers['origin']}",
        f"X-Conversation-Token: {headers['x-conversation-token']}",
        f"Content-Length: {4_000_000}",
    ]
    port = urlsplit(server.url).port
    line = RawConnection(*await asyncio.open_connection("127.0.0.1", port))
    await line.send("\r\n".join([*lines, "", ""]).encode())

    assert await line.status() == 403
    line.close()


async def list_names(client: httpx.AsyncClient, conversation_id: str) -> list[str]:
    reply = await client.get(f"/v1/conversations/{conversation_id}/documents")
    return [document["name"] for document in reply.json()["documents"]]


async def test_a_review_that_is_refused_leaves_no_file_in_its_conversation(
    client: httpx.AsyncClient,
) -> None:
    headers = {**BINARY, "Idempotency-Key": "once"}
    own = {**UPLOAD, "conversation_id": "c9"}
    await client.post("/v1/conversations/c9/documents", params={"name": "a.md"}, content=CLEAN)
    first = await start(client, params=own, headers=headers)
    refused = [
        await client.post(
            REVIEWS, params={**own, "name": "b.md", "against": "no law"}, content=CLEAN
        ),
        await client.post(REVIEWS, params={**own, "name": "c.md"}, content=CLEAN, headers=headers),
        await client.post(REVIEWS, params={**own, "name": "a.md"}, content=CLEAN, headers=headers),
    ]

    assert [response.status_code for response in refused] == [404, 409, 409]
    assert await list_names(client, "c9") == ["a.md", "contract.md"]
    await wait_for_end(client, first)


@pytest.mark.parametrize("name", ["nothing", "~", "a~b", "c1~m1"])
async def test_an_unknown_review_is_unknown(client: httpx.AsyncClient, name: str) -> None:
    assert (await client.get(f"{REVIEWS}/{name}")).status_code == 404
    assert (await client.post(f"{REVIEWS}/{name}/cancel")).status_code == 404
    assert (await client.get(f"{REVIEWS}/{name}/events")).status_code == 404
