"""A settlement that cannot be written is buried alone: what travels with it is settled."""

from typing import Any

import pytest

from broker.values import Bury, Delivery, Finish, Forward, FrameSend, JournalEntry, Retry
from envelope.memory_access import Append, Increment, MemoryWrite, SetFields
from tests.support.broker_harness import (
    LAST_RESORT,
    BrokerHarness,
    carrying,
    finish,
    forward,
    question,
)

HALF = "half a pair: \ud83d"
KEY = "rd:{0}:mem:x"


def remembering(write: MemoryWrite) -> Finish:
    return finish(remember=(write,))


UNWRITABLE: dict[str, Any] = {
    "journal": Forward(
        (FrameSend("search", b"next"),), (JournalEntry("routed", {"target": HALF}),)
    ),
    "envelope": Forward((FrameSend("search", decoded=carrying(text=HALF)),)),
    "last resort": Forward((FrameSend("search", b"next"),), last_resort={"text": HALF}),
    "reply": finish(HALF),
    "no JSON": finish(object()),  # type: ignore[arg-type]
    "turn": remembering(Append(key=KEY, values=(HALF,), keep=10, ttl_seconds=60)),
    "field": remembering(SetFields(key=KEY, fields={"name": HALF}, ttl_seconds=60)),
    "sum": remembering(Increment(key=KEY, fields={HALF: 1}, ttl_seconds=60)),
    "retry": Retry(b"again", HALF, 1.0),
    "bury": Bury("failed", HALF),
}


@pytest.mark.parametrize("settlement", UNWRITABLE.values(), ids=UNWRITABLE)
async def test_a_settlement_that_cannot_be_encoded_ends_with_the_last_resort_only_for_its_question(
    harness: BrokerHarness, settlement: Any
) -> None:
    for number in range(3):
        await harness.submit(question(conversation=f"c{number}"))
    first, bad, three = await harness.take_all()

    settled = await harness.broker.settle(
        [(first, forward()), (bad, settlement), (three, finish())]
    )

    (letter,) = await harness.broker.admin.list_dead_letters()
    assert settled == [True, True, True]
    assert (letter.reason, letter.question, letter.frame) == (
        "unencodable",
        bad.question,
        b"frame",
    )
    assert letter.error.startswith("expected values that JSON can express: ")
    assert await harness.broker.replies.read_reply(bad.question) == LAST_RESORT
    assert (
        await harness.broker.replies.await_reply(three.question, block_seconds=0.0)
        == finish().reply
    )
    assert len(await harness.take_all("search")) == 1
    assert await harness.client.exists(KEY) == 0


async def test_events_before_an_unencodable_result_stay_in_the_journal(
    harness: BrokerHarness,
) -> None:
    await harness.submit()
    paid = JournalEntry("model_call", {"cost_usd": "0.25"})

    await harness.settle(
        await harness.take(), Forward((), (paid, JournalEntry("routed", {"target": HALF})))
    )

    journal = await harness.broker.replies.read_journal(question())
    assert [entry.kind for entry in journal] == [
        "accepted",
        "model_call",
        "dead_lettered",
        "finished",
    ]


async def test_the_manager_is_notified_if_a_notice_can_be_made(harness: BrokerHarness) -> None:
    def make_notice(delivery: Delivery, error: str) -> FrameSend:
        return FrameSend("search", f"{delivery.role}: {error}".encode())

    broker = harness.make(make_notice=make_notice)
    await harness.submit()

    await broker.settle([(await harness.take(), finish(HALF))])

    assert (await harness.take("search")).frame.startswith(
        b"manager: expected values that JSON can express"
    )
    assert await harness.broker.replies.read_reply(question()) is None


async def test_local_waiters_receive_the_reply_that_was_written_instead(
    harness: BrokerHarness,
) -> None:
    asked = question()
    async with harness.broker.replies.subscribe(asked) as expected:
        await harness.submit(asked)
        await harness.settle(await harness.take(), finish(HALF))

        assert await expected.await_reply(block_seconds=5.0) == LAST_RESORT
