"""What the server index sends is what Qdrant's OpenAPI document allows."""

import inspect
import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from knowledge.index.calibration import Calibration
from knowledge.index.points.layout import MENTIONED, document_identity
from knowledge.index.qdrant import QdrantIndex
from knowledge.index.server import server_collections, server_engine
from knowledge.index.server.server_collections import ServerCollections
from knowledge.index.server.server_engine import open_client
from knowledge.port import SearchRequest
from knowledge.search.searcher import LevelSearcher
from tests.knowledge.searching.conftest import WordEmbedder, document, identity, put
from tests.support.qdrant_front import MOST_BYTES, OPERATIONS, QdrantFront, RecordingClient

pytestmark = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning"),
    pytest.mark.filterwarnings("ignore:Local mode performs exact:UserWarning"),
]


@pytest.fixture
async def front() -> AsyncIterator[QdrantFront]:
    front = QdrantFront()
    yield front
    await front.close()


@pytest.fixture
async def index(front: QdrantFront) -> AsyncIterator[QdrantIndex]:
    index = await open_client(front.connect(), identity(), location=front.url)
    yield index
    await index.close()


async def replace_twice(front: QdrantFront) -> None:
    """Let indexes of two other models answer, one after the other."""
    own = identity()
    client = front.connect()
    collections = ServerCollections(client, own.tenant, own.assistant, front.url)
    first = await collections.find_serving()
    for model in ("second", "third"):
        other = replace(own, embedding=model)
        name = collections.name_replacement(other.vectors)
        before = await collections.find_serving()
        written = await open_client(front.connect(), other, location=front.url, collection=name)
        await put(written, document("routes", f"A route of the {model} model."))
        await collections.switch(name)
        await written.close()
        assert await collections.find_serving() == name
        assert await collections.has(before)
    assert not await collections.has(first)
    serving = await open_client(
        front.connect(), replace(own, embedding="third"), location=front.url
    )
    assert (await serving.info()).documents == 1
    await serving.close()
    await client.close()


def find_used_methods() -> set[str]:
    """Return the methods of Qdrant's client that the server index names in its source."""
    return {
        name
        for module in (server_collections, server_engine)
        for name in re.findall(r"\bself\._client\.(\w+)\(", inspect.getsource(module))
    }


async def test_every_request_of_an_index_and_its_search_fits_and_every_operation_is_used(
    front: QdrantFront, index: QdrantIndex
) -> None:
    secret = document("secret", "A route has a secret limit.", groups=("staff",))
    stated = document("stated", "Invoices.", stated_keywords=("route",), stated_version="2.0")
    await put(index, document("routes", "A route carries messages."), secret, stated)
    await put(index, document("routes", "A route carries ten messages."))
    assert await index.find_each(MENTIONED, ["route"], ("chunk_id",), 1)
    await index.put_calibrations({"en": Calibration(1.0, 0.0, 1.0, 1)})
    earlier = server_engine.ServerEngine(front.connect(), identity(), front.url)
    await earlier.prepare()
    await earlier.set_fields([(document_identity("routes"), {"called": ["routes"]})])
    await earlier.close()
    embedder = WordEmbedder()
    searcher = LevelSearcher(index, embedder)
    for groups in ((), ("staff",)):
        findings = await searcher.search(
            SearchRequest("rute messages", groups=groups, context_tokens=500, language="de")
        )
        assert findings.hits
    embedder.fails = True
    await searcher.search(SearchRequest("secret limit 2.0", groups=("staff",), exclude=("x#1",)))
    await index.list_documents()
    await index.hashes("library")
    await index.remove(["routes", "unknown"])
    await replace_twice(front)

    assert front.rejected == []
    assert front.seen == {(operation.method, operation.path) for operation in OPERATIONS}
    assert find_used_methods() <= RecordingClient.used


@pytest.mark.parametrize(
    ("method", "path", "body", "reason"),
    [
        ("POST", "points/count?exact=true", {}, "expected parameters"),
        ("POST", "points/count", {"filters": {}}, "Extra inputs"),
        ("POST", "points/count", {"filter": {"must": [{"keys": "kind"}]}}, "validation error"),
        ("POST", "points/query/batch", {"searches": [{"top": 1}]}, "Extra inputs"),
        ("GET", "exists", {"name": "x"}, "expected no body"),
    ],
)
async def test_a_request_that_does_not_fit_is_rejected(
    front: QdrantFront, method: str, path: str, body: dict[str, Any], reason: str
) -> None:
    transport = httpx.ASGITransport(front.app)
    async with httpx.AsyncClient(transport=transport, base_url=front.url) as client:
        answer = await client.request(
            method, f"/collections/refdesk/{path}", content=json.dumps(body)
        )

    assert answer.status_code == 400
    assert [reason in item for item in front.rejected] == [True]


async def test_a_request_above_the_limit_of_a_server_is_refused(front: QdrantFront) -> None:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(front.app), base_url=front.url
    ) as client:
        answer = await client.post("/collections/c/points/scroll", content=b" " * (MOST_BYTES + 1))

    assert answer.status_code == 400
    assert "larger than allowed" in front.rejected[0]
