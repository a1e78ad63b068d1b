from typing import Any

import pytest
from pydantic import JsonValue

from broker.values import BranchSend, Delivery, Finish, ReturnResult, ScatterBranches
from envelope.envelope import Envelope, Hop
from envelope.question import Question
from manager.branches import find_visible, gather_results, select_branches
from manager.flow import Join
from manager.machine import Limits
from manager.manager import ManagerAgent
from manager.state import BranchItem, State
from manager.way_report import describe_way
from memory.conversation import Overflow
from tests.support.branching_flow import BRANCHING_FLOW, CALL, make_flow
from tests.support.worker_harness import FixedTexts

Item = BranchItem
ASKED = Question(tenant="acme", assistant="docs", conversation_id="c", message_id="m")


def keys(items: tuple[BranchItem, ...]) -> list[str]:
    return [item.key for item in items]


def test_branches_begin_by_priority_and_those_that_depend_on_others_wait() -> None:
    chosen = select_branches(
        [Item("a"), Item("b", depends_on=("a",)), Item("c", priority=5), Item("d")]
    )

    assert keys(chosen.begin) == ["c", "a", "d"]
    assert keys(chosen.waiting) == ["b"]
    assert chosen.refused == ()


@pytest.mark.parametrize(
    ("items", "refused"),
    [
        ([Item("a", depends_on=("b",)), Item("b", depends_on=("a",))],
         {"a": "cyclic_dependency", "b": "cyclic_dependency"}),
        ([Item("a", depends_on=("a",))], {"a": "cyclic_dependency"}),
        ([Item("a", depends_on=("nowhere",)), Item("b", depends_on=("a",))],
         {"a": "dependency_failed", "b": "dependency_failed"}),
        ([Item("a"), Item("a")], {"a": "duplicate_key"}),
    ],
)  # fmt: skip
def test_a_branch_that_cannot_begin_is_refused_with_its_reason(
    items: list[BranchItem], refused: dict[str, str]
) -> None:
    chosen = select_branches(items)

    assert {branch.key: branch.reason for branch in chosen.refused} == refused
    assert not chosen.waiting


def test_more_branches_than_the_most_are_refused() -> None:
    chosen = select_branches([Item(f"k{number}") for number in range(300)])

    assert len(chosen.begin) == 256
    assert {branch.reason for branch in chosen.refused} == {"too_many_branches"}


def test_a_branch_inherits_the_reads_of_its_role_but_not_its_returned_attributes() -> None:
    assert find_visible(BRANCHING_FLOW, CALL) == {
        "approvals",
        "language",
        "texts_language",
        "tool_call",
        "tool_caller",
    }


def make_envelope(stage: str = "guardrails", **payload: JsonValue) -> Envelope:
    return Envelope(
        flow="branching@1",
        tenant="acme",
        assistant="docs",
        channel="http",
        conversation_id="c",
        message_id="m",
        create_ts=1.0,
        update_ts=1.0,
        deadline_ts=9.0,
        hop=Hop(role="guardrails", status="wrote", wrote=("within_scope",)),
        payload={"stage": stage, "within_scope": True, "text": "how", **payload},
    )


class EmptyMemory:
    """Keeps nothing; only the end of a message asks it."""

    def writes(self, *_: object) -> tuple[()]:
        return ()

    async def overflowing(self, *_: object, **__: object) -> Overflow:
        return Overflow((), ())


class Steps:
    """A manager, and what it decides for one envelope after the other."""

    def __init__(self, join: Join | None = None) -> None:
        flow = make_flow() if join is None else make_flow(join)
        memory: Any = EmptyMemory()
        self.manager = ManagerAgent(
            {flow.identifier: flow}, memory, FixedTexts(), limits=Limits(), quality_threshold=0.7
        )

    async def decide(self, envelope: Envelope, seconds: float = 40.0) -> Any:
        delivery = Delivery("1-0", "manager", 0, "w", 1, ASKED, b"", seconds)
        return await self.manager.decide(delivery, envelope, seconds)

    async def scatter(self, envelope: Envelope) -> ScatterBranches:
        decided = await self.decide(envelope)
        assert isinstance(decided, ScatterBranches)
        return decided

    async def work(self, send: BranchSend, status: str = "completed") -> ReturnResult:
        """Let the tool write its result, and the manager return it."""
        branch = decode_send(send)
        call = branch.payload["tool_call"]
        assert isinstance(call, dict)
        hop = Hop(role="tool", status="gave_up", reason="it hung")
        if status == "completed":
            written = {"multi_tool_results": {str(call["key"]): call["number"]}}
            branch = branch.replace(payload={**branch.payload, **written}, process_count=2)
            hop = Hop(role="tool", status="wrote", wrote=("multi_tool_results",))
        decided = await self.decide(branch.replace(hop=hop, total_processing_time=1.5))
        assert isinstance(decided, ReturnResult)
        return decided


def decode_send(send: Any) -> Envelope:
    assert isinstance(send.decoded, Envelope)
    return send.decoded


def gather(scatter: ScatterBranches, results: dict[str, JsonValue]) -> Envelope:
    return decode_send(scatter.gather).with_gathered(results)


async def test_a_scatter_starts_a_branch_for_each_item_with_the_reads_of_its_role() -> None:
    scatter = await Steps().scatter(make_envelope(language="en"))

    assert [send.path for send in scatter.branches] == ["t1", "t2"]
    assert (scatter.join, scatter.need, scatter.at_once) == ("#0", 2, 3)
    assert scatter.seconds == 30.0, "a quarter of the time is left for the answer"
    first = decode_send(scatter.branches[0])
    assert first.payload == {
        "stage": "call",
        "attempt": 0,
        "language": "en",
        "tool_call": {"key": "call_1", "number": 1, "what": "how"},
    }
    assert (first.branch, first.target_role) == ("t1", "tool")
    assert decode_send(scatter.gather).payload["stage"] == "act"


async def test_results_are_merged_in_waves_and_a_second_delivery_merges_the_same() -> None:
    steps = Steps()
    first = await steps.scatter(make_envelope())
    results: dict[str, JsonValue] = {}
    for send in first.branches:
        returned = await steps.work(send)
        assert returned.is_good
        results[send.path] = returned.result

    second = await steps.scatter(gather(first, results))
    again = await steps.scatter(gather(first, results))
    assert decode_send(second.gather) == decode_send(again.gather)
    assert [send.path for send in second.branches] == ["t3"]
    assert second.join == "#2"
    last = (await steps.work(second.branches[0])).result
    answer = decode_send((await steps.decide(gather(second, {"t3": last}))).sends[0])

    assert answer.payload["multi_tool_results"] == {"call_1": 1, "call_2": 2, "call_3": 3}
    assert answer.payload["stage"] == "response"
    assert answer.process_count == 6, "hops of branches count"
    assert answer.total_processing_time == 3.0, "the slowest branch of each wave"
    assert answer.gathered is None


async def test_failed_and_missing_branches_are_named_and_the_others_go_on() -> None:
    steps = Steps()
    scatter = await steps.scatter(make_envelope(text="how calls=4"))
    failed = await steps.work(scatter.branches[1], "failed")
    assert not failed.is_good
    good = await steps.work(scatter.branches[2])

    went_on = await steps.decide(gather(scatter, {"t2": failed.result, "t3": good.result}))

    payload = decode_send(went_on.sends[0]).payload
    assert payload["multi_tool_results"] == {"call_3": 3}
    assert payload["branches"] == [
        {"branch": "t1", "key": "call_1", "status": "missing"},
        {"branch": "t2", "key": "call_2", "status": "failed", "reason": "it hung"},
        {"branch": "t3", "key": "call_3", "status": "completed"},
    ]


async def test_enough_successes_are_those_of_the_join() -> None:
    scatter = await Steps(Join(at_least=1, seconds=5.0)).scatter(make_envelope())

    assert (scatter.need, scatter.seconds) == (1, 5.0)


async def test_a_branch_at_a_limit_returns_and_does_not_end_the_message() -> None:
    steps = Steps()
    scatter = await steps.scatter(make_envelope())
    branch = decode_send(scatter.branches[0]).replace(process_count=1000)

    returned = await steps.decide(branch.replace(payload={**branch.payload, "stage": "response"}))

    assert isinstance(returned, ReturnResult)
    assert returned.result["reason"] == "process_count_limit"


async def test_a_branch_that_gave_up_when_its_time_was_over_is_missing_and_has_not_failed() -> None:
    steps = Steps()
    scatter = await steps.scatter(make_envelope(text="how calls=4"))
    late = Hop(role="tool", status="gave_up", reason="it took longer than the time that was left")

    returned = await steps.decide(decode_send(scatter.branches[0]).replace(hop=late), 0.4)
    good = await steps.work(scatter.branches[2])
    went_on = await steps.decide(gather(scatter, {"t1": returned.result, "t3": good.result}))

    branches = decode_send(went_on.sends[0]).payload["branches"]
    assert isinstance(branches, list)
    assert branches[0] == {
        "branch": "t1",
        "key": "call_1",
        "status": "missing",
        "reason": late.reason,
    }


async def test_a_scatter_without_branches_goes_on_as_if_all_had_failed() -> None:
    decided = await Steps().decide(make_envelope(text="how calls=0"))

    assert isinstance(decided, Finish)
    assert decided.reply["termination_reason"] == "act_failed"


def test_the_usage_of_each_worker_is_summed_over_its_rounds() -> None:
    def run_round(before: dict[str, JsonValue], cost: str) -> dict[str, JsonValue]:
        running: dict[str, JsonValue] = {"branch": "w1", "key": "worker_0", "status": "running"}
        waiting = make_envelope("worked", **before, branches=[running])
        usage: JsonValue = {
            "calls": 2,
            "cost_usd": cost,
            "by_agent": {"work_on_task": {"calls": 2}},
        }
        result: JsonValue = {"status": "completed", "writes": {}, "model_usage": usage}
        gathered, _ = gather_results(waiting.replace(gathered={"w1": result}), may_ask=True)
        return {"model_usage": gathered.payload["model_usage"]}

    used: Any = run_round(run_round({}, "0.01"), "0.02")["model_usage"]

    assert (used["calls"], used["cost_usd"]) == (4, "0.03")
    assert used["by_worker"]["worker_0"]["calls"] == 4
    assert used["by_worker"]["worker_0"]["cost_usd"] == "0.03"
    task: JsonValue = {"task_id": "worker_0", "title": "Retries", "state": "completed"}
    described: Any = describe_way(State({"task_ledger": {"tasks": [task]}, "model_usage": used}))
    assert described["tasks"][0]["model_usage"] == used["by_worker"]["worker_0"]
