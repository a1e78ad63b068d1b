"""Events reach the endpoints: signed, once each in effect, whatever fails."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from broker.background_jobs import BackgroundJobs
from broker.errors import BrokerUnavailableError
from broker.ports import EndedReader
from broker.values import EndedMessage, Finish
from config.notification_settings import WebhookEndpoint
from envelope.outcome import Outcome
from envelope.question import Question
from memory.errors import MemoryUnavailableError
from memory.webhook_queue import RedisWebhookQueue
from notifications.webhooks import ENDED, GAP, RATED, WebhookSender, WebhookTarget, announce
from tests.notifications.conftest import Receiver
from tests.support.broker_harness import BrokerHarness, question
from tests.support.waiting import wait_until

NEW = "whsec_bmV3IHNlY3JldCBvZiB0aGUgd2ViaG9va3Mh"
OLD = "whsec_b2xkIHNlY3JldCBvZiB0aGUgd2ViaG9va3Mh"


@dataclass
class Desk:
    """A desk, and what sends its events to one endpoint."""

    harness: BrokerHarness
    receiver: Receiver
    ratings: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def queue(self) -> RedisWebhookQueue:
        return RedisWebhookQueue(self.harness.client)

    def sender(
        self, *delays: float, reader: Any = None, queue: Any = None, **fields: Any
    ) -> WebhookSender:
        settings = WebhookEndpoint(url=self.receiver.url, secret=NEW, earlier_secret=OLD)
        given = {"url": settings.url, "secrets": settings.secrets, "is_private": True, **fields}
        broker = self.harness.broker

        async def find(asked: Question) -> tuple[str, str] | None:
            return self.ratings.get(asked.message_id)

        return WebhookSender(
            [WebhookTarget("crm", **given)],
            self.queue if queue is None else queue,
            broker.announced if reader is None else reader,
            broker.replies,
            find,
            delays_seconds=delays or (0.0, 0.0),
        )

    async def answer(self, message: str = "m1") -> Question:
        asked = question(message)
        await self.harness.submit(asked)
        finish = Finish(Outcome.ANSWERED, {"outcome": "answered", "text": "30 days."})
        assert await self.harness.settle(await self.harness.take(), finish)
        return asked

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(text) for _, text in self.receiver.received]

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.receiver.received]


@pytest.fixture
async def desk(harness: BrokerHarness, receiver: Receiver) -> Desk:
    """A desk whose endpoint is configured already."""
    desk = Desk(harness, receiver)
    await desk.queue.subscribe(["crm"])
    return desk


async def test_a_new_endpoint_gets_the_events_from_its_first_start_on_also_those_of_a_restart(
    harness: BrokerHarness, receiver: Receiver
) -> None:
    desk = Desk(harness, receiver)
    await desk.answer("before")
    await desk.sender().collect_next(block_seconds=0)
    await desk.answer("while no process runs")

    restarted = desk.sender()
    await restarted.collect_next(block_seconds=0)
    await restarted.deliver_due()

    assert [body["data"]["message_id"] for body in desk.bodies] == ["while no process runs"]


async def test_an_ended_message_is_told_once_with_its_answer(desk: Desk) -> None:
    asked = await desk.answer()
    sender = desk.sender()

    assert await sender.collect_next(block_seconds=0) == 1
    assert (await sender.deliver_due(), await sender.deliver_due()) == (1, 0)

    [body] = desk.bodies
    assert body["type"] == ENDED
    assert body["data"]["message_id"] == asked.message_id
    assert (body["data"]["outcome"], body["data"]["answer"]) == ("answered", "30 days.")


async def test_the_reference_library_verifies_both_secrets_and_no_changed_body(desk: Desk) -> None:
    await desk.answer()
    sender = desk.sender()
    await sender.collect_next(block_seconds=0)
    await sender.deliver_due()
    [(headers, text)] = desk.receiver.received

    for secret in (NEW, OLD):
        assert Webhook(secret).verify(text, headers)["type"] == ENDED
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(text.replace("30", "31"), headers)
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_b3RoZXIgc2VjcmV0IG9mIHRoZSB3ZWJob29rcyE=").verify(text, headers)


async def test_a_failed_delivery_is_tried_again_by_another_process_under_the_same_id(
    desk: Desk,
) -> None:
    await desk.answer()
    desk.receiver.statuses = [503]
    first, second = desk.sender(), desk.sender()
    await first.collect_next(block_seconds=0)
    await first.deliver_due()

    assert await second.deliver_due() == 1

    assert len(desk.ids) == 2
    assert len(set(desk.ids)) == 1
    assert await desk.queue.count_waiting() == 0


@dataclass
class DyingReader:
    """Dies before it acknowledges what it took."""

    reader: EndedReader

    async def take(self, *, count: int, block_seconds: float) -> Sequence[EndedMessage]:
        return await self.reader.take(count=count, block_seconds=block_seconds)

    async def acknowledge(self, _messages: Sequence[EndedMessage]) -> None:
        raise ConnectionError


async def test_a_process_that_dies_after_it_stored_a_delivery_doubles_nothing(desk: Desk) -> None:
    await desk.answer()
    died = desk.sender(reader=DyingReader(desk.harness.broker.announced))
    with pytest.raises(ConnectionError):
        await died.collect_next(block_seconds=0)
    next_process = desk.sender()

    await wait_until(lambda: next_process.collect_next(block_seconds=0))
    assert await next_process.deliver_due() == 1
    assert await next_process.deliver_due() == 0

    assert len(desk.ids) == 1


async def test_an_event_that_no_endpoint_accepts_is_kept_until_the_owner_sends_it_again(
    desk: Desk,
) -> None:
    await desk.answer()
    desk.receiver.statuses = [500, 500, 500]
    sender = desk.sender()
    await sender.collect_next(block_seconds=0)

    assert [await sender.deliver_due() for _ in range(4)] == [1, 1, 1, 0]
    [dead] = await desk.queue.list_dead()
    await desk.queue.revive(dead)
    assert await sender.deliver_due() == 1

    assert (dead.attempts, dead.error) == (3, "status 500")
    assert await desk.queue.list_dead() == []
    assert len(set(desk.ids)) == 1


async def test_an_endpoint_that_is_gone_is_not_asked_again(desk: Desk) -> None:
    await desk.answer()
    desk.receiver.statuses = [410]
    sender = desk.sender()
    await sender.collect_next(block_seconds=0)
    await sender.deliver_due()

    assert await sender.deliver_due() == 0
    assert len(await desk.queue.list_dead()) == 1


@pytest.mark.parametrize("status", [302, 500])
async def test_a_redirect_leads_nowhere_and_a_delivery_waits_before_it_is_tried_again(
    desk: Desk, status: int
) -> None:
    await desk.answer()
    desk.receiver.statuses = [status]
    sender = desk.sender(3600.0)
    await sender.collect_next(block_seconds=0)
    await sender.deliver_due()

    assert await sender.deliver_due() == 0
    assert len(desk.receiver.received) == 1
    assert await desk.queue.count_waiting() == 1


async def test_nothing_of_an_erased_conversation_is_told(desk: Desk) -> None:
    asked = await desk.answer()
    sender = desk.sender()
    await sender.collect_next(block_seconds=0)
    await desk.harness.broker.eraser.forget(asked)

    await sender.deliver_due()

    assert desk.receiver.received == []
    assert await desk.queue.count_waiting() == 0
    assert not [key for key in await desk.harness.client.keys("*webhooks*") if b"30" in key]


async def test_a_rating_is_told_each_time_it_changes(desk: Desk) -> None:
    asked = await desk.answer()
    sender = desk.sender(kinds=(RATED,))
    for rating in ("up", "down"):
        desk.ratings[asked.message_id] = (rating, "It misses a step.")
        await desk.harness.broker.announced.announce(asked, "rated")
        await sender.collect_next(block_seconds=0)
        await sender.deliver_due()

    assert [body["data"]["rating"] for body in desk.bodies] == ["up", "down"]
    assert len(set(desk.ids)) == 2


async def test_an_announced_event_reaches_the_endpoints_of_its_assistant_once(desk: Desk) -> None:
    async def tell(assistant: str) -> None:
        await announce(
            desk.queue, GAP, tenant="acme", assistant=assistant, subject="g1", data={"gap": "g1"}
        )

    sender = desk.sender(assistants=(("acme", "desk"),))
    await tell("desk")
    await tell("desk")
    await tell("other")
    while await sender.deliver_due():
        pass

    [body] = desk.bodies
    assert (body["type"], body["data"]) == (
        GAP,
        {"tenant": "acme", "assistant": "desk", "gap": "g1"},
    )


@pytest.mark.parametrize(
    ("url", "is_private"),
    [
        ("http://127.0.0.1:9/hook", False),
        ("http://localhost/hook", False),
        ("http://[::1]/hook", False),
        ("http://169.254.169.254/latest/meta-data", False),
        ("http://10.0.0.7/hook", False),
        ("http://169.254.169.254/hook", True),
    ],
)
async def test_an_internal_address_and_credentials_of_the_machine_are_sent_nothing(
    desk: Desk, url: str, is_private: bool
) -> None:
    await desk.answer()
    sender = desk.sender(3600.0, url=url, is_private=is_private)
    await sender.collect_next(block_seconds=0)
    await sender.deliver_due()

    [stored] = await desk.harness.client.hvals("rd:{webhooks}:deliveries")
    assert "AddressRefusedError" in json.loads(stored)["error"]
    assert desk.receiver.received == []


class Outage:
    """A part of the desk whose call with this number raises `error`."""

    def __init__(self, part: Any, at: int, error: Exception) -> None:
        self._part = part
        self._at = at
        self._error = error
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == self._at:
                raise self._error
            return await getattr(self._part, name)(*given, **named)

        return call


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize(
    "error", [MemoryUnavailableError("away"), BrokerUnavailableError("away"), KeyError("odd")]
)
async def test_a_failure_during_a_delivery_stops_no_other_delivery_and_no_job(
    desk: Desk, at: int, error: Exception
) -> None:
    """The first call claims both deliveries, the second and third end one each."""
    for message in ("m1", "m2"):
        await desk.answer(message)
    collecting = desk.sender()
    await wait_until(lambda: collecting.collect_next(block_seconds=0))
    jobs, queue = BackgroundJobs(), Outage(desk.queue, at, error)
    sender = desk.sender(queue=queue)

    async def both_arrived() -> bool:
        return len(set(desk.ids)) == 2

    async def deliver_once() -> None:
        # As `deliver` does, without its pauses.
        for _ in range(3):
            with suppress(MemoryUnavailableError, BrokerUnavailableError):
                await sender.deliver_due()

    if at > 1:
        await jobs.supervise("webhook_deliveries", deliver_once)
        assert [state.failures for state in jobs.states] == [0]
    else:
        await jobs.attempt("webhook_deliveries", deliver_once)
        await sender.deliver_due()
    assert await both_arrived()
