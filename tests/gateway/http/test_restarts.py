"""A server that is killed among its conversations loses none of them, and doubles none."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import httpx
import pytest

from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from tests.gateway.http.killable_processes import GO, READY
from tests.support.http_server import RecordedRequests, read_events, text_of
from tests.support.ports import free_port
from tests.support.waiting import wait_until, within

ROOT = Path(__file__).parent.parent.parent.parent
CONVERSATIONS = 20
AGAIN_SECONDS = 0.1

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(180)]


@contextmanager
def process(*words: str) -> Iterator["Popen[bytes]"]:
    """Have a process of `killable_processes.py` while inside."""
    started = Popen(
        [sys.executable, "-m", "tests.gateway.http.killable_processes", *words],
        cwd=ROOT,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=DEVNULL,
    )
    try:
        assert started.stdout is not None
        assert started.stdout.readline().decode().strip() == READY
        yield started
    finally:
        started.kill()
        started.communicate()


@dataclass
class FollowedAnswer:
    """What one message brought, and how often it was asked for again."""

    message_id: str
    events: list[RecordedRequests] = field(default_factory=list)
    resumed: int = 0

    def list_named(self, name: str) -> list[RecordedRequests]:
        return [event for event in self.events if event.name == name]

    async def follow(self, client: httpx.AsyncClient, path: str) -> None:
        """Send the message and follow its answer, also across a restart of the server."""
        while not self.list_named("done"):
            with suppress(httpx.TransportError):
                async with self._open(client, path) as answer:
                    async for event in read_events(answer):
                        self.events.append(event)
                continue
            self.resumed += 1
            await asyncio.sleep(AGAIN_SECONDS)  # noqa: TID251 - the client reconnects after this time

    def _open(self, client: httpx.AsyncClient, path: str) -> Any:
        if not self.events:
            sent = {"text": "How do I add a rule?", "message_id": self.message_id}
            return client.stream("POST", path, json=sent)
        last = {"Last-Event-ID": self.events[-1].id}
        return client.stream("GET", f"{path}/{self.message_id}/events", headers=last)


async def test_a_killed_server_loses_and_doubles_nothing(redis_url: str) -> None:
    redis, port = connect(redis_url), free_port()
    await redis.flushall()
    every = [FollowedAnswer(f"m{number}") for number in range(CONVERSATIONS)]

    def list_stages(one: FollowedAnswer) -> list[object]:
        return [event.data["stage"] for event in one.list_named("stage")]

    async with AsyncExitStack() as stack:
        headers, url = {"Accept": "text/event-stream"}, f"http://127.0.0.1:{port}"
        client = httpx.AsyncClient(base_url=url, headers=headers, timeout=None)
        await stack.enter_async_context(client)
        stack.enter_context(process("workers", redis_url))
        killed = stack.enter_context(process("server", redis_url, str(port)))
        async with within(), asyncio.TaskGroup() as tasks:
            for number, answer in enumerate(every):
                path = f"/v1/conversations/c{number}/messages"
                tasks.create_task(answer.follow(client, path))
            await wait_until(lambda: all("response" in list_stages(answer) for answer in every))
            killed.kill()
            killed.wait()
            await redis.set(GO, 1)
            server = process("server", redis_url, str(port))
            await asyncio.to_thread(stack.enter_context, server)

    broker = RedisBroker(redis)
    for answer in every:
        assert answer.resumed >= 1
        [done] = answer.list_named("done")
        assert (done.data["outcome"], done.data["text"]) == ("answered", "Open Routing [1].")
        assert text_of(answer.events) == done.data["text"]
        assert list_stages(answer) == list(dict.fromkeys(list_stages(answer)))
        [question] = await broker.admin.find_questions(answer.message_id)
        journal = await broker.replies.read_journal(question)
        assert [entry.kind for entry in journal].count("finished") == 1
    await broker.close()
