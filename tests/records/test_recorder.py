import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from pydantic import JsonValue

from broker.values import Fields, Finish, JournalEntry
from envelope.outcome import Outcome
from envelope.question import Question
from envelope.role import Role
from gateway.documents.index_owner import ask_owner
from memory.http_state import Feedback
from records.record import Record, redact
from records.recorder import Recorder, RecordRules
from records.store import RecordStore, RecordsUnavailableError, Selection, connect_store
from tests.support.broker_harness import BrokerHarness, question
from tests.support.waiting import wait_until

RULES = RecordRules(days={("acme", "desk"): 30.0})
CALL: Fields = {"model": "m@house", "input_tokens": 10, "output_tokens": 5, "cost_usd": "0.25"}
RUN: Fields = {"role": "essence", "milliseconds": 1500.0, "writes": {"canonical_question": "Days?"}}


@dataclass
class Desk:
    """A broker whose questions are answered, and what records them."""

    harness: BrokerHarness
    store: RecordStore
    ratings: dict[Question, Feedback] = field(default_factory=dict)

    def recorder(self, rules: RecordRules = RULES, *, pause_seconds: float = 1.0) -> Recorder:
        broker = self.harness.broker

        async def find(asked: Question) -> Feedback | None:
            return self.ratings.get(asked)

        return Recorder(
            broker.ended, broker.replies, self.store, rules, find, pause_seconds=pause_seconds
        )

    async def answer(
        self, message: str = "m1", text: str = "30 days.", **reply: JsonValue
    ) -> Question:
        asked = question(message)
        await self.harness.submit(asked)
        journal = (JournalEntry("model_call", CALL), JournalEntry("agent_run", RUN))
        fields: Fields = {"outcome": "answered", "text": text, **reply}
        finish = Finish(Outcome.ANSWERED, fields, journal=journal)
        assert await self.harness.settle(await self.harness.take(), finish)
        return asked

    def records(self) -> list[Record]:
        return list(self.store.find(Selection()))


@pytest.fixture
def desk(harness: BrokerHarness, store: RecordStore) -> Desk:
    return Desk(harness, store)


async def test_an_ended_message_is_recorded_once_with_its_work(desk: Desk) -> None:
    asked = await desk.answer()
    recorder = desk.recorder()

    assert await recorder.record_next() == 1
    assert await recorder.record_next() == 0

    (record,) = desk.records()
    assert (record.id, record.outcome, record.answer) == (asked, "answered", "30 days.")
    assert (record.model_calls, record.input_tokens, str(record.cost_usd)) == (1, 10, "0.25")
    assert record.canonical == "Days?"
    assert record.stage_seconds == {"essence": 1.5}
    assert [step["kind"] for step in record.steps] == [
        "accepted", "model_call", "agent_run", "finished",
    ]  # fmt: skip


async def test_the_failure_of_a_specialist_is_recorded_once(desk: Desk) -> None:
    failed: JsonValue = {"specialist": "risk_verifier", "text": "the model gave no answer"}
    await desk.answer(errors=[failed, failed])

    await desk.recorder().record_next()

    (record,) = desk.records()
    assert [
        (step["role"], step["text"]) for step in record.steps if step["kind"] == "not_done"
    ] == [("risk_verifier", "the model gave no answer")]


async def test_an_ingestion_by_the_owner_of_the_index_is_not_recorded_as_a_question(
    desk: Desk,
) -> None:
    broker = desk.harness.broker
    await broker.prepare([Role.INGESTION])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ask_owner(broker, ("acme", "desk"), {"documents": []}))
        (taken,) = await broker.consumer.take(Role.INGESTION, "w1", slots=1, block_seconds=10)
        await desk.harness.settle(taken, Finish(Outcome.ANSWERED, {"outcome": "answered"}))

    assert await desk.recorder().record_next() == 1

    assert desk.records() == []


class KilledError(BaseException):
    """The process dies."""


async def test_a_kill_between_writing_and_acknowledging_loses_and_doubles_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.answer()
    dying = desk.harness.make()

    async def die(_messages: object) -> None:
        raise KilledError

    monkeypatch.setattr(dying.ended, "acknowledge", die)
    killed = Recorder(dying.ended, dying.replies, desk.store, RULES, partial(_no_rating))
    with pytest.raises(KilledError):
        await killed.record_next()

    await wait_until(desk.recorder().record_next)

    assert len(desk.records()) == 1


async def _no_rating(_asked: Question) -> None:
    return None


async def test_a_database_that_is_away_delays_records_and_loses_none(
    harness: BrokerHarness, tmp_path: Path
) -> None:
    place = tmp_path / "away" / "records.sqlite3"
    store = connect_store(f"sqlite:///{place}")
    place.unlink()
    place.mkdir()  # what stands in its place cannot be opened
    desk = Desk(harness, store)
    await desk.answer("m1")
    recorder = desk.recorder(pause_seconds=0.01)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(recorder.run())
        await wait_until(lambda: recorder.delayed)
        place.rmdir()

        await desk.answer("m2")

        await wait_until(lambda: has_records(desk, 2))
        running.cancel()
    store.close()


def has_records(desk: Desk, count: int) -> bool:
    try:
        return len(desk.records()) == count
    except RecordsUnavailableError:
        return False


async def test_a_conversation_erased_while_it_is_recorded_leaves_no_record(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await desk.answer()
    write: Callable[..., None] = desk.store.write
    loop = asyncio.get_running_loop()

    def erase_first(records: list[Record]) -> None:
        erased = desk.harness.broker.eraser.forget(asked)
        asyncio.run_coroutine_threadsafe(_drop(erased), loop).result()
        desk.store.forget(asked)
        write(records)

    monkeypatch.setattr(desk.store, "write", erase_first)

    await desk.recorder().record_next()

    assert desk.records() == []


async def _drop(awaited: Awaitable[object]) -> None:
    await awaited


async def test_a_message_that_has_everything_forgotten_takes_earlier_records_along(
    desk: Desk,
) -> None:
    await desk.answer("m1")
    await desk.recorder().record_next()

    await desk.answer("m2", "Everything is forgotten.", forgot="all")
    await desk.recorder().record_next()

    assert [record.message_id for record in desk.records()] == ["m2"]


async def test_a_conversation_that_another_process_erased_leaves_no_record(desk: Desk) -> None:
    asked = await desk.answer()
    await desk.recorder().record_next()

    await desk.harness.broker.ended.announce(asked, "forgotten")
    await desk.recorder(RecordRules()).record_next()

    assert desk.records() == []


async def test_a_journal_that_cannot_be_read_holds_up_no_other(desk: Desk) -> None:
    asked = question("m0")
    await desk.harness.submit(asked)
    journal = (JournalEntry("model_call", {**CALL, "cost_usd": "much"}),)
    fields: Fields = {"outcome": "answered", "text": "30 days."}
    finish = Finish(Outcome.ANSWERED, fields, journal=journal)
    assert await desk.harness.settle(await desk.harness.take(), finish)
    await desk.answer("m1")

    assert await desk.recorder().record_next() == 2

    assert [record.message_id for record in desk.records()] == ["m1"]


async def test_questions_after_an_erasure_are_recorded(desk: Desk) -> None:
    asked = await desk.answer("m1")
    await desk.harness.broker.ended.announce(asked, "forgotten")
    announced = await desk.harness.client.time()

    async def is_later() -> bool:
        seconds, microseconds = await desk.harness.client.time()
        return bool((seconds, microseconds // 1000) > (announced[0], announced[1] // 1000))

    await wait_until(is_later)
    await desk.answer("m2")

    await desk.recorder().record_next()

    assert [record.message_id for record in desk.records()] == ["m2"]


async def test_a_rating_is_added_to_the_record_even_after_the_journal_is_gone(desk: Desk) -> None:
    asked = await desk.answer()
    await desk.recorder().record_next()
    await desk.harness.client.delete("rd:{0}:journal:acme/desk/c1/m1")
    desk.ratings[asked] = Feedback(rating="down", reason="out of date")

    await desk.harness.broker.ended.announce(asked, "rated")
    await desk.recorder().record_next()

    (record,) = desk.records()
    assert (record.rating, record.rating_reason) == ("down", "out of date")


@pytest.mark.parametrize("reason", ["out\0 of date", "out \ud800 of date"])
async def test_a_rating_that_no_database_can_keep_holds_up_nothing(desk: Desk, reason: str) -> None:
    """PostgreSQL keeps no NUL, and no database half of a character."""
    asked = await desk.answer()
    await desk.recorder().record_next()
    desk.ratings[asked] = Feedback.model_construct(rating="down", reason=reason)
    await desk.harness.broker.ended.announce(asked, "rated")
    await desk.answer("m2")

    assert await desk.recorder().record_next() == 2

    assert {record.message_id for record in desk.records()} == {"m1", "m2"}


async def test_a_record_that_no_database_can_keep_holds_up_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model's server may state any number of tokens."""
    monkeypatch.setitem(CALL, "input_tokens", 2**70)
    await desk.answer("m1")
    monkeypatch.undo()
    await desk.answer("m2")

    assert await desk.recorder().record_next() == 2

    assert "m2" in {record.message_id for record in desk.records()}


async def test_an_assistant_that_keeps_no_records_has_none(desk: Desk) -> None:
    await desk.answer()

    assert await desk.recorder(RecordRules(days={("acme", "desk"): 0.0})).record_next() == 1

    assert desk.records() == []


async def test_redacted_text_is_not_stored(desk: Desk) -> None:
    await desk.answer(
        text="Write to ann@example.org or call +49 30 1234567, see https://a.example."
    )
    rules = RecordRules(
        days=RULES.days, redact=partial(redact, kinds=("email", "number", "address"))
    )

    await desk.recorder(rules).record_next()

    (record,) = desk.records()
    assert record.answer == "Write to [email] or call [number], see [address]"
