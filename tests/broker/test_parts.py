"""A long frame is kept once: what follows travels in part, and is made whole for who needs it."""

from typing import Any

import pytest

from broker.keys import question_keys, stream_key
from broker.values import Bury, ConsumerDemand, Delivery, Forward, FrameSend, JournalEntry
from envelope.envelope import Envelope, decode
from tests.support.broker_harness import (
    LAST_RESORT,
    LONG,
    BrokerHarness,
    carrying,
    finish,
    question,
)
from tests.support.local_consumer import RecordingConsumer, submission
from tests.support.waiting import wait_until


async def send(
    harness: BrokerHarness, delivery: Delivery, carried: Envelope, *, slots: int = 1
) -> Any:
    """Send on to `search`; return what was prefetched, where there was a slot."""
    forward = Forward((FrameSend("search", decoded=carried),), (JournalEntry("routed", {}),))
    settled = await harness.broker.settle_and_take(
        [(delivery, forward)], [ConsumerDemand("search", "w7", slots)]
    )
    assert settled.kept == [True]
    return settled.taken[0] if settled.taken else None


async def travelling(harness: BrokerHarness, role: str = "search") -> dict[bytes, bytes]:
    [(_, fields)] = await harness.client.xrange(stream_key(role, 0))
    return dict(fields)


async def count_kept(harness: BrokerHarness) -> int:
    return int(await harness.client.hlen(question_keys(question(), 0).frames))


async def two_hops(harness: BrokerHarness) -> tuple[Delivery, Envelope]:
    """Send a long frame on twice; return the second delivery, and what it carries."""
    first = carrying(language="en")
    await harness.submit(frame=first.encode())
    taken = await send(harness, await harness.take(), first)
    second = first.replace(process_count=3, payload={**first.payload, "text_eng": "in English"})
    return await send(harness, taken, second), second


async def test_only_the_delta_of_a_long_frame_is_sent(harness: BrokerHarness) -> None:
    delivery, carried = await two_hops(harness)

    assert delivery.decoded is carried
    assert decode(delivery.whole()) == carried
    assert sum(len(value) for value in (await travelling(harness)).values()) < len(LONG) / 4
    assert await count_kept(harness) == 1


async def test_a_long_frame_that_is_taken_on_submission_is_kept_as_it_came(
    harness: BrokerHarness,
) -> None:
    hands, sent_in = RecordingConsumer(), submission()
    with harness.broker.producer.local_consumers([hands]):
        await harness.broker.producer.submit(sent_in)
    [delivery] = hands.held
    on = carrying().replace(process_count=1)

    await send(harness, delivery, on)

    assert (await travelling(harness))[b"b"] == b"submitted"
    assert await count_kept(harness) == 1
    assert decode((await harness.reclaim("search")).frame) == on


async def test_a_short_frame_travels_whole(harness: BrokerHarness) -> None:
    short = carrying(text="a question")
    await harness.submit(frame=short.encode())

    await send(harness, await harness.take(), short)

    assert decode((await travelling(harness))[b"f"]) == short
    assert await count_kept(harness) == 0


async def test_a_frame_with_many_changes_becomes_the_new_base(harness: BrokerHarness) -> None:
    delivery, carried = await two_hops(harness)
    more = carried.replace(payload={**carried.payload, "search_context": LONG})

    taken = await send(harness, delivery, more)
    again = more.replace(payload={**more.payload, "response": "it is so"})
    await send(harness, taken, again)

    assert await count_kept(harness) == 2
    assert decode((await harness.reclaim("search")).frame) == again


async def test_a_removed_attribute_stays_removed_after_a_takeover(harness: BrokerHarness) -> None:
    delivery, carried = await two_hops(harness)
    fewer = carried.replace(payload={"text": LONG})

    await send(harness, delivery, fewer)

    assert decode((await harness.reclaim("search")).frame) == fewer


@pytest.mark.parametrize("hops", [1, 2])
async def test_a_takeover_from_a_dead_worker_receives_the_complete_frame(
    harness: BrokerHarness, hops: int
) -> None:
    carried = carrying(language="en")
    await harness.submit(frame=carried.encode())
    delivery = await harness.take()
    for hop in range(hops):
        carried = carried.replace(process_count=hop)
        delivery = await send(harness, delivery, carried)

    again = await harness.reclaim("search", "w8")

    assert (again.starts, decode(again.frame)) == (2, carried)
    assert not await harness.settle(delivery, finish("late"))
    assert await harness.settle(again, finish())


async def test_an_entry_that_was_not_taken_with_its_settlement_has_the_complete_frame(
    harness: BrokerHarness,
) -> None:
    delivery, carried = await two_hops(harness)
    other = question(conversation="c2")
    await harness.submit(other)
    [plain] = await harness.take_all()
    forward = Forward((FrameSend("search", decoded=carried),))

    settled = await harness.broker.settle_and_take(
        [(plain, Forward((FrameSend("search", b"plain"),))), (delivery, forward)],
        [ConsumerDemand("search", "w7", 1)],
    )

    assert [taken.frame for taken in settled.taken] == [b"plain"]
    assert decode((await harness.take("search", "w8")).frame) == carried


@pytest.mark.parametrize("way", ["given back", "left behind"])
async def test_a_returned_entry_has_the_complete_frame(harness: BrokerHarness, way: str) -> None:
    delivery, carried = await two_hops(harness)

    if way == "given back":
        await harness.broker.consumer.give_back([delivery])
    else:
        await harness.broker.consumer.leave("search", "w7")

    again = await harness.take("search", "w8")
    assert (again.starts, decode(again.frame)) == (1, carried)


async def test_a_poison_dead_letter_has_the_complete_frame(
    harness: BrokerHarness,
) -> None:
    _, carried = await two_hops(harness)
    await harness.reclaim("search", "w8")
    await harness.reclaim("search", "w9")

    async def find_buried() -> Any:
        await harness.broker.maintenance.rescuer.sweep()
        return await harness.broker.admin.list_dead_letters()

    [letter] = await wait_until(find_buried)

    assert (letter.reason, letter.attempts) == ("poison", 3)
    assert decode(letter.frame) == carried


async def test_the_dead_letter_of_a_failure_has_the_whole_frame(harness: BrokerHarness) -> None:
    delivery, carried = await two_hops(harness)

    await harness.settle(delivery, Bury("failed", "no"))

    [letter] = await harness.broker.admin.list_dead_letters()
    assert decode(letter.frame) == carried


@pytest.mark.parametrize("end", ["finish", "bury", "cancel", "deadline"])
async def test_nothing_is_kept_of_a_question_that_ended(harness: BrokerHarness, end: str) -> None:
    carried = carrying()
    await harness.submit(frame=carried.encode(), deadline_seconds=0.2 if end == "deadline" else 60)
    delivery = await send(harness, await harness.take(), carried)
    assert await count_kept(harness) == 1

    match end:
        case "finish":
            await harness.settle(delivery, finish())
        case "bury":
            await harness.settle(delivery, Bury("failed", "no"))
        case "cancel":
            await harness.broker.producer.cancel(question())
        case _:
            await harness.due_reply(question())

    assert await count_kept(harness) == 0


async def test_base_frames_have_a_time_to_live(harness: BrokerHarness) -> None:
    await two_hops(harness)

    assert await harness.client.pttl(question_keys(question(), 0).frames) > 60_000


async def test_a_worker_releases_a_partial_frame_of_an_ended_question(
    harness: BrokerHarness,
) -> None:
    delivery, _ = await two_hops(harness)
    await harness.broker.consumer.give_back([delivery])
    await harness.broker.producer.cancel(question())

    assert await harness.take_all("search", "w8") == []

    assert await harness.client.xlen(stream_key("search", 0)) == 0
    assert await harness.broker.admin.list_dead_letters() == []


@pytest.mark.parametrize("harm", ["base gone", "base no frame", "part no frame"])
async def test_a_part_that_nobody_can_complete_ends_its_question_with_the_last_resort(
    harness: BrokerHarness, harm: str
) -> None:
    delivery, _ = await two_hops(harness)
    frames = question_keys(question(), 0).frames
    if harm == "base gone":
        await harness.client.delete(frames)
    if harm == "base no frame":
        for name in await harness.client.hkeys(frames):
            await harness.client.hset(frames, name, b"[1]")
    if harm == "part no frame":
        fields = await travelling(harness)
        await harness.settle(delivery, Forward(()))
        await harness.client.xadd(stream_key("search", 0), {**fields, b"p": b"\xff"})
    else:
        await harness.broker.consumer.give_back([delivery])

    assert await harness.take_all("search", "w8") == []

    [letter] = await harness.broker.admin.list_dead_letters()
    assert letter.reason == "malformed"
    assert letter.error.startswith("expected")
    assert await harness.broker.replies.read_reply(question()) == LAST_RESORT
