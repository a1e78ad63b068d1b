"""A server that is killed among its conversations loses none of them, and doubles none."""

import asyncio
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

import pytest

from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from tests.gateway.http.killable_processes import GO, READY
from tests.gateway.http.resuming_client import ResumedAnswer, ResumingClient
from tests.support.waiting import wait_until

ROOT = Path(__file__).parent.parent.parent.parent
CONVERSATIONS = 20

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(180)]


@contextmanager
def process(*words: str) -> Iterator["Popen[bytes]"]:
    """Have a process of `mortal.py` while inside."""
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


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


async def test_a_killed_server_loses_and_doubles_nothing(redis_url: str) -> None:
    redis, port = connect(redis_url), free_port()
    await redis.flushall()
    client = ResumingClient(port, patience_seconds=90)
    every = [ResumedAnswer(f"m{number}") for number in range(CONVERSATIONS)]

    async def all_wait_for_their_answer() -> bool:
        return all("response" in conversation.stages for conversation in every)

    with ExitStack() as processes:
        processes.enter_context(process("workers", redis_url))
        server = process("server", redis_url, str(port))
        killed = processes.enter_context(server)
        async with asyncio.TaskGroup() as tasks:
            for number, conversation in enumerate(every):
                tasks.create_task(
                    client.ask(
                        f"c{number}", conversation.message_id, "How do I add a rule?", conversation
                    )
                )
            await wait_until(all_wait_for_their_answer)
            killed.kill()
            killed.wait()
            await redis.set(GO, 1)
            server = process("server", redis_url, str(port))
            await asyncio.to_thread(processes.enter_context, server)

    broker = RedisBroker(redis)
    for conversation in every:
        assert conversation.errors == []
        assert conversation.resumed >= 1
        [done] = conversation.done
        assert (done["outcome"], done["text"]) == ("answered", "Open Routing [1].")
        assert conversation.text == done["text"]
        assert conversation.stages == list(dict.fromkeys(conversation.stages))
        [question] = await broker.admin.find_questions(conversation.message_id)
        ends = [
            entry
            for entry in await broker.replies.read_journal(question)
            if entry.kind == "finished"
        ]
        assert len(ends) == 1
    await broker.close()
