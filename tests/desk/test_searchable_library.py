"""A real index searched for other programs: over HTTP and by MCP, by its owner and by another."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from deploy.assembly.gateways.http_gateway import open_http_app
from deploy.assembly.runtime import Runtime, connect_runtime, run_workers
from gateway.api_keys import StoredKeys, make_key
from knowledge.embedding import Embedder
from tests.support.app_harness import command, environment, open_knowledge_with, settings_of
from tests.support.empty_redis import play_redis
from tests.support.restricted_documents import AMOUNT, SITE

BONUS = {"query": "bonus of a manager"}


@pytest.fixture
async def owner(restricted: Path, embedder: Embedder) -> AsyncIterator[Runtime]:
    """A process that owns an index with pages of all and of groups."""
    settings = settings_of(restricted)
    async with (
        open_knowledge_with(settings, embedder) as knowledge,
        connect_runtime(settings, endpoint=play_redis()) as runtime,
    ):
        yield replace(runtime, knowledge=knowledge)


@asynccontextmanager
async def open_client(runtime: Runtime, *groups: str) -> AsyncIterator[httpx.AsyncClient]:
    client = runtime.endpoint.client()
    key, token = make_key("secret", tenant=runtime.settings.tenant, groups=groups)
    await StoredKeys(client).put(key)
    await client.aclose()
    async with open_http_app(runtime, asyncio.Event()) as app:
        transport = httpx.ASGITransport(app=app)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://desk.test", headers=headers
        ) as made:
            yield made


async def list_texts(runtime: Runtime, *groups: str) -> list[str]:
    async with open_client(runtime, *groups) as client:
        body = (await client.post("/v1/search", json=BONUS)).json()
    return [passage["text"] for passage in body["passages"]]


async def test_a_search_returns_passages_with_places_and_links(owner: Runtime) -> None:
    async with open_client(owner) as client:
        answer = await client.post("/v1/search", json={"query": "days of leave", "limit": 2})

    assert answer.status_code == 200, answer.text
    body = answer.json()
    best = body["passages"][0]
    assert (best["document_id"], best["link"]) == ("docs/leave", f"{SITE}/leave#annual-leave")
    assert "thirty days of leave" in best["text"]
    assert 1 <= len(body["passages"]) <= min(2, body["total"])
    assert body["quality"] in ("excellent", "good", "poor")


async def test_groups_hold_for_a_search_here_and_by_the_owner_of_the_index(owner: Runtime) -> None:
    unseen, seen = await list_texts(owner), await list_texts(owner, "board")
    gateway_only = replace(owner, knowledge=None)
    async with run_workers(owner, (), owner.knowledge):
        unseen_there = await list_texts(gateway_only)
        seen_there = await list_texts(gateway_only, "board")

    assert [any(AMOUNT in text for text in texts) for texts in (unseen, seen)] == [False, True]
    assert (unseen_there, seen_there) == (unseen, seen)


@pytest.mark.slow
async def test_a_program_starts_the_desk_and_talks_to_it_by_lines(
    restricted: Path, tmp_path: Path
) -> None:
    program, *arguments = command("mcp", "--groups", "board")
    server = StdioServerParameters(
        command=program, args=arguments, env=environment(restricted), cwd=tmp_path
    )

    async with Client(stdio_client(server), read_timeout_seconds=60) as client:
        found: Any = await client.call_tool("search", {"query": "bonus of a manager"})
        document: Any = await client.call_tool("fetch", {"id": "docs/bonus"})
        answer: Any = await client.call_tool("ask", {"question": "How many days of leave?"})
        listed = (await client.list_resources()).resources

    assert "docs/bonus" in [result["id"] for result in found.structured_content["results"]]
    assert AMOUNT in document.structured_content["text"]
    assert answer.structured_content["answered_by"] == "search"
    assert answer.structured_content["sources"][0]["url"].startswith(SITE)
    assert len(listed) == 5
