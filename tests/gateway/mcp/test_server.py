"""The official client of the protocol at the desk."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import jwt
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from envelope.role import Role
from gateway.api_keys import Scope, make_key
from gateway.http.access import AllowedHosts
from memory.errors import MemoryUnavailableError
from tests.support.http_server import WEBSITE, FakeLibrary, HttpServerFixture, open_http_server
from tests.support.worker_harness import WorkerHarness

PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = "application/json, text/event-stream"
SOURCE = {"number": 1, "chunk_id": "c", "title": "Rules", "url": "https://docs.acme.test/rules"}


@pytest.fixture
def library() -> FakeLibrary:
    made = FakeLibrary()
    made.put("acme", "docs", id="rules", text="# Rules\n\nRules route messages.", language="en")
    made.put("acme", "docs", "board", id="secret", text="The bonus is 9000 euros.")
    made.put("acme", "api", id="webhooks", text="Webhooks are signed.")
    made.put("other", "docs", id="foreign", text="Of another tenant.")
    return made


@pytest.fixture
async def server(harness: WorkerHarness, library: FakeLibrary) -> AsyncIterator[HttpServerFixture]:
    async with harness.open(), open_http_server(harness, library=library) as opened:
        yield opened


@asynccontextmanager
async def connect(
    server: HttpServerFixture, token: str = "", *, query: str = "", mode: str = "auto",
    person: str = "",
) -> AsyncIterator[Client]:  # fmt: skip
    """The official client; without a token, as a person on the server's machine."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    headers |= {"X-Person-Token": person} if person else {}
    async with httpx2.AsyncClient(headers=headers, timeout=None) as http_client:
        transport = streamable_http_client(f"{server.url}/mcp{query}", http_client=http_client)
        async with Client(transport, mode=mode) as client:
            yield client


async def call(client: Client, name: str, **arguments: Any) -> Any:
    result: Any = await client.call_tool(name, arguments)
    assert not result.is_error, result.content[0].text
    return result.structured_content


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_program_asks_and_gets_the_answer_with_its_sources(
    server: HttpServerFixture, mode: str
) -> None:
    server.harness.script.next(Role.RESPONSE, {"sources_used": [SOURCE]})

    async with connect(server, await server.key(), mode=mode) as client:
        tools = (await client.list_tools()).tools
        result: Any = await client.call_tool("ask", {"question": "How do I add a rule?"})

    assert [tool.name for tool in tools] == ["ask", "search", "fetch"]
    answer = result.structured_content
    assert (answer["outcome"], answer["text"]) == ("answered", "Open Routing [1].")
    assert answer["sources"][0]["url"] == SOURCE["url"]
    assert SOURCE["url"] in result.content[0].text


async def test_a_program_sees_the_progress_of_a_question(server: HttpServerFixture) -> None:
    seen: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    async with connect(server, await server.key()) as client:
        await client.call_tool("ask", {"question": "How?"}, progress_callback=note)

    assert seen
    assert [number for number, _ in seen] == sorted({number for number, _ in seen})
    assert all(message for _, message in seen)


async def test_a_clarification_is_returned_as_one_and_its_reply_continues_the_conversation(
    server: HttpServerFixture,
) -> None:
    option = {"label": "A webhook", "value": "A webhook", "kind": "option"}
    server.harness.script.ask_back(Role.ESSENCE, response="Which one?", suggested_actions=[option])

    async with connect(server, await server.key()) as client:
        asked = await call(client, "ask", question="How do I set it up?")
        name = asked["conversation_id"]
        answered = await call(client, "ask", question="A webhook", conversation_id=name)

    assert (asked["outcome"], asked["options"]) == ("clarification", ["A webhook"])
    assert (answered["outcome"], answered["conversation_id"]) == ("answered", name)
    assert server.harness.script.seen[Role.LANG][-1]["open_pause"]


async def test_search_and_fetch_have_the_shapes_of_connectors(server: HttpServerFixture) -> None:
    async with connect(server, await server.key()) as client:
        result: Any = await client.call_tool("search", {"query": "rules"})
        [found] = result.structured_content["results"]
        document = await call(client, "fetch", id=found["id"])

    assert json.loads(result.content[0].text) == result.structured_content
    assert {"id", "title", "url"} <= set(found)
    assert set(document) == {"id", "title", "text", "url", "metadata"}
    assert (document["id"], document["text"]) == ("rules", "# Rules\n\nRules route messages.")


async def test_documents_are_resources(server: HttpServerFixture) -> None:
    async with connect(server, await server.key()) as client:
        [listed] = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        [content] = (await client.read_resource(listed.uri)).contents

    assert (listed.uri, listed.title) == ("refdesk://documents/rules", "Title of rules")
    assert templates[0].uri_template == "refdesk://documents/{id}"
    assert getattr(content, "text", "") == "# Rules\n\nRules route messages."
    # Markdown would show `2*3*4` without its signs.
    assert (listed.mime_type, content.mime_type) == ("text/plain", "text/plain")
    assert templates[0].mime_type == "text/plain"


async def test_resources_are_listed_in_pages(
    server: HttpServerFixture, library: FakeLibrary
) -> None:
    for number in range(150):
        library.put("acme", "docs", id=f"page-{number:03}")

    async with connect(server, await server.key()) as client:
        first = await client.list_resources()
        second = await client.list_resources(cursor=first.next_cursor)

    assert (len(first.resources), len(second.resources), second.next_cursor) == (100, 51, None)


async def test_a_document_of_another_group_exists_for_its_group_alone(
    server: HttpServerFixture,
) -> None:
    plain, board = await server.key(), await server.key(groups=("board",))

    async with connect(server, plain) as client:
        unseen = await call(client, "search", query="bonus")
        refused: Any = await client.call_tool("fetch", {"id": "secret"})
        missing: Any = await client.call_tool("fetch", {"id": "nowhere"})
        with pytest.raises(MCPError):
            await client.read_resource("refdesk://documents/secret")
    async with connect(server, board) as client:
        seen = await call(client, "search", query="bonus")
        read = await call(client, "fetch", id="secret")

    assert [result["id"] for result in unseen["results"]] == ["rules"]
    assert refused.is_error
    assert refused.content == missing.content
    assert {result["id"] for result in seen["results"]} == {"rules", "secret"}
    assert "9000" in read["text"]


async def test_a_token_of_a_person_opens_the_documents_of_their_groups(
    server: HttpServerFixture,
) -> None:
    key, token = make_key("secret", tenant="acme", person_groups=("board",))
    await server.keys.put(key)
    outcome = {}

    for group in ("board", "sales"):
        claims = {"aud": key.id, "exp": time.time() + 600, "sub": "ada", "groups": [group]}
        person = jwt.encode(claims, key.person_secret, algorithm="HS256")
        async with connect(server, token, person=person) as client:
            results = (await call(client, "search", query="bonus"))["results"]
            outcome[group] = "secret" in {result["id"] for result in results}
    forged = {"X-Person-Token": f"{token}.a.b", "Accept": ACCEPT}
    refused = await server.client(token, **forged).post("/mcp", json=PING)

    assert refused.status_code == 401
    assert outcome == {"board": True, "sales": False}


async def test_a_key_reaches_no_document_of_another_tenant_or_assistant(
    server: HttpServerFixture,
) -> None:
    token = await server.key(assistants=("docs",))

    async with connect(server, token) as client:
        of_tenant: Any = await client.call_tool("fetch", {"id": "foreign"})
        of_assistant: Any = await client.call_tool("fetch", {"id": "webhooks"})
    async with connect(server, token, query="?assistant=api") as client:
        elsewhere: Any = await client.call_tool("search", {"query": "webhooks"})
        asked: Any = await client.call_tool("ask", {"question": "How?"})
        with pytest.raises(MCPError):
            await client.list_resources()

    assert [item.is_error for item in (of_tenant, of_assistant, elsewhere, asked)] == [True] * 4


async def test_the_address_names_the_assistant(server: HttpServerFixture) -> None:
    async with connect(server, await server.key(), query="?assistant=api") as client:
        result = await call(client, "search", query="webhooks")

    assert [result["id"] for result in result["results"]] == ["webhooks"]


async def test_a_key_without_the_scope_asks_and_searches_nothing(
    server: HttpServerFixture, library: FakeLibrary
) -> None:
    token = await server.key(scopes=frozenset({Scope.FEEDBACK}))

    async with connect(server, token) as client:
        results: list[Any] = [
            await client.call_tool("ask", {"question": "How?"}),
            await client.call_tool("search", {"query": "rules"}),
            await client.call_tool("fetch", {"id": "rules"}),
        ]
        with pytest.raises(MCPError, match="lacks the scope ask"):
            await client.read_resource("refdesk://documents/rules")

    assert all(result.is_error for result in results)
    assert all("lacks the scope ask" in result.content[0].text for result in results)
    assert library.queries == []


async def test_the_limits_of_a_key_hold(server: HttpServerFixture) -> None:
    token = await server.key(questions_per_day=2)

    async with connect(server, token) as client:
        await call(client, "ask", question="How?")
        await call(client, "search", query="rules")
        refused: Any = await client.call_tool("ask", {"question": "How?"})

    assert refused.is_error
    assert "questions" in refused.content[0].text


async def test_wrong_arguments_are_explained_to_the_model(server: HttpServerFixture) -> None:
    async with connect(server, await server.key()) as client:
        missing: Any = await client.call_tool("ask", {})
        foreign: Any = await client.call_tool("ask", {"question": "x", "conversation_id": "mcp/1"})
        empty: Any = await client.call_tool("search", {"query": " "})
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool("delete", {})

    assert "question" in missing.content[0].text
    assert "conversation_id" in foreign.content[0].text
    assert [missing.is_error, foreign.is_error, empty.is_error] == [True] * 3


class AwayLibrary(FakeLibrary):
    """An index that does not answer."""

    async def search(self, *_names: str, **_options: Any) -> Any:
        raise MemoryUnavailableError("redis://secret-host does not answer")

    async def browse(self, *_names: str, **_options: Any) -> Any:
        raise MemoryUnavailableError("redis://secret-host does not answer")


async def test_an_index_that_does_not_answer_is_told_without_its_address(
    harness: WorkerHarness,
) -> None:
    async with (
        open_http_server(harness, library=AwayLibrary()) as server,
        connect(server, await server.key()) as client,
    ):
        result: Any = await client.call_tool("search", {"query": "rules"})
        with pytest.raises(MCPError) as failed:
            await client.list_resources()

    assert result.is_error
    assert "secret-host" not in f"{result.content} {failed.value}"


async def post(server: HttpServerFixture, token: str = "", **headers: str) -> httpx.Response:
    client = server.client(token, Accept=ACCEPT, **headers)
    return await client.post("/mcp", json=PING)


async def test_requests_without_a_valid_key_or_with_a_public_one_are_refused(
    server: HttpServerFixture,
) -> None:
    public = await server.public()

    answers = [
        await post(server),
        await post(server, "refdesk_secret_000000000000_" + "x" * 43),
        await post(server, public, Origin=WEBSITE),
    ]

    assert [answer.status_code for answer in answers] == [401, 401, 403]


async def test_no_website_reaches_the_server_by_a_name_of_its_own(
    harness: WorkerHarness, library: FakeLibrary
) -> None:
    names = AllowedHosts(["desk.acme.test"])
    async with open_http_server(harness, library=library) as open_server:
        rebound = await post(open_server, Host="evil.test")
        foreign = await post(open_server, Origin="https://evil.test")
        keyed = await open_server.key()
        with_key = await post(open_server, keyed, Origin="https://evil.test")
        own = await post(open_server, keyed, Origin=open_server.url)
    async with open_http_server(harness, library=library, hosts=names) as named_server:
        elsewhere = await post(named_server, await named_server.key(), Host="evil.test")

    refused = (rebound, foreign, with_key, elsewhere)
    assert [response.status_code for response in refused] == [403] * 4
    assert own.status_code == 200


async def test_without_sessions_there_is_nothing_to_read_or_delete(
    server: HttpServerFixture,
) -> None:
    client = await server.secret()

    answers = [await client.get("/mcp"), await client.delete("/mcp")]

    assert [answer.status_code for answer in answers] == [405, 405]
