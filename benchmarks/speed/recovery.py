"""Measures how long it takes until the work of a killed worker is taken over, in lease times.

`python -m benchmarks.speed.recovery MODULE LEASE SECONDS LANES` prints one line of JSON. In every
lane, on a separate Redis, two workers wait. A question is submitted, the worker that holds it in
the first role gets `SIGKILL`, another one starts in its place, and the lane records the time until
the role starts again anywhere. Workers are forked, so that starting one costs little.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Coroutine, Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from benchmarks.speed.payload import payloads
from benchmarks.speed.process import find_system
from benchmarks.speed.redis_server import Server, private_server
from benchmarks.speed.systems.port import OpenSystem, Setting, Watch

WORKERS = 2
LOOK_SECONDS = 0.002
OPENING_SECONDS = 1.5
LONGEST_LEASES = 6.0
PAYLOAD = "4 kB"


@dataclass
class Lane:
    """Repeatedly kills a worker on one Redis."""

    harness: OpenSystem
    server: Server
    lease_seconds: float
    workers: set[int] = field(default_factory=set)
    leases: list[float] = field(default_factory=list)
    missed: int = 0

    @property
    def ledger(self) -> Path:
        """One line for every start of the first role: name, process, time."""
        return self.server.folder / "ledger"

    def kills(self, until: float) -> Generator[None]:
        """Kill workers until that time; yields whenever there is nothing to do."""
        self.ledger.touch()
        asking, asked = os.pipe()
        client = self._fork(self._ask(asking))
        try:
            for _ in range(WORKERS):
                self.workers.add(self._fork(self._work()))
            yield from self._pause(OPENING_SECONDS)
            number = 0
            while time.monotonic() < until and not self.missed:
                number += 1
                yield from self._one(f"held-{number}", asked)
        finally:
            for process in {client, *self.workers}:
                _kill(process)

    def _one(self, name: str, asked: int) -> Iterator[None]:
        os.write(asked, f"{name}\n".encode())
        holder = yield from self._start_worker(name, 1)
        if holder is None:
            self.missed += 1
            return
        # At any phase of what the others do on timers.
        yield from self._pause(random.uniform(0, self.lease_seconds / 2))
        killed = time.monotonic()
        _kill(holder[0])
        self.workers.remove(holder[0])
        self.workers.add(self._fork(self._work()))
        again = yield from self._start_worker(name, 2)
        if again is None:
            self.missed += 1
        else:
            self.leases.append((again[1] - killed) / self.lease_seconds)
            yield from self._pause(self.lease_seconds / 4)

    def _start_worker(
        self, name: str, times: int
    ) -> Generator[None, None, tuple[int, float] | None]:
        until = time.monotonic() + LONGEST_LEASES * self.lease_seconds
        while time.monotonic() < until:
            starts = self._starts(name)
            if len(starts) >= times:
                return starts[times - 1]
            yield
        return None

    def _starts(self, name: str) -> list[tuple[int, float]]:
        lines = (line.split() for line in self.ledger.read_text("ascii").splitlines())
        return [(int(process), float(at)) for named, process, at in lines if named == name]

    def _pause(self, seconds: float) -> Iterator[None]:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            yield

    def _setting(self, *, works: bool) -> Setting:
        return Setting(
            self.server.url, self.server.url, payloads()[PAYLOAD], str(self.server.folder),
            self.lease_seconds, works,
        )  # fmt: skip

    async def _work(self) -> None:
        async with self.harness(self._setting(works=True), self._watch()):
            await asyncio.Event().wait()

    async def _ask(self, asking: int) -> None:
        loop = asyncio.get_running_loop()
        names = asyncio.StreamReader()
        pipe = os.fdopen(asking)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(names), pipe)
        async with (
            self.harness(self._setting(works=False), self._watch()) as ask,
            asyncio.TaskGroup() as tasks,
        ):
            while name := (await names.readline()).decode().strip():
                tasks.create_task(ask(name))  # type: ignore[arg-type] # systems ask with coroutines

    def _watch(self) -> Watch:
        async def wait_until_held(name: str) -> None:
            with self.ledger.open("a") as ledger:
                ledger.write(f"{name} {os.getpid()} {time.monotonic()}\n")
            if len(self._starts(name)) == 1:
                await asyncio.Event().wait()

        return Watch(lambda _name: None, lambda: None, lambda _name: None, wait_until_held)

    def _fork(self, life: Coroutine[object, object, None]) -> int:
        process = os.fork()
        if process:
            life.close()
            return process
        # Whoever reads our parent's output does not wait for us.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            asyncio.run(life)
        finally:
            os._exit(1)


def _kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def main(module: str, lease_seconds: float, seconds: float, lanes: int) -> int:
    """Run the lanes in parallel and print the results."""
    harness = find_system(module)
    until = time.monotonic() + seconds
    with ExitStack() as stack:
        servers = [stack.enter_context(private_server()) for _ in range(lanes)]
        running = [Lane(harness, server, lease_seconds) for server in servers]
        kills = [stack.enter_context(closing(lane.kills(until))) for lane in running]
        for _ in zip_longest(*kills):
            time.sleep(LOOK_SECONDS)
    print(
        json.dumps(
            {
                "leases": [lease for lane in running for lease in lane.leases],
                "missed": sum(lane.missed for lane in running),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
