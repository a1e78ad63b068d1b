"""A long frame is kept once: what follows travels in part, and is made whole for who needs it."""

from typing import Any

import pytest

from broker.keys import question_keys, stream_key
from broker.port import Bury, Delivery, Forward, JournalEntry, Send, Want
from envelope.envelope import Envelope, decode
from tests.broker.hands import Hands, submission
from tests.broker.rig import LAST_RESORT, LONG, Rig, carrying, eventually, finish, question


async def sent(rig: Rig, delivery: Delivery, carried: Envelope, *, places: int = 1) -> Any:
    """Send on to `search`; return what was taken on the way, where there was a place."""
    forward = Forward((Send("search", carried=carried),), (JournalEntry("routed", {}),))
    settled = await rig.broker.settle_and_take(
        [(delivery, forward)], [Want("search", "w7", places)]
    )
    assert settled.kept == [True]
    return settled.taken[0] if settled.taken else None


async def travelling(rig: Rig, role: str = "search") -> dict[bytes, bytes]:
    [(_, fields)] = await rig.client.xrange(stream_key(role, 0))
    return dict(fields)


async def kept(rig: Rig) -> int:
    return int(await rig.client.hlen(question_keys(question(), 0).frames))


async def two_hops(rig: Rig) -> tuple[Delivery, Envelope]:
    """Send a long frame on twice; return the second delivery, and what it carries."""
    first = carrying(language="en")
    await rig.submit(frame=first.encode())
    taken = await sent(rig, await rig.take(), first)
    second = first.changed(process_count=3, payload={**first.payload, "text_eng": "in English"})
    return await sent(rig, taken, second), second


async def test_of_a_long_frame_only_what_changes_travels(rig: Rig) -> None:
    delivery, carried = await two_hops(rig)

    assert delivery.carried is carried
    assert decode(delivery.whole()) == carried
    assert sum(len(value) for value in (await travelling(rig)).values()) < len(LONG) / 4
    assert await kept(rig) == 1


async def test_a_long_frame_that_is_taken_at_the_door_is_kept_as_it_came(rig: Rig) -> None:
    hands, sent_in = Hands(), submission()
    with rig.broker.handing_to([hands]):
        await rig.broker.submit(sent_in)
    [delivery] = hands.held
    on = carrying().changed(process_count=1)

    await sent(rig, delivery, on)

    assert (await travelling(rig))[b"b"] == b"door"
    assert await kept(rig) == 1
    assert decode((await rig.reclaimed("search")).frame) == on


async def test_a_short_frame_travels_whole(rig: Rig) -> None:
    short = carrying(text="a question")
    await rig.submit(frame=short.encode())

    await sent(rig, await rig.take(), short)

    assert decode((await travelling(rig))[b"f"]) == short
    assert await kept(rig) == 0


async def test_what_changed_much_is_kept_anew(rig: Rig) -> None:
    delivery, carried = await two_hops(rig)
    more = carried.changed(payload={**carried.payload, "search_context": LONG})

    taken = await sent(rig, delivery, more)
    again = more.changed(payload={**more.payload, "response": "it is so"})
    await sent(rig, taken, again)

    assert await kept(rig) == 2
    assert decode((await rig.reclaimed("search")).frame) == again


async def test_an_attribute_that_is_gone_is_gone_for_who_takes_over(rig: Rig) -> None:
    delivery, carried = await two_hops(rig)
    fewer = carried.changed(payload={"text": LONG})

    await sent(rig, delivery, fewer)

    assert decode((await rig.reclaimed("search")).frame) == fewer


@pytest.mark.parametrize("hops", [1, 2])
async def test_who_takes_over_from_a_dead_worker_gets_the_whole_frame(rig: Rig, hops: int) -> None:
    carried = carrying(language="en")
    await rig.submit(frame=carried.encode())
    delivery = await rig.take()
    for hop in range(hops):
        carried = carried.changed(process_count=hop)
        delivery = await sent(rig, delivery, carried)

    again = await rig.reclaimed("search", "w8")

    assert (again.starts, decode(again.frame)) == (2, carried)
    assert not await rig.settle(delivery, finish("late"))
    assert await rig.settle(again, finish())


async def test_who_takes_what_found_no_place_on_the_way_gets_the_whole_frame(rig: Rig) -> None:
    delivery, carried = await two_hops(rig)
    other = question(conversation="c2")
    await rig.submit(other)
    [plain] = await rig.take_all()
    forward = Forward((Send("search", carried=carried),))

    settled = await rig.broker.settle_and_take(
        [(plain, Forward((Send("search", b"plain"),))), (delivery, forward)],
        [Want("search", "w7", 1)],
    )

    assert [taken.frame for taken in settled.taken] == [b"plain"]
    assert decode((await rig.take("search", "w8")).frame) == carried


@pytest.mark.parametrize("way", ["given back", "left behind"])
async def test_what_was_handed_back_is_whole_for_the_next(rig: Rig, way: str) -> None:
    delivery, carried = await two_hops(rig)

    if way == "given back":
        await rig.broker.give_back([delivery])
    else:
        await rig.broker.leave("search", "w7")

    again = await rig.take("search", "w8")
    assert (again.starts, decode(again.frame)) == (1, carried)


async def test_the_dead_letter_of_what_killed_its_workers_has_the_whole_frame(rig: Rig) -> None:
    _, carried = await two_hops(rig)
    await rig.reclaimed("search", "w8")
    await rig.reclaimed("search", "w9")

    async def buried() -> Any:
        await rig.broker.sweep()
        return await rig.broker.dead_letters()

    [letter] = await eventually(buried)

    assert (letter.reason, letter.attempts) == ("poison", 3)
    assert decode(letter.frame) == carried


async def test_the_dead_letter_of_a_failure_has_the_whole_frame(rig: Rig) -> None:
    delivery, carried = await two_hops(rig)

    await rig.settle(delivery, Bury("failed", "no"))

    [letter] = await rig.broker.dead_letters()
    assert decode(letter.frame) == carried


@pytest.mark.parametrize("end", ["finish", "bury", "cancel", "deadline"])
async def test_nothing_is_kept_of_a_question_that_ended(rig: Rig, end: str) -> None:
    carried = carrying()
    await rig.submit(frame=carried.encode(), deadline_seconds=0.2 if end == "deadline" else 60)
    delivery = await sent(rig, await rig.take(), carried)
    assert await kept(rig) == 1

    match end:
        case "finish":
            await rig.settle(delivery, finish())
        case "bury":
            await rig.settle(delivery, Bury("failed", "no"))
        case "cancel":
            await rig.broker.cancel(question())
        case _:
            await rig.due_reply(question())

    assert await kept(rig) == 0


async def test_what_is_kept_has_a_time_to_live(rig: Rig) -> None:
    await two_hops(rig)

    assert await rig.client.pttl(question_keys(question(), 0).frames) > 60_000


async def test_who_takes_a_part_of_a_question_that_ended_lets_go_of_it(rig: Rig) -> None:
    delivery, _ = await two_hops(rig)
    await rig.broker.give_back([delivery])
    await rig.broker.cancel(question())

    assert await rig.take_all("search", "w8") == []

    assert await rig.client.xlen(stream_key("search", 0)) == 0
    assert await rig.broker.dead_letters() == []


@pytest.mark.parametrize("harm", ["base gone", "base no frame", "part no frame"])
async def test_a_part_that_nobody_can_complete_ends_its_question_with_the_last_resort(
    rig: Rig, harm: str
) -> None:
    delivery, _ = await two_hops(rig)
    frames = question_keys(question(), 0).frames
    if harm == "base gone":
        await rig.client.delete(frames)
    if harm == "base no frame":
        for name in await rig.client.hkeys(frames):
            await rig.client.hset(frames, name, b"[1]")
    if harm == "part no frame":
        fields = await travelling(rig)
        await rig.settle(delivery, Forward(()))
        await rig.client.xadd(stream_key("search", 0), {**fields, b"p": b"\xff"})
    else:
        await rig.broker.give_back([delivery])

    assert await rig.take_all("search", "w8") == []

    [letter] = await rig.broker.dead_letters()
    assert letter.reason == "malformed"
    assert letter.error.startswith("expected")
    assert await rig.broker.reply(question()) == LAST_RESORT
