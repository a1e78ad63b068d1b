"""A message that waits behind a swarm, and is about something else, ends the work of the swarm."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from envelope.role import Role
from envelope.run import Run
from gateway.desk import Message
from manager.flows import NEWEST
from manager.flows.swarm import SWARM_FLOW
from tests.faults.journal_checker import check_journal
from tests.support.swarm_agents import ActingWorker, make_swarm
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

RUNNING = Message(conversation_id="c1", message_id="m1", text="Compare workers=3")
WAITING = Message(conversation_id="c1", message_id="m2", text="How long is the warranty? workers=1")
OTHER: Mapping[str, object] = {"context_type": "new_topic", "decided_by": "combined_call"}
SAME: Mapping[str, object] = {"context_type": "follow_up", "decided_by": "combined_call"}
UNJUDGED: Mapping[str, object] = {"context_type": "new_topic", "decided_by": "rules"}


class Worker(ActingWorker):
    """Finds its passage at once if its name is given, else when the gate opens."""

    def __init__(self, *quick: str) -> None:
        super().__init__(self._wait)
        self.gate = asyncio.Event()
        self.quick = quick

    async def _wait(self, name: str, began: int, _run: Run) -> Any:
        if name not in self.quick and began == 1:
            await self.gate.wait()
        return None


def prepare(harness: WorkerHarness, worker: ActingWorker, reads: Mapping[str, object]) -> None:
    """Let the model read each message but the first as this."""
    harness.further_agents = [*make_swarm(worker)]
    harness.script.next(Role.ESSENCE, dict(OTHER), *[dict(reads)] * 5)


async def ask_both(
    harness: WorkerHarness, worker: Worker, waiting: Message = WAITING, *, opens: bool = False
) -> tuple[Any, Any]:
    """Ask the second when the quick workers of the first have ended, and all have begun.

    `opens`: the others go on when the second message has been looked at.
    """
    desk = harness.desk(flow=NEWEST["swarm"])
    async with harness.process(grace_seconds=0.1).running(), asyncio.TaskGroup() as tasks:
        first = tasks.create_task(desk.ask(RUNNING))
        await wait_until(lambda: len(worker.began) == 3)
        await wait_until(lambda: len(worker.ended) == len(worker.quick))
        second = tasks.create_task(desk.ask(waiting))
        if opens:
            await wait_until(lambda: _has_looked(harness))
            worker.gate.set()
    return first.result(), second.result()


async def _has_looked(harness: WorkerHarness) -> bool:
    journal = await harness.broker.replies.read_journal(harness.desk().question(RUNNING))
    return any(
        entry.fields.get("target") == "return" and entry.fields.get("branch") == "watch"
        for entry in journal
    )


def list_states(reply: dict[str, Any]) -> dict[str, str]:
    return {task["task_id"]: task["state"] for task in reply["tasks"]}


async def test_a_message_about_another_topic_ends_the_swarm_with_the_results_so_far(
    harness: WorkerHarness,
) -> None:
    worker = Worker("w0")
    prepare(harness, worker, OTHER)

    first, second = await ask_both(harness, worker)

    assert first["outcome"] == "answered"
    assert "value of part0" in first["text"]
    assert "topic_change/en" in first["text"]
    assert first["termination_reason"] == "topic_change"
    assert list_states(first) == {"w0": "completed", "w1": "cancelled", "w2": "cancelled"}
    assert second["outcome"] == "answered"
    assert list_states(second) == {"w0": "completed"}
    journal = await harness.broker.replies.read_journal(harness.desk().question(RUNNING))
    assert list(check_journal(list(journal), SWARM_FLOW)) == []
    _, looked, _ = harness.script.seen[Role.ESSENCE]
    asked = [turn["text"] for turn in looked["history"]]
    assert (looked["text"], asked) == (WAITING.text, [RUNNING.text]), "read after the running one"


async def test_a_message_that_asks_to_stop_ends_the_swarm_too(harness: WorkerHarness) -> None:
    worker = Worker("w0")
    prepare(harness, worker, {**SAME, "conversation_act": "exit"})

    first, second = await ask_both(harness, worker)

    assert first["outcome"] == "answered"
    assert list_states(first) == {"w0": "completed", "w1": "cancelled", "w2": "cancelled"}
    assert second["text"] == "act_acknowledgement/en"


@pytest.mark.parametrize("reads", [SAME, UNJUDGED], ids=["follow-up", "no model"])
async def test_a_message_that_no_model_reads_as_something_else_ends_nothing(
    harness: WorkerHarness, reads: Mapping[str, object]
) -> None:
    worker = Worker("w0")
    prepare(harness, worker, reads)

    first, second = await ask_both(harness, worker, opens=True)

    assert set(list_states(first).values()) == {"completed"}
    assert "topic_change/en" not in first["text"]
    assert second["outcome"] == "answered"


async def test_a_message_of_users_with_other_groups_does_not_end_the_swarm(
    harness: WorkerHarness,
) -> None:
    worker = Worker("w0")
    prepare(harness, worker, OTHER)
    theirs = Message(conversation_id="c1", message_id="m2", text="workers=1", groups=("staff",))

    first, _ = await ask_both(harness, worker, theirs, opens=True)

    assert set(list_states(first).values()) == {"completed"}
    assert len(harness.script.seen[Role.ESSENCE]) == 2


async def test_a_question_of_which_nothing_was_found_is_superseded(harness: WorkerHarness) -> None:
    worker = Worker()
    prepare(harness, worker, OTHER)

    first, second = await ask_both(harness, worker)

    assert (first["outcome"], first["text"]) == ("superseded", "topic_change/en")
    assert set(list_states(first).values()) == {"cancelled"}
    assert second["outcome"] == "answered"


async def test_a_message_that_came_while_the_work_was_planned_is_looked_at_when_it_begins(
    harness: WorkerHarness,
) -> None:
    worker, planning, planned = Worker("w0"), asyncio.Event(), asyncio.Event()
    prepare(harness, worker, OTHER)

    async def hold(_reads: Any) -> dict[str, object]:
        planning.set()
        await planned.wait()
        return {}

    harness.script.next(Role.GUARDRAILS, hold)
    desk = harness.desk(flow=NEWEST["swarm"])
    async with harness.process(grace_seconds=0.1).running(), asyncio.TaskGroup() as tasks:
        first = tasks.create_task(desk.ask(RUNNING))
        await planning.wait()
        second = tasks.create_task(desk.ask(WAITING))
        await wait_until(lambda: _waits(harness))
        planned.set()

    assert first.result()["termination_reason"] == "topic_change"
    assert second.result()["outcome"] == "answered"


async def _waits(harness: WorkerHarness) -> bool:
    journal = await harness.broker.replies.read_journal(harness.desk().question(WAITING))
    return bool(journal)
