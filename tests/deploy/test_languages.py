"""A process that cannot reach the index knows the languages of the documents from Redis."""

from pathlib import Path
from typing import Any, cast

from agents.question.lang import LangAgent, Reads
from broker.background_jobs import BackgroundJobs
from deploy.assembly.knowledge import Knowledge
from deploy.assembly.languages import make_detector, publishing_languages, read_corpus_languages
from envelope.outcome import Wrote
from knowledge.index.embedded import open_embedded
from memory.document_languages import RedisDocumentLanguages
from tests.knowledge.searching.conftest import WordEmbedder, document, identity, put
from tests.support.app_harness import settings_of
from tests.support.empty_redis import play_redis
from tests.support.waiting import wait_until

UNREACHABLE = "http://192.0.2.1:6333"
"""An address of documentation: a connection to it gets no answer."""


async def test_a_process_that_cannot_reach_the_index_answers_an_english_word_in_english(
    tmp_path: Path,
) -> None:
    endpoint, settings = play_redis(), settings_of(tmp_path / "desk")
    index = await open_embedded(tmp_path / "index", identity())
    client = endpoint.client()
    await put(index, *(document(f"page{n}", "An exception is raised.") for n in range(3)))
    knowledge = Knowledge(index, WordEmbedder(), cast("Any", None))
    own = RedisDocumentLanguages(client, settings.tenant, settings.assistant)

    async def is_published() -> bool:
        return bool(await client.exists(f"rd:languages:{settings.tenant}/{settings.assistant}"))

    async with publishing_languages(settings, knowledge, endpoint, BackgroundJobs()):
        await wait_until(is_published)
    light = settings.model_copy(update={"qdrant_url": UNREACHABLE})
    read = read_corpus_languages(light, None, client)
    agent = LangAgent(detector=make_detector(light.refdesk_data), read_languages=read)
    outcomes = [await agent.work(Reads(text=word)) for word in ("raises", "API key", "rate limit")]

    assert await own.read() == {"en": 3.0}
    assert [outcome.writes.language for outcome in outcomes if isinstance(outcome, Wrote)] == [
        "en"
    ] * 3
    await client.aclose()
    await index.close()
