"""A law of 300 articles is reviewed in parts: none twice, none missing, no call paid twice."""

import asyncio
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.review.review_report import ReviewReport, decode_report
from broker.embedded_redis import Endpoint
from broker.keys import record_of
from deploy.assembly.runtime import connect_runtime, desk
from knowledge.embedding import Embedder
from memory.work_store import RedisWorkStore
from tests.desk import review_worker
from tests.support.app_harness import (
    ConversationDriver,
    Fields,
    open_knowledge_with,
    run_app,
    settings_of,
)
from tests.support.empty_redis import play_redis
from tests.support.long_law import ARTICLES, ingest_long_law
from tests.support.reviewing_model import ReviewingModel
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

ASKED = "Does the Orme Cranes contract comply with the Harbour Equipment Act?"
KILLS = 10
UNITS_OF_A_PART, REQUIREMENTS_OF_A_PART = 12, 10
CLAUSE_CALLS = 1
"""All clauses of the contract fit into one call."""


@pytest.fixture(scope="session")
def long_law(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the law and the contract, read once."""
    return asyncio.run(ingest_long_law(tmp_path_factory.mktemp("long_law")))


def list_parts(writes: list[Fields]) -> dict[str, Fields]:
    """The stored parts of a role, each from the one run that wrote it."""
    found: dict[str, Fields] = {}
    for write in writes:
        for key, part in write.get("stored_parts", {}).items():
            assert key not in found, "a part has one result"
            found[key] = part
    return found


async def check_review(driver: ConversationDriver, reply: Fields) -> None:
    """Every article is read once, and every requirement decided once."""
    assert (reply["outcome"], reply["way"]) == ("answered", "specialists")
    assert "errors" not in reply
    counts = reply["verdicts"]
    assert counts["requirements"] == ARTICLES
    assert counts["compliant"] + counts["violations"] + counts["gaps"] == ARTICLES
    assert counts["undecided"] == []
    extracted = await driver.read_writes(reply, "requirement_extractor")
    [checklist] = [item["checklist"] for item in extracted if item.get("checklist")]
    assert checklist["units_unread"] == []
    assert checklist["requirements"] == ARTICLES
    read = list_parts(extracted)
    assert sum(part["units"] for part in read.values()) == checklist["units_read"]
    decided = list_parts(await driver.read_writes(reply, "compliance"))
    rules = [part for key, part in decided.items() if key.startswith("r")]
    assert sum(part["items"] for part in rules) == ARTICLES


@pytest.mark.timeout(180)
async def test_every_article_of_a_long_law_becomes_a_requirement_with_one_verdict(
    long_law: Path, embedder: Embedder, endpoint: Endpoint
) -> None:
    settings = settings_of(long_law, way="specialists")

    async with (
        open_knowledge_with(settings, embedder) as knowledge,
        run_app(settings, endpoint, knowledge, ReviewingModel()) as harness,
    ):
        driver = harness.driver()
        reply = await driver.say(ASKED)
        journal = await driver.journal(reply)
        await check_review(driver, reply)

    calls = Counter(entry.fields["task"] for entry in journal if entry.kind == "model_call")
    assert calls["compliance"] == ARTICLES // REQUIREMENTS_OF_A_PART + CLAUSE_CALLS
    assert calls["requirement_extractor"] == ARTICLES // UNITS_OF_A_PART


@pytest.mark.timeout(180)
async def test_a_long_report_is_stored_and_the_reply_says_where(
    long_law: Path, embedder: Embedder
) -> None:
    settings = settings_of(long_law, way="specialists")

    async with (
        open_knowledge_with(settings, embedder) as knowledge,
        run_app(settings, play_redis(), knowledge, ReviewingModel()) as harness,
    ):
        driver = harness.driver()
        reply = await driver.say(f"Write a report: {ASKED}")
        store = RedisWorkStore(harness.client, shards=1, record_of=record_of(1))
        question = harness.desk.question(driver.message("-", reply["message_id"]))
        stored = await store.get(question, reply["review_report"]["reference"])
        await check_review(driver, reply)

    assert reply["review_report"]["report"] is None
    assert stored is not None
    assert len(stored) == reply["review_report"]["bytes"]
    report = decode_report(stored)
    assert isinstance(report, ReviewReport)
    assert len(report.requirements) == ARTICLES


@contextmanager
def working(context: Any, url: str, data: Path, most: int) -> Iterator[None]:
    """A worker process while inside; it is killed, never asked to stop."""
    process = context.Process(target=review_worker.main, args=(url, str(data), most))
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


@pytest.mark.redis
@pytest.mark.long
@pytest.mark.timeout(300)
async def test_ten_killed_workers_lose_no_article_and_pay_no_call_twice(
    long_law: Path, client: Any, redis_url: str
) -> None:
    context = multiprocessing.get_context("spawn")
    settings = settings_of(long_law, redis_url=redis_url, way="specialists", deadline_seconds=280.0)

    async with connect_runtime(settings) as post:
        driver = ConversationDriver(desk(post, "test"), post.broker)
        message = driver.message(ASKED)
        await driver.desk.submit(message)
        for _ in range(KILLS):
            with working(context, redis_url, long_law, 4):
                await wait_until(lambda: client.get(review_worker.STOPPED), patience_seconds=None)
            await client.delete(review_worker.STOPPED)
        with working(context, redis_url, long_law, 10_000):
            reply = dict(await driver.desk.ask(message))
        finished = {
            key.decode(): int(count)
            for key, count in (await client.hgetall(review_worker.FINISHED)).items()
        }

        await check_review(driver, reply)
        assert set(finished.values()) == {1}
