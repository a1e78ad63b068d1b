"""The HTTP channel of a whole desk over a real index, in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx

from config.settings import Settings
from deploy.assembly.gateways.http_gateway import open_http_app
from deploy.assembly.runtime import ROLES, Runtime, connect_runtime, run_workers
from gateway.api_keys import Key, StoredKeys, make_key
from knowledge.embedding import Embedder
from tests.support.app_harness import open_knowledge_with
from tests.support.empty_redis import play_redis


@dataclass
class HttpDesk:
    """A client with a secret key, the key, and what the desk has stored."""

    http: httpx.AsyncClient
    keys: StoredKeys
    key: Key
    client: Any
    runtime: Runtime | None = None


@asynccontextmanager
async def open_http_desk(
    settings: Settings, embedder: Embedder, **fields: Any
) -> AsyncIterator[HttpDesk]:
    """Open the desk over the index of these settings; `fields` are those of the key."""
    endpoint = play_redis()
    key, token = make_key("secret", tenant=settings.tenant, **fields)
    async with AsyncExitStack() as stack:
        knowledge = await stack.enter_async_context(open_knowledge_with(settings, embedder))
        connected = await stack.enter_async_context(connect_runtime(settings, endpoint=endpoint))
        runtime = replace(connected, knowledge=knowledge)
        await stack.enter_async_context(run_workers(runtime, ROLES, knowledge))
        client = endpoint.client()
        stack.push_async_callback(client.aclose)
        keys = StoredKeys(client)
        await keys.put(key)
        app = await stack.enter_async_context(open_http_app(runtime, asyncio.Event()))
        http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app),
            base_url="http://desk.test",
            headers={"Authorization": f"Bearer {token}"},
        )
        yield HttpDesk(await stack.enter_async_context(http), keys, key, client, runtime)
