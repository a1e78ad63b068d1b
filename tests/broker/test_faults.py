import asyncio
import multiprocessing
import random
import time
from typing import Any

import pytest

from broker.transport.connect import connect
from broker.values import Submission
from envelope.question import Question
from tests.broker import killable_worker
from tests.support.broker_harness import LAST_RESORT, question

ALWAYS_OPEN = 40
KILLS = 25
OPEN = "rd:{0}:open"
PATIENCE_SECONDS = 40.0


class RestartedWorkers:
    """Worker processes, of which one is killed now and then and replaced."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.broker.killable_worker"])
        self._workers = [self._hired(role) for role in ("manager", "manager", "search", "search")]
        self._random = random.Random(7)

    def _hired(self, role: str) -> Any:
        worker = self._context.Process(
            target=killable_worker.main, args=(self._url, role), name=role
        )
        worker.start()
        return worker

    def kill_one(self) -> None:
        place = self._random.randrange(len(self._workers))
        victim = self._workers[place]
        victim.kill()
        victim.join()
        self._workers[place] = self._hired(victim.name)

    def progress_until_the_next_kill(self) -> int:
        return self._random.randrange(5, 25)

    def dismiss(self) -> None:
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.join()


@pytest.mark.redis
@pytest.mark.slow
async def test_no_question_is_lost_or_worked_twice_while_workers_are_killed(
    redis_url: str,
) -> None:
    client: Any = connect(redis_url)
    await client.flushall()
    broker = killable_worker.broker_of(redis_url)
    await broker.prepare(["manager", "search"])
    workers, asked = RestartedWorkers(redis_url), list[Question]()
    kills, kill_at, until = 0, 10, time.monotonic() + PATIENCE_SECONDS

    try:
        while (open_now := int(await client.hget(OPEN, "acme") or 0)) or kills < KILLS:
            assert time.monotonic() < until, "some questions have no outcome"
            if kills < KILLS and open_now < ALWAYS_OPEN:
                asked.append(question(conversation=f"c{len(asked)}"))
                await broker.producer.submit(
                    Submission(asked[-1], b"1", "manager", 300.0, LAST_RESORT, "chat")
                )
            progress = int(await client.get(killable_worker.PROGRESS) or 0)
            if kills < KILLS and progress >= kill_at:
                await asyncio.to_thread(workers.kill_one)
                kills += 1
                kill_at = progress + workers.progress_until_the_next_kill()
    finally:
        await asyncio.to_thread(workers.dismiss)

    replies = [await broker.replies.read_reply(each) for each in asked]
    answered = [
        each for each, reply in zip(asked, replies, strict=True) if reply == {"outcome": "answered"}
    ]
    buried = await broker.admin.list_dead_letters()
    results = [fields[b"q"] for _, fields in await client.xrange("rd:{0}:results:chat")]
    assert None not in replies
    # Only what three killed workers had held may be given up, and its user was notified.
    assert len(answered) + len(buried) == len(asked)
    assert len(results) == len(set(results)) == len(asked)
    assert float(await client.hget(killable_worker.ANSWERED, "answers")) == len(answered)
    for each in answered:
        hops = [
            entry.fields for entry in await broker.replies.read_journal(each) if entry.kind == "hop"
        ]
        assert hops == [{"number": number + 1} for number in range(killable_worker.HOPS)]
    assert [status.depth for status in await broker.admin.read_status(["manager", "search"])] == [
        0,
        0,
    ]
    await client.aclose()
    await broker.close()
