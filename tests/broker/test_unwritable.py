"""A settlement that cannot be written is buried alone: what travels with it is settled."""

from typing import Any

import pytest

from broker.port import Bury, Delivery, Finish, Forward, JournalEntry, Retry, Send
from envelope.memory_write import Append, Increment, MemoryWrite, SetFields
from tests.broker.rig import LAST_RESORT, Rig, carrying, finish, forward, question

HALF = "half a pair: \ud83d"
KEY = "rd:{0}:mem:x"


def remembering(write: MemoryWrite) -> Finish:
    return finish(remember=(write,))


UNWRITABLE: dict[str, Any] = {
    "journal": Forward((Send("search", b"next"),), (JournalEntry("routed", {"to": HALF}),)),
    "envelope": Forward((Send("search", carried=carrying(text=HALF)),)),
    "last resort": Forward((Send("search", b"next"),), last_resort={"text": HALF}),
    "reply": finish(HALF),
    "no JSON": finish(object()),  # type: ignore[arg-type]
    "turn": remembering(Append(key=KEY, values=(HALF,), keep=10, ttl_seconds=60)),
    "field": remembering(SetFields(key=KEY, fields={"name": HALF}, ttl_seconds=60)),
    "sum": remembering(Increment(key=KEY, fields={HALF: 1}, ttl_seconds=60)),
    "retry": Retry(b"again", HALF, 1.0),
    "bury": Bury("failed", HALF),
}


@pytest.mark.parametrize("settlement", UNWRITABLE.values(), ids=UNWRITABLE)
async def test_what_cannot_be_written_ends_with_its_last_resort_and_harms_nobody(
    rig: Rig, settlement: Any
) -> None:
    for number in range(3):
        await rig.submit(question(conversation=f"c{number}"))
    one, bad, three = await rig.take_all()

    settled = await rig.broker.settle([(one, forward()), (bad, settlement), (three, finish())])

    (letter,) = await rig.broker.dead_letters()
    assert settled == [True, True, True]
    assert (letter.reason, letter.question, letter.frame) == (
        "unwritable",
        bad.question,
        b"frame",
    )
    assert letter.error.startswith("expected what JSON can say: ")
    assert await rig.broker.reply(bad.question) == LAST_RESORT
    assert await rig.broker.outcome(three.question, block_seconds=0.0) == finish().reply
    assert len(await rig.take_all("search")) == 1
    assert await rig.client.exists(KEY) == 0


async def test_what_a_run_did_before_it_said_the_unwritable_stays_in_the_journal(rig: Rig) -> None:
    await rig.submit()
    paid = JournalEntry("model_call", {"cost_usd": "0.25"})

    await rig.settle(await rig.take(), Forward((), (paid, JournalEntry("routed", {"to": HALF}))))

    journal = await rig.broker.journal(question())
    assert [entry.kind for entry in journal] == ["accepted", "model_call", "buried", "finished"]


async def test_the_manager_hears_of_it_where_somebody_can_tell(rig: Rig) -> None:
    def tell(delivery: Delivery, error: str) -> Send:
        return Send("search", f"{delivery.role}: {error}".encode())

    broker = rig.make(tell=tell)
    await rig.submit()

    await broker.settle([(await rig.take(), finish(HALF))])

    assert (await rig.take("search")).frame.startswith(b"manager: expected what JSON can say")
    assert await rig.broker.reply(question()) is None


async def test_whoever_waits_here_hears_what_was_written_instead(rig: Rig) -> None:
    asked = question()
    async with rig.broker.expecting(asked) as expected:
        await rig.submit(asked)
        await rig.settle(await rig.take(), finish(HALF))

        assert await expected.outcome(block_seconds=5.0) == LAST_RESORT
