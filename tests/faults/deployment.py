"""The setting of a fault run: a separate Redis, a server that forks workers, a client, a ledger."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from broker.transport.connect import connect
from tests.faults.desk_client import DeskClient, front_of
from tests.faults.labels import ROOT
from tests.faults.ledger import Ledger, Noted, read_notes
from tests.faults.servers import Server
from tests.faults.worker_main import ALL_ROLES, WorkerSettings, broker_of
from tests.support.waiting import wait_until

LINE_BYTES = 2**20
PATIENCE_SECONDS = 50.0


class Workers:
    """Worker processes of a fork server, whose events keep `died` and `stopped` current."""

    def __init__(self, settings: WorkerSettings, process: "asyncio.subprocess.Process") -> None:
        self.settings = settings
        self.alive: dict[int, WorkerSettings] = {}
        self.stopped: set[int] = set()
        self.died: dict[int, int] = {}
        self.changed = asyncio.Condition()
        self._process = process
        self._births: asyncio.Queue[int] = asyncio.Queue()
        self._hiring = asyncio.Lock()

    async def hire(self, **changes: Any) -> int:
        """Fork one more worker, and return its process id."""
        settings = replace(self.settings, **changes)
        async with self._hiring:
            assert self._process.stdin is not None
            self._process.stdin.write(to_json(settings) + b"\n")
            pid = await self._births.get()
        if pid not in self.died:
            self.alive[pid] = settings
        return pid

    def front(self, chance: random.Random) -> Path | None:
        """Return the client of one of them, or None as often."""
        pids = [*self.alive, *(None for _ in self.alive)]
        pid = chance.choice(pids) if pids else None
        return None if pid is None else front_of(self.settings.ledger, pid)

    def kill(self, pid: int) -> bool:
        """SIGKILL a worker; False when it was dead already."""
        return self._send(pid, signal.SIGKILL)

    def stop(self, pid: int) -> bool:
        """SIGSTOP a worker."""
        return self._send(pid, signal.SIGSTOP)

    def go_on(self, pid: int) -> bool:
        """SIGCONT a worker."""
        self.stopped.discard(pid)
        return self._send(pid, signal.SIGCONT)

    def end(self, pid: int) -> bool:
        """SIGTERM a worker."""
        return self._send(pid, signal.SIGTERM)

    async def until(
        self, true: Callable[[], bool], *, seconds: float | None = PATIENCE_SECONDS
    ) -> None:
        """Wait until a worker was born, died or stopped so that it is true."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(true)

    async def dismiss(self) -> None:
        """Kill whoever lives; returns when nobody does."""
        for pid in list(self.alive):
            self.kill(pid)
        await self.until(lambda: not self.alive)

    async def listen(self) -> None:
        """Read the events of the fork server, until it ends."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            what, pid, *more = from_json(line)
            async with self.changed:
                self._note(what, pid, more)
                self.changed.notify_all()

    def _note(self, what: str, pid: int, more: list[int]) -> None:
        match what:
            case "born":
                self._births.put_nowait(pid)
            case "stopped":
                self.stopped.add(pid)
            case _:
                self.died[pid] = more[0]
                self.stopped.discard(pid)
                self.alive.pop(pid, None)

    def _send(self, pid: int, number: signal.Signals) -> bool:
        if pid not in self.alive:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            # It died, and the event of the fork server has not arrived.
            return False
        return True


class Deployment:
    """Everything of one run."""

    def __init__(self, folder: Path, server: Server, workers: Workers, ledger: Ledger) -> None:
        self.folder = folder
        self.server = server
        self.workers = workers
        self.ledger = ledger
        self.client = connect(server.url)
        self.broker = broker_of(workers.settings)

    async def wait_for_note(self, kind: str, *, after: int = 0, **fields: object) -> Noted:
        """Return the first line with these fields, once it stands behind byte `after`."""

        def find_note() -> Noted | None:
            for line in read_notes(self.ledger.path, after=after):
                known = {"pid": line.pid, **line.fields}
                if line.kind == kind and fields.items() <= known.items():
                    return line
            return None

        found: Noted = await wait_until(find_note, patience_seconds=PATIENCE_SECONDS)
        return found

    def make_client(self, *, fronts: bool = False, **options: Any) -> DeskClient:
        """Return a client; `deadline_seconds`, `not_before_seconds`, `result_list`.

        With `fronts` about half of what it lets in is let in by a worker's process.
        """
        if fronts:
            options["front"] = partial(self.workers.front, random.Random(1))
        return DeskClient(self.server.url, self.ledger, **options)


@asynccontextmanager
async def open_deployment(
    folder: Path, *, durable: bool = False, lease_seconds: float = 1.5
) -> AsyncIterator[Deployment]:
    """Open an app without workers, and leave nothing of it running."""
    server = Server(folder, durable=durable)
    await asyncio.to_thread(server.start)
    ledger = Ledger(folder / "ledger")
    settings = WorkerSettings(url=server.url, ledger=str(ledger.path), lease_seconds=lease_seconds)
    try:
        async with _nursery(folder) as process, asyncio.TaskGroup() as tasks:
            harness = Deployment(folder, server, Workers(settings, process), ledger)
            listening = tasks.create_task(harness.workers.listen())
            await harness.broker.prepare([role.value for role in ALL_ROLES])
            try:
                yield harness
            finally:
                await harness.broker.close()
                await harness.client.aclose()
                await harness.workers.dismiss()
                listening.cancel()
    finally:
        await asyncio.to_thread(server.kill)
        ledger.close()


@asynccontextmanager
async def _nursery(folder: Path) -> "AsyncIterator[asyncio.subprocess.Process]":
    with (folder / "workers.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.faults.fork_server",
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            limit=LINE_BYTES,
        )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
