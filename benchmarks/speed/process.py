"""One process of a system; reads requests from standard input and answers on standard output.

`python -m benchmarks.speed.process SYSTEM SETTING` reads lines of JSON: `["alone", {...}]`,
`["crowd", {...}]` and `["window", {...}]` call the methods of `Questions`, whose results are the
responses. It prints `"ready"` first and ends when its standard input ends.
"""

import asyncio
import importlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, Any

from benchmarks.speed.payload import ROLES, payloads
from benchmarks.speed.systems.port import Ask, OpenSystem, Setting, Watch


@dataclass(frozen=True, slots=True)
class Alone:
    """Times of questions asked one after the other, in milliseconds."""

    answered_ms: list[float]
    picked_up_ms: list[float]


@dataclass(frozen=True, slots=True)
class Crowd:
    """How often a role had worked when the number of questions in flight was reached."""

    worked: int


@dataclass(frozen=True, slots=True)
class Many:
    """The work of one process during a time window, in seconds.

    `answered` counts questions in eighths, one for each role that worked. Questions that started
    together often end together, so whole questions would be counted in bursts. `waited_seconds` is
    the time in which the process was ready to run but had no processor.
    """

    answered: float
    seconds: float
    processor_seconds: float
    waited_seconds: float


@dataclass
class Questions:
    """Asks questions and records when the system starts and completes each."""

    prefix: str
    tasks: asyncio.TaskGroup
    ask: Ask | None = None
    _asked: dict[str, float] = field(default_factory=dict)
    _picked_up: list[float] = field(default_factory=list)
    _ended: dict[str, "asyncio.Future[None]"] = field(default_factory=dict)
    _numbers: "count[int]" = field(default_factory=count)
    _worked: int = 0
    _asking: bool = False
    _moves_at: int = 0
    _moves: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def watch(self) -> Watch:
        """The callbacks for the system."""
        return Watch(self._record_started, self._record_worked, self._record_finished)

    async def alone(self, questions: int, seconds: float) -> Alone:
        """Ask questions one after the other until `questions` were answered or `seconds` have
        passed.
        """
        until = time.perf_counter() + seconds
        answered: list[float] = []
        self._picked_up.clear()
        while len(answered) < questions and time.perf_counter() < until:
            began = time.perf_counter()
            await self._to_its_end()
            answered.append((time.perf_counter() - began) * 1000)
        return Alone(answered, [seconds * 1000 for seconds in self._picked_up])

    async def crowd(self, at_once: int, seconds: float) -> Crowd:
        """Start `at_once` questions, and keep that number in flight from now on.

        They are started a few at a time, so that connections are not all opened at once. Every
        question that ends starts the next one, in the process where it ended, so that the number in
        flight over all processes stays constant. Returns after `seconds`, when as many roles have
        worked here as there are questions, or at the latest after `LONGEST_SECONDS`.
        """
        worked, self._asking = self._worked, True
        self._moves_at = worked + at_once
        for number in range(at_once):
            self._next()
            if number % TOGETHER == 0:
                await asyncio.sleep(BETWEEN_SECONDS)
        await asyncio.sleep(seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_SECONDS):
                await self._moves.wait()
        return Crowd(self._worked - worked)

    async def window(self, seconds: float) -> Many:
        """Count the work done by this process during `seconds`."""
        worked, began, used = self._worked, time.perf_counter(), time.process_time()
        waited = _read_waited_seconds()
        await asyncio.sleep(seconds)
        return Many(
            (self._worked - worked) / len(ROLES),
            time.perf_counter() - began,
            time.process_time() - used,
            _read_waited_seconds() - waited,
        )

    async def _to_its_end(self) -> None:
        name = self._name()
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended[name] = ended
        self._asked[name] = time.perf_counter()
        await self._ask_one(name)
        await ended

    def _next(self) -> None:
        if self._asking:
            self.tasks.create_task(self._ask_one(self._name()))

    async def _ask_one(self, name: str) -> None:
        if self.ask is None:
            raise RuntimeError("expected an open system")
        await self.ask(name)

    def _name(self) -> str:
        return f"{self.prefix}{next(self._numbers)}"

    def _record_started(self, name: str) -> None:
        asked = self._asked.pop(name, None)
        if asked is not None:
            self._picked_up.append(time.perf_counter() - asked)

    def _record_worked(self) -> None:
        self._worked += 1
        if self._worked == self._moves_at:
            self._moves.set()

    def _record_finished(self, name: str) -> None:
        ended = self._ended.pop(name, None)
        if ended is not None:
            ended.set_result(None)
            return
        self._next()


MEASUREMENTS: dict[str, Callable[..., Awaitable[Any]]] = {
    "alone": Questions.alone,
    "crowd": Questions.crowd,
    "window": Questions.window,
}


def find_system(module: str) -> OpenSystem:
    """Return the system in a module of `speed.systems`; raises `ImportError` if it cannot be
    imported.
    """
    name, _, function = module.partition(":")
    imported = importlib.import_module(f"benchmarks.speed.systems.{name}")
    opened: OpenSystem = getattr(imported, function or "harness")
    return opened


async def serve(module: str, settings: dict[str, Any], figures: IO[str]) -> None:
    """Open the system and run the requested measurement."""
    setting = Setting(**{**settings, "payload": payloads()[settings["payload"]]})
    lines = await _standard_input()
    async with asyncio.TaskGroup() as tasks:
        questions = Questions(f"p{os.getpid()}-", tasks)
        harness = find_system(module)(setting, questions.watch)
        questions.ask = await AsyncExitStack().enter_async_context(harness)
        print(json.dumps("ready"), file=figures)
        while line := await lines.readline():
            name, arguments = json.loads(line)
            measured = await MEASUREMENTS[name](questions, **arguments)
            print(json.dumps(asdict(measured)), file=figures)
        # What is in flight goes down with its Redis.
        os._exit(0)


async def _standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _own_output() -> IO[str]:
    """Reserve standard output for figures; redirect all other output to standard error."""
    figures = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return figures


LONGEST_SECONDS = 6.0
TOGETHER = 10
BETWEEN_SECONDS = 0.01
SCHEDULED = Path("/proc/self/schedstat")
"""The Linux file with the nanoseconds run, the nanoseconds waited, and the number of times run."""


def _read_waited_seconds() -> float:
    """Return how long the main thread has waited for a processor; 0 if unknown."""
    try:
        return int(SCHEDULED.read_text("ascii").split()[1]) / 1e9
    except FileNotFoundError:
        return 0.0


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], json.loads(sys.argv[2]), _own_output()))
