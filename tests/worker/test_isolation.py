"""A suspected entry runs in a separate process, and only it can fail there."""

import asyncio
import os
from functools import partial
from pathlib import Path

import pytest

from broker.values import Bury, Death, Delivery, Finish, FrameSend, Settlement
from envelope.envelope import Envelope
from memory.errors import MemoryUnavailableError
from tests.support.broker_harness import question
from tests.support.waiting import wait_until, within
from tests.worker import crashing_handlers
from worker.errors import HandlerTimeoutError, SuspectFailedError
from worker.isolation import CHILDREN, IsolatedHandler, Quarantine

HANGING_SECONDS = 3.5
WAITED_SECONDS = 0.5
"""So long the next one waits at least, on however busy a machine."""

pytestmark = pytest.mark.slow  # each starts processes


def envelope_of(text: str) -> Envelope:
    return Envelope(
        tenant="acme",
        assistant="desk",
        channel="test",
        conversation_id="c1",
        message_id="m1",
        create_ts=1.0,
        update_ts=1.0,
        deadline_ts=61.0,
        payload={"text": text},
    )


def delivery_of(text: str, *, starts: int = 2, remaining_seconds: float = 60.0) -> Delivery:
    return Delivery(
        entry_id="1-0",
        role="search",
        shard=0,
        consumer="w9",
        count=1,
        question=question(),
        frame=envelope_of(text).encode(),
        remaining_seconds=remaining_seconds,
        starts=starts,
        deaths=tuple(Death(f"w{number}", 1.0) for number in range(1, starts)),
    )


def make_notice(_delivery: Delivery, error: str) -> FrameSend:
    return FrameSend("manager", error.encode())


class Desk:
    """A quarantine, and the file in which each start is noted."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes
        make = partial(crashing_handlers.suspect, str(notes))
        self.quarantine = Quarantine(
            make, ["search"], make_notice, preload=["tests.worker.crashing_handlers"]
        )

    async def run(self, text: str, *, starts: int = 2, seconds: float = 60.0) -> Settlement:
        here = IsolatedHandler(crashing_handlers.Suspect(str(self.notes)), self.quarantine)
        delivery = delivery_of(text, starts=starts, remaining_seconds=seconds)
        return await here.handle(delivery, envelope_of(text))

    @property
    def started_in(self) -> list[int]:
        return [int(line) for line in self.notes.read_text().split()] if self.notes.exists() else []


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "starts")


async def test_a_new_entry_runs_in_this_process_and_a_suspect_in_a_child(desk: Desk) -> None:
    first, again = await desk.run("fine", starts=1), await desk.run("fine", starts=2)

    here, elsewhere = desk.started_in
    assert here == os.getpid() != elsewhere
    assert isinstance(first, Finish)
    assert isinstance(again, Finish)
    assert again.reply == {"outcome": "answered", "pid": elsewhere}


@pytest.mark.parametrize(("text", "how"), [("kill", "SIGKILL"), ("exit", "exit code 3")])
async def test_a_poison_message_is_buried_after_its_third_start_without_affecting_others(
    desk: Desk, text: str, how: str
) -> None:
    settlement = await desk.run(text, starts=2)

    assert isinstance(settlement, Bury)
    assert settlement.reason == "poison"
    assert how in settlement.error
    assert [death.worker for death in settlement.deaths] == ["w1", "w9", "w9"]
    assert settlement.poison_notice == FrameSend("manager", settlement.error.encode())
    assert len(desk.started_in) == 2  # the first start killed another worker


async def test_a_suspect_in_its_last_start_is_started_only_once(desk: Desk) -> None:
    settlement = await desk.run("exit", starts=3)

    assert isinstance(settlement, Bury)
    assert len(desk.started_in) == 1


async def test_suspects_run_side_by_side_and_the_innocent_among_them_end_well(desk: Desk) -> None:
    texts = ["kill", "fine", "exit", "fine"]

    settlements = await asyncio.gather(*map(desk.run, texts))

    assert [type(settlement) for settlement in settlements] == [Bury, Finish, Bury, Finish]


async def test_an_error_of_a_suspect_is_a_failure_and_keeps_its_journal(desk: Desk) -> None:
    with pytest.raises(SuspectFailedError, match="ValueError: no such page") as raised:
        await desk.run("raise")

    assert [entry.kind for entry in raised.value.journal] == ["model_call"]


async def test_a_suspect_reports_that_memory_is_unavailable(desk: Desk) -> None:
    with pytest.raises(MemoryUnavailableError, match="does not answer"):
        await desk.run("away")


async def test_a_suspect_that_cannot_be_put_together_is_a_failure_and_no_death() -> None:
    quarantine = Quarantine(crashing_handlers.nobody, ["search"], make_notice)

    with pytest.raises(SuspectFailedError, match="expected an open index"):
        await quarantine.run(delivery_of("fine"))


async def test_a_suspect_that_hangs_is_ended_in_the_questions_time(desk: Desk) -> None:
    await desk.run("fine")  # the fork server runs

    with pytest.raises(HandlerTimeoutError):
        await desk.run("hang", seconds=2.0)

    assert await wait_until(partial(has_ended, desk.started_in[-1]))


async def test_as_many_suspects_as_run_at_once_may_hang_and_all_are_ended(desk: Desk) -> None:
    await desk.run("fine")  # the fork server runs

    hanging = [desk.run("hang", seconds=2.0) for _ in range(CHILDREN)]
    async with within():
        ended = await asyncio.gather(*hanging, return_exceptions=True)

    assert [type(error) for error in ended] == [HandlerTimeoutError] * CHILDREN


async def test_a_suspect_that_waited_for_its_turn_has_less_time_left(desk: Desk) -> None:
    await desk.run("fine")  # the fork server runs

    async with asyncio.TaskGroup() as tasks:
        for _ in range(CHILDREN):
            tasks.create_task(_hang(desk, HANGING_SECONDS))
        await wait_until(partial(_begun, desk, CHILDREN + 1))
        result = await desk.run("time", seconds=60.0)

    assert isinstance(result, Finish)
    assert float(str(result.reply["seconds"])) < 60.0 - WAITED_SECONDS


async def test_a_suspect_whose_lease_is_lost_is_ended(desk: Desk) -> None:
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(desk.run("hang"))

        async def has_started() -> bool:
            return bool(desk.started_in)

        await wait_until(has_started)
        running.cancel()

    assert await wait_until(partial(has_ended, desk.started_in[0]))


async def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def _hang(desk: Desk, seconds: float) -> None:
    with pytest.raises(HandlerTimeoutError):
        await desk.run("hang", seconds=seconds)


async def _begun(desk: Desk, many: int) -> bool:
    return len(desk.started_in) >= many
