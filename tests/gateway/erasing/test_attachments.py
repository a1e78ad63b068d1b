"""A document that somebody gave to a conversation is found nowhere once that is forgotten."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from deploy.assembly.gateways.documents import make_attachments
from deploy.assembly.gateways.report_rendering import StoredReports
from envelope.question import Question
from envelope.role import Role
from gateway.conversations import Conversations
from gateway.desk import erase
from gateway.http.review_documents import NamedDocumentFinder
from gateway.http.routes.reviews import ReviewParts
from memory.key_names import conversation_keys
from memory.work_store import RedisAttachments
from tests.gateway.erasing.canary import files_with, files_with_bytes, keys_with, make_canary
from tests.gateway.erasing.conftest import RewritingHarness
from tests.support.app_harness import settings_of
from tests.support.http_server import FakeCatalog, HttpServerFixture, open_http_server
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.redis]

PATH = "/v1/conversations/c1"
OTHER = "/v1/conversations/c2"
QUESTION = Question(tenant="acme", assistant="docs", conversation_id="c1", message_id="-")
Way = Callable[[RewritingHarness, httpx.AsyncClient], Awaitable[None]]


@asynccontextmanager
async def open_server(harness: RewritingHarness, data: Path) -> AsyncIterator[HttpServerFixture]:
    attachments = make_attachments(settings_of(data), harness.client)

    async def read_nothing(_question: Question, _reference: str) -> None:
        return None

    parts = ReviewParts(
        attachments, NamedDocumentFinder(attachments, FakeCatalog()), StoredReports(read_nothing)
    )
    try:
        async with harness.open(), open_http_server(harness, reviews=parts) as server:
            yield server
    finally:
        await attachments.close()


def write_contract(word: str) -> bytes:
    return f"# Contract about {word}\n\nThe provider of {word} keeps records.\n".encode()


async def by_http(harness: RewritingHarness, client: httpx.AsyncClient) -> None:
    assert (await client.delete(PATH)).status_code == 204


async def by_operator(harness: RewritingHarness, client: httpx.AsyncClient) -> None:
    stored = Conversations(harness.client, shards=1, ttl_seconds=60)
    assert (await erase(harness.broker.eraser, stored, QUESTION)).found


async def by_command(harness: RewritingHarness, client: httpx.AsyncClient) -> None:
    harness.script.next(Role.COMMAND, {"forget": "all"})
    reply = await client.post(f"{PATH}/messages", json={"text": "/clear_all"})
    assert reply.json()["outcome"] == "answered"


@pytest.mark.parametrize("way", [by_http, by_operator, by_command])
async def test_no_store_has_a_byte_of_a_document_whose_conversation_is_forgotten(
    way: Way, harness: RewritingHarness, folder: Path, tmp_path: Path
) -> None:
    word = make_canary()
    async with open_server(harness, tmp_path) as server:
        client = await server.secret(scopes=("ask", "read", "forget"))
        for path, name in ((PATH, f"{word}.md"), (PATH, "second.txt"), (OTHER, "other.md")):
            data = write_contract(word if path == PATH else "nothing")
            sent = await client.post(f"{path}/documents", params={"name": name}, content=data)
            assert sent.status_code == 201, sent.text
        harness.script.next(Role.RESPONSE, {"response": f"{word} [1]."})
        await client.post(f"{PATH}/messages", json={"text": f"What is {word}?"})
        key = conversation_keys(QUESTION, 1).attachments
        stored = await RedisAttachments(harness.client, shards=1, ttl_of=lambda _: 60).all(QUESTION)
        assert len(stored) == 2
        # What is stored is compressed: its bytes are looked for, as well as the word.
        traces = [value[20:60] for value in stored.values()]
        assert all([await has_bytes(harness, trace) for trace in traces])
        assert files_with(folder, word)

        await way(harness, client)

        assert not await harness.client.exists(key)
        assert await keys_with(harness.client, word) == []
        assert not any([await has_bytes(harness, trace) for trace in traces])
        await wait_until(lambda: is_rewritten(folder, word, traces))
        assert files_with(tmp_path, word) == []
        kept = (await client.get(f"{OTHER}/documents")).json()["documents"]
        assert [item["name"] for item in kept] == ["other.md"]
        shown = await client.get(f"{PATH}/documents")
        assert shown.json() == {"documents": []}


async def has_bytes(harness: RewritingHarness, trace: bytes) -> bool:
    dumps = [await harness.client.dump(key) for key in await harness.client.keys("*")]
    return any(trace in (dump or b"") for dump in dumps)


async def is_rewritten(folder: Path, word: str, traces: list[bytes]) -> bool:
    return not files_with(folder, word) and not any(
        files_with_bytes(folder, trace) for trace in traces
    )
