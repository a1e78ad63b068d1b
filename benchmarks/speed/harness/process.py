"""One process of a system; reads requests from standard input, answers on standard output.

`python -m benchmarks.speed.harness.process SYSTEM SETTING` reads lines of JSON: `["alone", {...}]`,
`["crowd", {...}]` and `["window", {...}]` name the methods of `Questions` in
`benchmarks.speed.harness.measurement`; the figures answer each. It prints `"ready"` first, and ends
with its standard input, whatever it is doing.
"""

import asyncio
import importlib
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import IO, Any

from benchmarks.speed.harness.measurement import Questions
from benchmarks.speed.payload import payloads
from benchmarks.speed.systems.port import Setting, SystemProcess

MEASUREMENTS: dict[str, Callable[..., Awaitable[Any]]] = {
    "alone": Questions.alone,
    "crowd": Questions.crowd,
    "window": Questions.window,
}


def find_system(module: str) -> SystemProcess:
    """Return the system of a module of `speed.systems`; raises `ImportError` without it."""
    found: SystemProcess = importlib.import_module(f"benchmarks.speed.systems.{module}").harness
    return found


async def serve(module: str, settings: dict[str, Any], figures: IO[str]) -> None:
    """Open the system and do what is asked for."""
    setting = Setting(**{**settings, "payload": payloads()[settings["payload"]]})
    lines = await _standard_input()
    async with asyncio.TaskGroup() as tasks:
        questions = Questions(f"p{os.getpid()}-", tasks)
        harness = find_system(module)(setting, questions.watch)
        questions.ask = await AsyncExitStack().enter_async_context(harness)
        print(json.dumps("ready"), file=figures)
        while line := await lines.readline():
            name, arguments = json.loads(line)
            found = await MEASUREMENTS[name](questions, **arguments)
            print(json.dumps(asdict(found)), file=figures)
        # What is in flight goes down with its Redis.
        os._exit(0)


async def _standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _own_output() -> IO[str]:
    """Keep standard output for figures; whatever else is printed goes to standard error."""
    figures = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return figures


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], json.loads(sys.argv[2]), _own_output()))
