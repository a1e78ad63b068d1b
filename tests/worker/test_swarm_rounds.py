"""Swarms on all workers of one process: failures, hanging workers, deadlines, and the user."""

import asyncio
import os
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from envelope.outcome import GaveUp
from envelope.run import Run
from gateway.desk import Desk, Message
from manager.flows import NEWEST
from manager.flows.swarm import SWARM_FLOW
from tests.faults.journal_checker import check_journal
from tests.support.due_times import find_deadline, find_joins, pass_deadline, pass_join
from tests.support.swarm_agents import ActingWorker, make_hurried_flow, make_swarm
from tests.support.waiting import wait_until, within
from tests.support.worker_harness import WorkerHarness

pytestmark = pytest.mark.slow

DEADLINE_SECONDS = 90.0
MESSAGE = Message("How is it?", "c1", "m1")


QUESTIONS = 20
"""The number of swarms at once whose workers hang; `REFDESK_TEST_QUESTIONS` is another number."""
JOIN_SECONDS = 45.0
"""So long the workers have where some hang; the tests let it pass when only those are left."""


RENEWED_SOON = 1.2
"""A lease in seconds; at each third of it a worker learns that its branch was cancelled."""
HANGING: Any = {"limit_seconds": DEADLINE_SECONDS, "grace_seconds": 0.1}
"""Options of a process whose workers hang beyond every limit: it does not wait for them."""


def prepare(harness: WorkerHarness, worker: ActingWorker, **changes: Any) -> None:
    harness.flows = {SWARM_FLOW.identifier: make_hurried_flow(JOIN_SECONDS)}
    harness.further_agents = [*make_swarm(worker, **changes)]


def open_desk(harness: WorkerHarness, deadline_seconds: float = 60.0) -> Desk:
    return harness.desk(deadline_seconds=deadline_seconds, flow=NEWEST["swarm"])


async def ask_past_the_join(
    harness: WorkerHarness, desk: Desk, message: Message = MESSAGE, *, hanging: int
) -> Any:
    """Ask, and let the round end as soon as only the workers that hang are left."""
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(desk.ask(message))
        await pass_join(harness, desk.question(message), hanging=hanging)
    return asked.result()


async def read_journal(harness: WorkerHarness, message: Message = MESSAGE) -> list[Any]:
    question = harness.desk().question(message)
    return list(await harness.broker.replies.read_journal(question))


def list_states(reply: dict[str, Any]) -> dict[str, str]:
    return {task["task_id"]: task["state"] for task in reply["tasks"]}


async def test_only_workers_that_failed_begin_again(harness: WorkerHarness) -> None:
    async def fail_once(name: str, began: int, _run: Run) -> Any:
        if name == "w1" and began == 1:
            raise RuntimeError("lost")
        return GaveUp("away") if name == "w2" and began <= 2 else None

    worker = ActingWorker(fail_once)
    prepare(harness, worker)

    async with harness.process().running():
        reply: Any = await open_desk(harness).ask(MESSAGE)

    assert reply["outcome"] == "answered"
    assert worker.began["w0"] == worker.began["w3"] == 1
    assert worker.began["w2"] == 3
    assert set(list_states(reply).values()) == {"completed"}
    journal = await read_journal(harness)
    assert list(check_journal(journal, SWARM_FLOW)) == []
    rounds = [entry for entry in journal if entry.fields.get("target") == "worked"]
    assert len(rounds) == 1
    attempts = {task["task_id"]: task["attempts"] for task in reply["tasks"]}
    assert attempts == {"w0": 1, "w1": 1, "w2": 3, "w3": 1}, "the broker has delivered w1 twice"


async def test_a_worker_that_fails_begins_again_while_another_one_hangs(
    harness: WorkerHarness,
) -> None:
    never = asyncio.Event()

    async def act(name: str, began: int, _run: Run) -> Any:
        if name == "w1" and began <= 2:
            return GaveUp("not yet")
        if name == "w2":
            return GaveUp("its source is away")
        if name == "w3":
            await never.wait()
        return None

    worker = ActingWorker(act)
    prepare(harness, worker)

    async with harness.process(**HANGING).running():
        reply = await ask_past_the_join(harness, open_desk(harness, DEADLINE_SECONDS), hanging=1)

    tasks = {task["task_id"]: (task["state"], task["attempts"]) for task in reply["tasks"]}
    assert tasks == {
        "w0": ("completed", 1),
        "w1": ("completed", 3),
        "w2": ("failed", 4),
        "w3": ("skipped", 1),
    }
    assert reply["tasks"][2]["error"] == "its source is away"
    assert (worker.began["w1"], worker.began["w2"]) == (3, 4)


async def test_of_a_hundred_workers_that_fail_or_hang_no_healthy_one_runs_again(
    harness: WorkerHarness,
) -> None:
    never = asyncio.Event()
    raising = {f"w{number}" for number in range(0, 50, 10)}
    hanging = {"w7", "w8", "w9"}

    async def act(name: str, _began: int, _run: Run) -> Any:
        if name in raising:
            return GaveUp("always")
        if name in hanging:
            await never.wait()
        return None

    worker = ActingWorker(act)
    prepare(harness, worker, workers=100, retries=1)
    harness.limits = replace(harness.limits, parallel_workers=100, retries=1)

    async with harness.process(slots=120, **HANGING).running():
        desk = open_desk(harness, DEADLINE_SECONDS)
        reply = await ask_past_the_join(harness, desk, hanging=len(hanging))

    states = list_states(reply)
    healthy = set(states) - raising - hanging
    assert reply["outcome"] == "answered"
    assert len(healthy) == 92
    assert {states[name] for name in healthy} == {"completed"}
    assert {worker.began[name] for name in healthy} == {1}
    assert {states[name] for name in raising} == {"failed"}
    assert {worker.began[name] for name in raising} == {2}
    assert {states[name] for name in hanging} == {"skipped"}
    assert {worker.ended[name] for name in hanging} == {0}
    assert "parts_answered" in reply["text"]


async def test_enough_results_are_enough_and_the_others_are_cancelled(
    harness: WorkerHarness,
) -> None:
    cancelled: list[str] = []
    never = asyncio.Event()

    async def hang(name: str, _began: int, _run: Run) -> Any:
        if name == "w0":
            try:
                await never.wait()
            finally:
                cancelled.append(name)
        return None

    async def is_cancelled() -> bool:
        return cancelled == ["w0"]

    worker = ActingWorker(hang)
    harness.lease_seconds = RENEWED_SOON
    prepare(harness, worker, enough=0.75)
    harness.limits = replace(harness.limits, enough_share=0.75)

    async with harness.process().running():
        reply: Any = await open_desk(harness).ask(MESSAGE)
        await wait_until(is_cancelled)

    assert list_states(reply)["w0"] == "skipped"
    assert reply["outcome"] == "answered"


async def test_with_half_of_the_workers_hanging_every_partial_answer_comes_in_time(
    harness: WorkerHarness,
) -> None:
    questions = int(os.environ.get("REFDESK_TEST_QUESTIONS", QUESTIONS))
    never = asyncio.Event()

    async def hang(name: str, _began: int, _run: Run) -> Any:
        if name in {"w1", "w3"}:
            await never.wait()
        return None

    prepare(harness, ActingWorker(hang))
    messages = [replace(MESSAGE, conversation_id=f"c{number}") for number in range(questions)]

    async with harness.process(slots=2 * questions + 8, **HANGING).running():
        desk = open_desk(harness, DEADLINE_SECONDS)
        async with asyncio.TaskGroup() as tasks:
            asked = [
                tasks.create_task(ask_past_the_join(harness, desk, message, hanging=2))
                for message in messages
            ]

    replies: list[Any] = [task.result() for task in asked]
    assert [reply["outcome"] for reply in replies] == ["answered"] * questions
    for reply in replies:
        assert sorted(list_states(reply).values()) == ["completed"] * 2 + ["skipped"] * 2
        assert "parts_answered" in reply["text"]


async def test_a_cancelled_swarm_ends_its_workers(harness: WorkerHarness) -> None:
    hanging, cancelled = asyncio.Event(), asyncio.Event()

    async def hang(_name: str, _began: int, _run: Run) -> Any:
        hanging.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    harness.lease_seconds = RENEWED_SOON
    prepare(harness, ActingWorker(hang))

    async with harness.process().running():
        desk = open_desk(harness)
        await desk.submit(MESSAGE)
        await hanging.wait()
        assert await desk.cancel(desk.question(MESSAGE))
        async with within():
            await cancelled.wait()

    last: Any = (await read_journal(harness))[-1].fields
    assert last["outcome"] == "superseded"
    assert set(list_states(last).values()) == {"cancelled"}


async def test_workers_that_completed_before_a_cancellation_stay_completed(
    harness: WorkerHarness,
) -> None:
    never = asyncio.Event()

    async def hang(name: str, _began: int, _run: Run) -> Any:
        if name in {"w1", "w3"}:
            await never.wait()
        return None

    async def has_returned() -> bool:
        runs = [event.fields for event in await read_journal(harness) if event.kind == "agent_run"]
        return [run["role"] for run in runs].count("work") == 2

    harness.lease_seconds = RENEWED_SOON
    prepare(harness, ActingWorker(hang))

    async with harness.process().running():
        desk = open_desk(harness)
        await desk.submit(MESSAGE)
        await wait_until(has_returned)
        await desk.cancel(desk.question(MESSAGE), reason="stopped")

    last: Any = (await read_journal(harness))[-1].fields
    assert list_states(last) == {
        "w0": "completed", "w1": "cancelled", "w2": "completed", "w3": "cancelled",
    }  # fmt: skip
    assert last["termination_reason"] == "stopped"


async def test_two_changes_of_topic_in_a_row_leave_only_the_last_question(
    harness: WorkerHarness,
) -> None:
    begun: list[str] = []

    async def hang(name: str, began: int, _run: Run) -> Any:
        begun.append(name)
        if len(begun) <= 8:
            await asyncio.Event().wait()
        return None

    async def has_begun(count: int) -> bool:
        return len(begun) >= count

    harness.lease_seconds = RENEWED_SOON
    prepare(harness, ActingWorker(hang))
    first, second, third = (replace(MESSAGE, message_id=f"m{number}") for number in range(3))

    async with harness.process(slots=32).running():
        desk = open_desk(harness)
        await desk.submit(first)
        await wait_until(lambda: has_begun(4))
        await desk.cancel(desk.question(first))
        await desk.submit(second)
        await wait_until(lambda: has_begun(8))
        await desk.cancel(desk.question(second))
        reply: Any = await desk.ask(third)

    assert reply["outcome"] == "answered"
    ends = [
        (await read_journal(harness, message))[-1].fields["outcome"] for message in (first, second)
    ]
    assert ends == ["superseded", "superseded"]


async def test_the_join_of_a_short_deadline_leaves_time_to_write(harness: WorkerHarness) -> None:
    never = asyncio.Event()

    async def hang(name: str, _began: int, _run: Run) -> Any:
        if name == "w1":
            await never.wait()
        return None

    prepare(harness, ActingWorker(hang))

    async with harness.process(**HANGING).running():
        desk = open_desk(harness, 16.0)
        await desk.submit(MESSAGE)
        question = desk.question(MESSAGE)
        [due] = (await wait_until(partial(find_joins, harness.client, question))).values()
        left = await find_deadline(harness.client, question) - due
        await pass_join(harness, question, hanging=1)
        reply: Any = await desk.ask(MESSAGE)

    assert left / 1000 >= 2.0, "seconds for the synthesis, the checks and the answer"
    assert reply["outcome"] == "answered"
    assert list_states(reply)["w1"] == "skipped"


async def test_a_deadline_without_any_process_cancels_every_task_of_the_plan(
    harness: WorkerHarness,
) -> None:
    begun: list[str] = []

    async def hang(name: str, _began: int, _run: Run) -> Any:
        begun.append(name)
        await asyncio.Event().wait()

    async def have_begun() -> bool:
        return len(begun) >= 4

    prepare(harness, ActingWorker(hang))
    desk = open_desk(harness)

    async with harness.process(grace_seconds=0.1).running():
        await desk.submit(MESSAGE)
        await wait_until(have_begun)
    await pass_deadline(harness, desk.question(MESSAGE))
    reply: Any = await harness.broker.replies.read_reply(desk.question(MESSAGE))

    assert (reply["outcome"], reply["termination_reason"]) == ("failed", "deadline")
    assert set(list_states(reply).values()) == {"cancelled"}
    assert (len(reply["tasks"]), reply["tasks_completed"]) == (4, 0)
