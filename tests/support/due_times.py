"""Lets the time of a question's join or deadline pass at once, so that no test waits for it."""

from typing import Any

from broker.keys import name_of, question_keys, shard_keys
from broker.values import WATCH
from envelope.question import Question
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness


async def pass_join(harness: WorkerHarness, question: Question, *, hanging: int) -> None:
    """Wait until only `hanging` branches of a question are open, and let its join be due."""
    keys = question_keys(question, 0)

    async def is_left_with_those_that_hang() -> bool:
        fields = await harness.client.hkeys(keys.frames)
        open_branches = {field for field in fields if field.startswith(b"b:")}
        return len(open_branches - {f"b:{WATCH}".encode()}) == hanging

    await wait_until(is_left_with_those_that_hang)
    [join] = await find_joins(harness.client, question)
    await _make_due(harness, shard_keys(0).delayed, join)


async def pass_deadline(harness: WorkerHarness, question: Question) -> None:
    """Let the deadline of an open question be over."""
    await _make_due(harness, shard_keys(0).deadlines, name_of(question).encode())


async def find_joins(client: Any, question: Question) -> dict[bytes, float]:
    """Return the open joins of a question and when they are due, in ms."""
    delayed = await client.zrange(shard_keys(0).delayed, 0, -1, withscores=True)
    end = f" {name_of(question)}".encode()
    return {join: due for join, due in delayed if join.startswith(b"j ") and join.endswith(end)}


async def find_deadline(client: Any, question: Question) -> float:
    """Return the deadline of an open question, in ms."""
    return float(await client.zscore(shard_keys(0).deadlines, name_of(question)))


async def _make_due(harness: WorkerHarness, due_times: str, member: bytes) -> None:
    assert await harness.client.zadd(due_times, {member: 0.0}, xx=True, ch=True) == 1
    await harness.broker.maintenance.scheduler.send_due()
