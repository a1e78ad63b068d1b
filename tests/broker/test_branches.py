"""Scatter and gather on a Redis: what a join sends, when, and what changes nothing."""

import json
from typing import Any

import pytest

from broker.keys import question_keys
from broker.values import (
    BranchSend,
    Bury,
    Delivery,
    Forward,
    FrameSend,
    Retry,
    ReturnResult,
    ScatterBranches,
)
from tests.support.broker_harness import BrokerHarness, finish, question
from tests.support.waiting import wait_until

ROLES = ("manager", "search")


def scatter(
    *paths: str, need: int | None = None, at_once: int = 9, seconds: float = 30.0, join: str = "#0"
) -> ScatterBranches:
    return ScatterBranches(
        join,
        FrameSend("manager", b"goes on"),
        tuple(BranchSend("search", path.encode(), path=path) for path in paths),
        need=len(paths) if need is None else need,
        at_once=at_once,
        seconds=seconds,
    )


def result(text: str = "found", *, good: bool = True) -> ReturnResult:
    return ReturnResult({"text": text}, good, ROLES)


async def begin(harness: BrokerHarness, settlement: ScatterBranches) -> None:
    await harness.submit()
    assert await harness.settle(await harness.take(), settlement)


async def take_branches(harness: BrokerHarness, consumer: str = "w1") -> dict[str, Delivery]:
    """Take all branches that wait, by path: their frames name them."""
    taken = await harness.take_all("search", consumer)
    for delivery in taken:
        delivery.branch = delivery.frame.decode()
    return {delivery.branch: delivery for delivery in taken}


async def take_gathered(harness: BrokerHarness) -> dict[str, Any]:
    entry = await harness.take()
    assert entry.frame == b"goes on"
    gathered: dict[str, Any] = json.loads(entry.gathered)
    return gathered


async def is_left(harness: BrokerHarness) -> list[str]:
    """Return the fields of branches and joins that the question keeps."""
    keys = question_keys(question(), 0)
    return sorted(field.decode() for field in await harness.client.hkeys(keys.frames))


async def test_the_results_of_all_branches_come_back_with_the_frame_that_scattered_them(
    harness: BrokerHarness,
) -> None:
    await begin(harness, scatter("t1", "t2"))
    branches = await take_branches(harness)

    assert await harness.settle(branches["t2"], result("two"))
    assert await harness.take_all() == []
    assert await harness.settle(branches["t1"], result("one"))

    assert await take_gathered(harness) == {"t1": {"text": "one"}, "t2": {"text": "two"}}
    assert await is_left(harness) == []
    assert await harness.client.zcard("rd:{0}:delayed") == 0


async def test_a_branch_that_returned_returns_no_more(harness: BrokerHarness) -> None:
    await begin(harness, scatter("t1", "t2"))
    branches = await take_branches(harness)
    await harness.settle(branches["t1"], Forward((FrameSend("search", b"t1"),)))
    doubled = (await take_branches(harness))["t1"]
    branches["t2"].branch = "t1"
    await harness.settle(branches["t2"], result("first"))

    assert not await harness.settle(doubled, result("second"))
    assert await harness.take_all() == []


async def test_enough_successes_go_on_and_end_the_other_branches(harness: BrokerHarness) -> None:
    await begin(harness, scatter("t1", "t2", "t3", need=1))
    branches = await take_branches(harness)

    await harness.settle(branches["t1"], result(good=False))
    assert await harness.take_all() == []
    await harness.settle(branches["t2"], result("enough"))

    assert sorted(await take_gathered(harness)) == ["t1", "t2"]
    (lost,) = await harness.broker.consumer.renew([branches["t3"]])
    assert lost.entry_id == branches["t3"].entry_id
    assert not await harness.settle(branches["t3"], result("late"))
    (search,) = await harness.broker.admin.read_status(["search"])
    assert (search.depth, search.in_flight) == (0, 0)


async def test_failures_of_all_branches_go_on_too(harness: BrokerHarness) -> None:
    await begin(harness, scatter("t1", "t2", need=2))

    for branch in (await take_branches(harness)).values():
        await harness.settle(branch, result("broken", good=False))

    assert len(await take_gathered(harness)) == 2


async def test_a_join_continues_at_its_deadline_with_the_results_so_far(
    harness: BrokerHarness,
) -> None:
    await begin(harness, scatter("t1", "t2", seconds=0.05))
    branches = await take_branches(harness)
    await harness.settle(branches["t1"], result("in time"))

    async def look() -> Any:
        await harness.broker.maintenance.scheduler.send_due()
        return await harness.take_all()

    (entry,) = await wait_until(look)
    assert json.loads(entry.gathered) == {"t1": {"text": "in time"}}
    assert not await harness.settle(branches["t2"], result("late"))
    assert await is_left(harness) == []


async def test_only_some_branches_run_at_once_and_the_next_begins_when_one_returns(
    harness: BrokerHarness,
) -> None:
    await begin(harness, scatter("t1", "t2", "t3", "t4", at_once=2))
    first = await take_branches(harness)
    assert sorted(first) == ["t1", "t2"]

    await harness.settle(first["t2"], result())
    second = await take_branches(harness)
    assert sorted(second) == ["t3"]
    await harness.settle(first["t1"], result())
    third = await take_branches(harness)
    assert sorted(third) == ["t4"]
    await harness.settle(second["t3"], result())
    await harness.settle(third["t4"], result())

    assert sorted(await take_gathered(harness)) == ["t1", "t2", "t3", "t4"]


async def test_branches_scatter_again_and_end_with_those_that_they_belong_to(
    harness: BrokerHarness,
) -> None:
    await begin(harness, scatter("w1", "w2", need=1))
    outer = await take_branches(harness)
    assert await harness.settle(outer["w1"], scatter("w1/t1", "w1/t2", join="w1#0"))
    inner = await take_branches(harness)
    assert await harness.settle(inner["w1/t1"], scatter("w1/t1/x1", join="w1/t1#0"))
    innermost = await take_branches(harness)

    await harness.settle(outer["w2"], result("enough"))

    assert sorted(await take_gathered(harness)) == ["w2"]
    assert not await harness.settle(innermost["w1/t1/x1"], result("late"))
    assert not await harness.settle(inner["w1/t2"], result("late"))
    assert await harness.take_all() == []


async def test_an_inner_join_goes_on_in_its_branch(harness: BrokerHarness) -> None:
    await begin(harness, scatter("w1"))
    outer = await take_branches(harness)
    await harness.settle(outer["w1"], scatter("w1/t1", join="w1#0"))
    inner = await take_branches(harness)
    await harness.settle(inner["w1/t1"], result("inner"))
    goes_on = await harness.take()
    assert json.loads(goes_on.gathered) == {"w1/t1": {"text": "inner"}}
    goes_on.branch = "w1"

    await harness.settle(goes_on, result("outer"))

    assert await take_gathered(harness) == {"w1": {"text": "outer"}}


@pytest.mark.parametrize("ends", ["finish", "cancel"])
async def test_the_end_of_a_question_ends_its_branches(harness: BrokerHarness, ends: str) -> None:
    await begin(harness, scatter("t1", "t2", need=1))
    branches = await take_branches(harness)
    await harness.settle(branches["t1"], result())
    entry = await harness.take()

    if ends == "finish":
        await harness.settle(entry, finish())
    else:
        await harness.broker.producer.cancel(question())

    assert len(await harness.broker.consumer.renew([branches["t2"]])) == 1
    assert not await harness.settle(branches["t2"], result("late"))
    assert not await harness.client.exists(question_keys(question(), 0).frames)


async def test_a_branch_that_is_buried_without_a_notice_returns_a_failure(
    harness: BrokerHarness,
) -> None:
    await begin(harness, scatter("t1"))
    branches = await take_branches(harness)

    assert await harness.settle(branches["t1"], Bury("undecodable", "no"))

    assert await take_gathered(harness) == {"t1": {"status": "failed", "reason": "undecodable"}}
    assert (await harness.kinds())[-1] == "dead_lettered"


async def test_a_branch_is_tried_again_and_not_after_its_join(harness: BrokerHarness) -> None:
    await begin(harness, scatter("t1"))
    branches = await take_branches(harness)
    await harness.settle(branches["t1"], Retry(b"t1", "busy", seconds=0.0))
    await harness.broker.maintenance.scheduler.send_due()
    again = await take_branches(harness)

    assert await harness.settle(again["t1"], result("second try"))
    assert await take_gathered(harness) == {"t1": {"text": "second try"}}
