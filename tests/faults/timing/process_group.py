"""Several processes of the system, and what a test asks of them and does to them."""

import asyncio
import json
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from broker.keys import question_keys
from broker.transport.connect import connect
from broker.values import Accepted, JournalEntry, Submission
from envelope.envelope import Envelope
from envelope.question import Question
from tests.faults.timing import scripted_process
from tests.support.broker_harness import LAST_RESORT
from tests.support.waiting import wait_until

PATIENCE_SECONDS = 30


class ProcessGroup:
    """Processes on one Redis; whoever dies is replaced only on request."""

    def __init__(self, url: str, lease_seconds: float) -> None:
        self.client: Any = connect(url)
        self.broker = scripted_process.broker_of(url, lease_seconds)
        self.lease_seconds = lease_seconds
        self.members: dict[int, Any] = {}
        self._url = url
        self._names = count(1)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.faults.timing.scripted_process"])

    async def hire(self, kind: str = "worker") -> int:
        """Start a process and return its id, once it works."""
        process = self._context.Process(
            target=scripted_process.main, args=(self._url, self.lease_seconds, kind), name=kind
        )
        await asyncio.to_thread(process.start)
        assert process.pid is not None
        self.members[process.pid] = process
        assert await self._pop(scripted_process.READY), "a process did not start"
        return int(process.pid)

    async def kill(self, pid: int) -> None:
        """Kill a process for good."""
        process = self.members.pop(pid)
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(process.join)

    async def replace_the_dead(self) -> int:
        """Start a process for each that died; return their number."""
        dead = [pid for pid, process in self.members.items() if not process.is_alive()]
        for pid in dead:
            del self.members[pid]
            await self.hire()
        return len(dead)

    async def ask(
        self, text: str, *, deadline_seconds: float = 60.0, conversation: str = ""
    ) -> Question:
        """Submit a question whose text instructs the handler."""
        name = f"m{next(self._names)}"
        envelope = Envelope(
            tenant="acme",
            assistant="desk",
            channel="test",
            conversation_id=conversation or name,
            message_id=name,
            create_ts=1.0,
            update_ts=1.0,
            deadline_ts=61.0,
            payload={"text": text},
        )
        asked = envelope.question
        accepted = await self.broker.producer.submit(
            Submission(
                asked,
                envelope.encode(),
                scripted_process.ROLE.value,
                deadline_seconds,
                LAST_RESORT,
                "chat",
            )
        )
        assert isinstance(accepted, Accepted)
        return asked

    async def start(self) -> dict[str, Any]:
        """Return the next start of a handler: message, process and time."""
        found = await self._pop(scripted_process.STARTED)
        assert found, "no handler was started"
        started: dict[str, Any] = json.loads(found)
        return started

    async def _pop(self, name: str) -> bytes | None:
        """Return the next of a list; a long wait looks like a dead server."""
        for _ in range(PATIENCE_SECONDS):
            found = await self.client.blpop(name, timeout=1)
            if found:
                return bytes(found[1])
        return None

    async def end(
        self, asked: Question, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> JournalEntry:
        """Return how a question ended, once it did; it ends once."""

        async def list_finished() -> list[JournalEntry]:
            journal = await self.broker.replies.read_journal(asked)
            return [entry for entry in journal if entry.kind == "finished"]

        (ended,) = await wait_until(list_finished, patience_seconds=patience_seconds)
        assert isinstance(ended, JournalEntry)
        return ended

    async def lateness(self, asked: Question) -> float:
        """Return how many seconds after its deadline a question ended, by the clock of Redis."""
        deadline_ms = await self.client.hget(question_keys(asked, 0).record, "d")
        return (await self.end(asked)).at - int(deadline_ms) / 1000


@asynccontextmanager
async def fleet(url: str, lease_seconds: float, *kinds: str) -> AsyncIterator[ProcessGroup]:
    """Have processes of these kinds on an emptied Redis while inside."""
    made = ProcessGroup(url, lease_seconds)
    await made.client.flushall()
    await made.broker.prepare([scripted_process.ROLE.value])
    try:
        for kind in kinds:
            await made.hire(kind)
        yield made
    finally:
        for pid in list(made.members):
            await made.kill(pid)
        await made.broker.close()
        await made.client.aclose()
