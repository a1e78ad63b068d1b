"""Questions with branches, on all workers of one process."""

import asyncio
from typing import Any

from broker.keys import question_keys
from broker.values import Delivery, Settlement
from envelope.envelope import Envelope
from envelope.outcome import GaveUp
from gateway.desk import Message
from manager.flow import Join
from manager.flows import FLOWS, NEWEST
from manager.manager import ManagerAgent
from tests.faults.journal_checker import problems
from tests.support.branching_flow import ToolAgent, ToolCall, make_flow
from tests.support.flow_path import main_path
from tests.support.waiting import within
from tests.support.worker_harness import WorkerHarness

MESSAGE = Message("How do I add a rule?", "c1", "m1")


def prepare(harness: WorkerHarness, tool: ToolAgent, join: Join | None = None) -> None:
    """Let every question branch."""
    harness.flows = {NEWEST["search"]: make_flow() if join is None else make_flow(join)}
    harness.further_agents = [tool]


async def read_journal(harness: WorkerHarness) -> list[Any]:
    return list(await harness.broker.replies.read_journal(harness.desk().question(MESSAGE)))


async def test_a_question_is_answered_from_the_results_of_its_branches(
    harness: WorkerHarness,
) -> None:
    tool = ToolAgent()
    prepare(harness, tool)

    async with harness.open() as desk:
        reply = await desk.ask(MESSAGE)

    assert reply["outcome"] == "answered"
    assert reply["hops"] == 9, "four before the scatter, three in branches, two after them"
    assert sorted(tool.ran) == ["call_1", "call_2", "call_3"]
    assert tool.ran[-1] == "call_3", "it depends on the first"
    journal = await read_journal(harness)
    assert list(problems(journal)) == []
    began = [entry.fields["branches"] for entry in journal if "branches" in entry.fields]
    assert began == [["t1", "t2"], ["t3"]]
    assert not await harness.client.exists(question_keys(desk.question(MESSAGE), 0).frames)


async def test_each_question_goes_by_the_flow_that_it_began_with(harness: WorkerHarness) -> None:
    tool, branching = ToolAgent(), make_flow()
    harness.flows = {**FLOWS, branching.identifier: branching}
    harness.further_agents = [tool]

    async with harness.process().running():
        plain = await harness.desk().ask(Message("How do I add a rule?", "c2", "m2"))
        branched = await harness.desk(flow="branching@1").ask(MESSAGE)

    assert (plain["outcome"], plain["hops"]) == ("answered", len(main_path()) - 1)
    assert (branched["outcome"], branched["hops"]) == ("answered", 9)
    assert len(tool.ran) == 3


class ForgetfulManager(ManagerAgent):
    """A manager that cannot decide with the results of branches, the first time it is asked."""

    asked = 0

    async def decide(self, delivery: Delivery, envelope: Envelope, *more: Any) -> Settlement:
        if envelope.gathered is not None:
            self.asked += 1
            if self.asked == 1:
                raise RuntimeError("lost the results")
        return await super().decide(delivery, envelope, *more)


async def test_results_that_a_manager_could_not_use_are_there_when_it_tries_again(
    harness: WorkerHarness,
) -> None:
    tool = ToolAgent()
    prepare(harness, tool)

    async with harness.open(manager=harness.manager(ForgetfulManager)) as desk:
        reply = await desk.ask(MESSAGE)

    assert reply["outcome"] == "answered"
    assert len(tool.ran) == 3
    assert "retried" in [entry.kind for entry in await read_journal(harness)]


async def test_a_branch_that_fails_neither_ends_the_question_nor_the_other_branches(
    harness: WorkerHarness,
) -> None:
    async def act(call: ToolCall) -> Any:
        if call.number == 2:
            raise ValueError("this tool is broken")
        return None

    tool = ToolAgent(act)
    prepare(harness, tool)

    async with harness.open() as desk:
        reply = await desk.ask(MESSAGE)

    assert reply["outcome"] == "answered"
    assert tool.ran.count("call_2") == 3, "it is tried again like any hop"
    assert tool.ran.count("call_1") == tool.ran.count("call_3") == 1
    assert list(problems(await read_journal(harness))) == []


async def test_a_question_all_of_whose_branches_fail_ends_with_an_apology(
    harness: WorkerHarness,
) -> None:
    async def act(_call: ToolCall) -> Any:
        return GaveUp("nothing to be had")

    prepare(harness, ToolAgent(act))

    async with harness.open() as desk:
        reply = await desk.ask(MESSAGE)

    assert (reply["outcome"], reply["termination_reason"]) == ("failed", "act_failed")


async def test_a_branch_that_hangs_does_not_hold_the_join_past_its_deadline(
    harness: WorkerHarness,
) -> None:
    async def act(call: ToolCall) -> Any:
        if call.number == 2:
            await asyncio.Event().wait()
        return None

    prepare(harness, ToolAgent(act), Join(seconds=0.3))

    async with harness.open() as desk:
        reply = await desk.ask(MESSAGE)

    assert reply["outcome"] == "answered"


async def test_enough_branches_go_on_and_the_others_are_cancelled(harness: WorkerHarness) -> None:
    cancelled = asyncio.Event()

    async def act(call: ToolCall) -> Any:
        if call.number == 2:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
        return None

    harness.lease_seconds = 0.3
    prepare(harness, ToolAgent(act), Join(at_least=1))

    async with harness.open() as desk:
        reply = await desk.ask(MESSAGE)
        async with within(5):
            await cancelled.wait()

    assert reply["outcome"] == "answered"
