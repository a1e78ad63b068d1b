"""The reranker of the settings, before a server on this machine."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis

from broker.values import Fields
from config.model_settings import CompatibleServer
from config.settings import Settings
from deploy.assembly.knowledge import make_reranker
from deploy.assembly.models import share_vectors
from envelope.question import Question
from knowledge.errors import RerankingFailed
from knowledge.index.embedded import open_embedded
from knowledge.port import SearchRequest
from knowledge.search.reranking import CrossEncoder
from knowledge.search.searcher import LevelSearcher
from llm.errors import MissingKey, UnknownProvider
from llm.port import record_calls
from tests.knowledge.searching.conftest import WordEmbedder, document, identity, put
from tests.support.model_server import ModelServer, Response
from tests.support.runs import start_run
from worker.call_recording import fallbacks_of
from worker.vendor_vectors import ServerReranker

MESSAGE = Question(tenant="t", assistant="a", conversation_id="c", message_id="m")
TEXTS = ["Messages per second are counted.", "Ten messages per second."]
OTHERS = ["Invoices stay for years.", "A password is long.", "Carriers charge for routes."]


def make_settings(server: ModelServer, **chosen: Any) -> Settings:
    own = CompatibleServer(base_url=server.url)
    values = {"reranker": "m@own", **chosen}
    return Settings(_env_file=None, compatible_servers={"own": own}, **values)


@asynccontextmanager
async def open_reranker(chosen: Settings) -> AsyncIterator[ServerReranker]:
    reranker = make_reranker(chosen)
    assert isinstance(reranker, ServerReranker)
    yield reranker
    await reranker.close()


def reply_with(*numbers: float) -> Response:
    results = [{"index": at, "score": number} for at, number in enumerate(numbers)]
    return Response(body=json.dumps(results).encode())


@pytest.mark.parametrize(
    ("answer", "first", "fallbacks"),
    [
        (reply_with(0.1, 0.9), None, []),
        (Response(status=500), 0, ["reranking_failed"]),
        (Response(ends="never"), 0, ["reranking_failed"]),
    ],
    ids=["answers", "fails", "hangs"],
)
async def test_a_search_takes_the_order_of_the_server_or_its_own_in_time(
    server: ModelServer, tmp_path: Path, answer: Response, first: int | None, fallbacks: list[str]
) -> None:
    chosen = make_settings(server, reranker_seconds=0.3, search_confidence_threshold=0.0)
    index = await open_embedded(tmp_path, identity())
    await put(index, *(document(f"d{at}", text) for at, text in enumerate(TEXTS + OTHERS)))
    asked = SearchRequest("messages per second", reranked=True)
    usual = await LevelSearcher(index, WordEmbedder()).search(asked)
    server.will_send(answer)

    async with open_reranker(chosen) as reranker:
        searcher = LevelSearcher(
            index, WordEmbedder(), threshold=chosen.search_confidence_threshold, reranker=reranker
        )
        with record_calls() as calls:
            results = await searcher.search(asked)
    await index.close()

    own = [hit.document_id for hit in usual.hits]
    expected = own if first is not None else own[::-1]
    assert [hit.document_id for hit in results.hits] == expected
    assert [(call.task, call.error is None) for call in calls] == [("rerank", not fallbacks)]
    stats: Fields = {"search_stats": {"fallbacks": [*results.fallbacks]}}
    assert [item for item in fallbacks_of(stats) if "rerank" in item] == fallbacks


async def test_a_redelivered_envelope_pays_its_reranker_once(server: ModelServer) -> None:
    chosen, redis = make_settings(server), FakeAsyncRedis(protocol=2)
    server.will_send(reply_with(0.25, 0.5))

    results = []
    run = start_run(MESSAGE, stage="search", attempt=0)
    for _ in range(2):
        async with open_reranker(chosen) as reranker:
            share_vectors(reranker, redis, chosen.shards)
            results.append(list(await reranker.score("question", TEXTS, run)))
    async with open_reranker(chosen) as reranker:
        with pytest.raises(RerankingFailed):
            await reranker.score("another question", TEXTS, run)

    assert results == [[0.25, 0.5]] * 2
    assert len(server.received) == 2


def test_there_is_no_reranker_unless_the_settings_name_one() -> None:
    assert make_reranker(Settings(_env_file=None)) is None


def test_a_model_of_this_machine_is_loaded_when_it_is_needed() -> None:
    chosen = Settings(_env_file=None, reranker="Xenova/ms-marco-MiniLM-L-6-v2@fastembed")

    assert isinstance(make_reranker(chosen), CrossEncoder)


def test_a_setting_that_cannot_work_is_refused_at_the_start(server: ModelServer) -> None:
    with pytest.raises(MissingKey, match="COHERE_API_KEY"):
        make_reranker(Settings(_env_file=None, reranker="rerank-v3.5@cohere"))
    with pytest.raises(UnknownProvider, match="cohere, jina, own, voyage"):
        make_reranker(make_settings(server, reranker="m@openai"))
