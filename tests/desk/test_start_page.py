"""The page at the address of the server, for callers with and without a key."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import httpx

from deploy.assembly.gateways.http_gateway import open_http_app
from deploy.assembly.runtime import Runtime, connect_runtime
from gateway.api_keys import StoredKeys, make_key
from knowledge.embedding import Embedder
from tests.support.app_harness import open_knowledge_with, settings_of
from tests.support.empty_redis import play_redis

NAME = "Acme & Sons {{state}}"


async def load_page(runtime: Runtime) -> str:
    async with open_http_app(runtime, asyncio.Event(), keyless=True) as app:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8000"
        ) as client:
            return (await client.get("/")).text


def read_state(page: str) -> str:
    results = re.search(r'<main data-state="(\w+)">', page)
    assert results is not None
    return results[1]


async def test_the_start_page_shows_the_name_and_public_titles_and_asks_for_a_key_once_one_exists(
    restricted: Path, embedder: Embedder
) -> None:
    settings = settings_of(restricted).model_copy(update={"domain_name": NAME})
    async with (
        open_knowledge_with(settings, embedder) as knowledge,
        connect_runtime(settings, endpoint=play_redis()) as connected,
    ):
        runtime = replace(connected, knowledge=knowledge)
        local = await load_page(runtime)
        client = runtime.endpoint.client()
        key, _ = make_key("public", tenant=settings.tenant, origins=("https://www.acme.com",))
        await StoredKeys(client).put(key)
        await client.aclose()
        locked = await load_page(runtime)

    examples = re.search(r'questions="([^"]*)"', local)
    assert examples is not None
    assert read_state(local) == "search"
    assert examples[1] == "Annual leave | Meeting rooms | Travel costs"
    assert "<title>Acme &amp; Sons {{state}}</title>" in local
    assert read_state(locked) == "key"
    assert 'questions=""' in locked


async def test_without_documents_the_start_page_says_how_to_read_some(
    tmp_path: Path, embedder: Embedder
) -> None:
    settings = settings_of(tmp_path)
    async with (
        open_knowledge_with(settings, embedder) as knowledge,
        connect_runtime(settings, endpoint=play_redis()) as connected,
    ):
        page = await load_page(replace(connected, knowledge=knowledge))

    assert read_state(page) == "empty"
