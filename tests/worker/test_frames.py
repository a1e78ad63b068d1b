"""How many functions of the project a settlement passes from its run to the bytes for Redis."""

import asyncio
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from broker.transport.connect import connect
from gateway.desk import Message
from tests.support.worker_harness import WorkerHarness

MOST_FRAMES = 10
QUESTIONS = 40
ROOT = str(Path(__file__).parents[2])
RUN = "worker/executor.py:_run"
"""Runs an agent, and submits its settlement."""
SUBMIT = "broker/settle/pipeline.py:submit"
SEND = "broker/settle/pipeline.py:_send"
"""Sends a batch: in the task that submitted it, or in a separate task."""

Stack = tuple[str, ...]


@contextmanager
def record_sends(found: Counter[Stack]) -> Iterator[None]:
    """While inside, count by stack how often a settlement's bytes are given to a socket."""

    def record(frame: FrameType, event: str, what: Any) -> None:
        if (
            event == "c_call"
            and what.__name__ == "send"
            and isinstance(getattr(what, "__self__", None), socket.socket)
        ):
            stack = project_frames(frame)
            # A connection that is made first greets the server on its own.
            if SEND in stack and not any(":connect" in name for name in stack):
                found[stack] += 1

    sys.setprofile(record)
    try:
        yield
    finally:
        sys.setprofile(None)


def project_frames(frame: FrameType | None) -> Stack:
    """Return the functions of the product on the stack, the outermost first."""
    stack: list[str] = []
    while frame is not None:
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        inner = path.removeprefix(f"{ROOT}/")
        if inner != path and not inner.startswith((".venv", "tests")):
            stack.append(f"{inner}:{name}")
        frame = frame.f_back
    return tuple(reversed(stack))


def path_length(stack: Stack) -> int:
    """Return how many functions a settlement passed: one that waited passed three until then."""
    if RUN in stack:
        return len(stack) - stack.index(RUN)
    assert stack[0] == SEND
    return len((RUN, "worker/worker.py:_work", SUBMIT)) + len(stack)


@pytest.mark.redis
@pytest.mark.parametrize("questions", [1, QUESTIONS])
async def test_a_settlement_passes_few_functions_from_its_run_to_the_socket(
    redis_url: str, questions: int
) -> None:
    harness = WorkerHarness(lambda: connect(redis_url), played=False)
    await harness.client.flushall()
    sends: Counter[Stack] = Counter()

    async with harness.open() as desk:
        with record_sends(sends):
            asked = [desk.ask(Message("How?", f"c{n}", f"m{n}")) for n in range(questions)]
            await asyncio.gather(*asked)
    await harness.close()

    waited = any(stack[0] == SEND for stack in sends)
    assert waited or questions == 1
    assert max(path_length(stack) for stack in sends) <= MOST_FRAMES, sends
