"""Ended questions are counted once, by whichever process reads them, and name no person."""

import asyncio
import time
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry

from broker.values import Fields, Finish, JournalEntry
from envelope.outcome import Outcome
from telemetry.observer import LONGEST_DELAY_SECONDS, QuestionObserver
from telemetry.question_metrics import QuestionMetrics, name_reason
from tests.support.broker_harness import BrokerHarness, question
from tests.support.waiting import wait_until

CALL: Fields = {"model": "m@house", "input_tokens": 10, "output_tokens": 5, "cost_usd": "0.25"}


class Watched:
    """A broker whose ended questions are counted."""

    def __init__(self, harness: BrokerHarness) -> None:
        self.harness = harness
        self.registry = CollectorRegistry()
        self.metrics = QuestionMetrics(asyncio.Event())
        self.registry.register(self.metrics)

    def observer(self, now: Callable[[], float] = time.time) -> QuestionObserver:
        broker = self.harness.make()
        return QuestionObserver(
            broker.observed, broker.replies, [self.metrics], wanted=self.metrics.wanted, now=now
        )

    async def end(self, message: str, outcome: Outcome, **reply: str | float) -> None:
        await self.harness.submit(question(message))
        fields: Fields = {"outcome": outcome.value, "text": "A secret answer.", **reply}
        finish = Finish(outcome, fields, journal=(JournalEntry("model_call", CALL),))
        assert await self.harness.settle(await self.harness.take(), finish)

    def count(self, **labels: str) -> float:
        return sum(
            sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == "refdesk_questions_total" and labels.items() <= sample.labels.items()
        )


@pytest.fixture
async def watched(harness: BrokerHarness) -> Watched:
    return Watched(harness)


async def test_each_question_is_counted_by_one_of_two_processes(watched: Watched) -> None:
    first, other = watched.observer(), watched.observer()
    await watched.end("m1", Outcome.ANSWERED, quality_score=0.9)
    await first.observe_next()
    await watched.end("m2", Outcome.REFUSED, termination_reason="out_of_scope")
    await other.observe_next()
    await first.observe_next()

    assert watched.count() == 2
    assert watched.count(outcome="answered") == 1
    assert watched.count(outcome="refused", reason="out_of_scope") == 1
    cost = watched.registry.get_sample_value(
        "refdesk_question_cost_usd_total", {"tenant": "acme", "assistant": "desk", "way": ""}
    )
    assert cost == pytest.approx(0.5)


async def test_nothing_is_read_before_the_first_scrape(watched: Watched) -> None:
    await watched.end("m1", Outcome.ANSWERED)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watched.observer().run())
        assert not watched.metrics.wanted.is_set()

        first_scrape = watched.count()

        assert first_scrape == 0
        await wait_until(lambda: watched.count() == 1)
        running.cancel()


async def test_a_process_that_ends_counts_the_question_that_it_is_being_given(
    watched: Watched,
) -> None:
    observer = watched.observer()
    watched.metrics.wanted.set()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(observer.run())
        await watched.end("m1", Outcome.ANSWERED)
        await observer.end(running)

    assert watched.count() == 1


async def test_messages_from_the_time_before_the_measurement_are_not_counted(
    watched: Watched,
) -> None:
    await watched.end("m1", Outcome.ANSWERED)
    long_after = time.time() + LONGEST_DELAY_SECONDS + 60

    assert await watched.observer(lambda: long_after).observe_next() == 1
    assert watched.count() == 0


async def test_no_label_holds_a_text_an_id_or_a_person(watched: Watched) -> None:
    await watched.end("m1", Outcome.REFUSED, termination_reason="Ann Smith asked for her file")
    await watched.observer().observe_next()

    labels = {
        value
        for family in watched.registry.collect()
        for sample in family.samples
        for name, value in sample.labels.items()
        if name != "le"
    }
    assert labels == {"acme", "desk", "refused", "other", ""}
    assert name_reason("out_of_scope") == "out_of_scope"
