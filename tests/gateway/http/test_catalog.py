"""The documents of the index over HTTP: for keys with the scope `documents` alone."""

from typing import Any

import pytest

from gateway.api_keys import DEFAULT_SCOPES, Scope, make_key
from tests.gateway.http.test_documents import ticket_of
from tests.support.http_server import WEBSITE, HttpServerFixture

DOCUMENTS = "/v1/documents"
OPERATOR = frozenset({Scope.DOCUMENTS})


def code_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def test_documents_are_listed_in_pages_shown_and_removed(
    http_server: HttpServerFixture,
) -> None:
    http_server.catalog.put("acme", "docs", "a", "b/c", "d")
    client = await http_server.secret(scopes=OPERATOR)

    first = (await client.get(DOCUMENTS, params={"limit": 2})).json()
    last = (await client.get(DOCUMENTS, params={"limit": 2, "after": first["next"]})).json()
    shown = (await client.get(f"{DOCUMENTS}/b/c")).json()
    removed = [(await client.delete(f"{DOCUMENTS}/b/c")).status_code for _ in range(2)]
    gone = await client.get(f"{DOCUMENTS}/b/c")
    by_pattern = await client.delete(DOCUMENTS, params={"pattern": ["a", "d"]})

    assert [document["id"] for document in first["documents"]] == ["a", "b/c"]
    assert [document["id"] for document in last["documents"]] == ["d"]
    assert (first["total"], first["next"], "next" in last) == (3, "b/c", False)
    assert shown == {
        "id": "b/c", "title": "Title of b/c", "source": "b/c.md", "language": "en", "chunks": 1,
        "groups": [],
    }  # fmt: skip
    assert removed == [204, 204]
    assert code_of(gone) == (404, "not_found")
    assert (by_pattern.status_code, by_pattern.json()) == (200, {"removed": 2})


async def test_nobody_removes_documents_of_another_tenant_or_assistant(
    http_server: HttpServerFixture,
) -> None:
    for owner in (("acme", "docs"), ("acme", "api"), ("other", "docs")):
        http_server.catalog.put(*owner, "secret")
    stranger = await http_server.secret("other", scopes=OPERATOR)
    bound = await http_server.secret(assistants=("api",), scopes=OPERATOR)

    for client in (stranger, bound):
        assert (await client.delete(f"{DOCUMENTS}/secret")).status_code == 204
        assert (await client.get(DOCUMENTS)).json()["total"] == 0
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/a"), ("DELETE", "/secret")):
            params = {"assistant": "nobodys", "pattern": "secret"}
            answer = await client.request(method, f"{DOCUMENTS}{path}", params=params)
            assert code_of(answer) == (404, "unknown_assistant")

    elsewhere = await bound.delete(f"{DOCUMENTS}/secret?assistant=docs")
    assert code_of(elsewhere) == (404, "unknown_assistant")
    assert [*http_server.catalog.kept["acme", "docs"]] == ["secret"]


@pytest.mark.parametrize("scopes", [DEFAULT_SCOPES, DEFAULT_SCOPES | {Scope.METRICS}])
async def test_no_other_scope_opens_the_documents(
    http_server: HttpServerFixture, scopes: frozenset[Scope]
) -> None:
    http_server.catalog.put("acme", "docs", "a")
    secret = await http_server.secret(scopes=scopes)
    visitor = await http_server.visitor(await http_server.public())

    for client in (secret, visitor.client):
        for method, path in (
            ("GET", ""),
            ("DELETE", "?pattern=*"),
            ("GET", "/a"),
            ("DELETE", "/a"),
        ):
            answer = await client.request(method, f"{DOCUMENTS}{path}")
            assert code_of(answer) == (403, "missing_scope")
    assert [*http_server.catalog.kept["acme", "docs"]] == ["a"]


async def test_only_the_scope_write_writes_documents(http_server: HttpServerFixture) -> None:
    reader = await http_server.secret(scopes=frozenset({Scope.DOCUMENTS}))
    writer = await http_server.secret(scopes=frozenset({Scope.WRITE}))
    visitor = await http_server.visitor(await http_server.public())
    place = f"{DOCUMENTS}?name=hr/leave.md"

    assert code_of(await reader.post(place, content=b"# A")) == (403, "missing_scope")
    assert code_of(await visitor.client.post(place, content=b"# A")) == (403, "secret_key_required")
    assert (await writer.post(place, content=b"# A")).json()["written"] == 1
    assert code_of(await writer.get(DOCUMENTS)) == (403, "missing_scope")


def test_a_public_key_never_has_the_scope() -> None:
    with pytest.raises(ValueError, match="must not have the scope documents"):
        make_key("public", tenant="acme", origins=(WEBSITE,), scopes=OPERATOR)


@pytest.mark.parametrize(
    "id_", ["a/b", "100%", "a%2Fb", "a b?c#d", "..", "a/../b", "ä/ß", "a//b", "a.b", "x/"]
)
async def test_an_id_with_any_character_names_its_document_alone(
    http_server: HttpServerFixture, id_: str
) -> None:
    http_server.catalog.put("acme", "docs", id_, "b", "a")
    client = await http_server.secret(scopes=OPERATOR)
    encoded = "".join(f"%{byte:02X}" for byte in id_.encode())

    shown = await client.get(f"{DOCUMENTS}/{encoded}")
    removed = await client.delete(f"{DOCUMENTS}/{encoded}")

    assert (shown.json().get("id"), removed.status_code) == (id_, 204)
    assert sorted(http_server.catalog.kept["acme", "docs"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", DOCUMENTS),
        ("DELETE", f"{DOCUMENTS}/"),
        ("DELETE", f"{DOCUMENTS}?pattern="),
        ("DELETE", f"{DOCUMENTS}?pattern={'*a' * 300}"),
        ("DELETE", f"{DOCUMENTS}?{'pattern=a&' * 21}"),
        ("GET", f"{DOCUMENTS}?pattern={'*a' * 300}"),
        ("GET", f"{DOCUMENTS}?limit=0"),
        ("GET", f"{DOCUMENTS}?limit=501"),
        ("GET", f"{DOCUMENTS}?limit=xylophone"),
        ("GET", f"{DOCUMENTS}?after={'a' * 2001}"),
        ("DELETE", f"{DOCUMENTS}/{'a' * 2001}"),
    ],
)
async def test_a_request_out_of_bounds_is_refused_and_removes_nothing(
    http_server: HttpServerFixture, method: str, path: str
) -> None:
    http_server.catalog.put("acme", "docs", "a")
    client = await http_server.secret(scopes=OPERATOR)

    answer = await client.request(method, path)

    assert code_of(answer) == (400, "invalid_request")
    assert "xylophone" not in answer.text
    assert [*http_server.catalog.kept["acme", "docs"]] == ["a"]


async def test_links_of_earlier_versions_still_open_their_document(
    http_server: HttpServerFixture,
) -> None:
    good = ticket_of()
    client = http_server.client()

    opened = await client.get(f"/v1/documents/{good}")
    torn = await client.get(f"/v1/documents/{good[:-1]}{'A' if good[-1] != 'A' else 'B'}")

    assert (opened.status_code, "Routing rules" in opened.text) == (200, True)
    assert (torn.status_code, torn.headers["content-type"]) == (404, "text/html; charset=utf-8")


async def test_a_ticket_is_no_key_to_the_documents(http_server: HttpServerFixture) -> None:
    http_server.catalog.put("acme", "docs", "a")
    await http_server.key()
    client = http_server.client(ticket_of())

    answer = await client.get(DOCUMENTS)
    removed = await http_server.client().delete(f"{DOCUMENTS}/{ticket_of()}")

    assert code_of(answer) == (401, "invalid_api_key")
    assert code_of(removed) == (401, "invalid_api_key")
