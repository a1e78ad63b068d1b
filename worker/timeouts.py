"""Limits how long a coroutine may take, without cost for a coroutine that never waits.

A timer is set only when the coroutine waits for the first time: until then nothing could interrupt
it.
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


async def run_with_timeout(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Return what `work` returns; raises `TimeoutError` when it waits longer than `seconds`."""
    try:
        waits_for = work.send(None)
    except StopIteration as ended:
        at_once: T = ended.value
        return at_once
    async with asyncio.timeout(seconds):
        in_time: T = await _Begun(work, waits_for)
        return in_time


class _Begun:
    """A coroutine that was started in this task, and now waits."""

    def __init__(self, work: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self._work = work
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, Any]:
        """Resume the coroutine with each result or exception of the futures that it waits for."""
        waits_for = self._waits_for
        while True:
            try:
                came = yield waits_for
            except BaseException as error:  # noqa: BLE001 - whatever is thrown in belongs to the coroutine
                waits_for, ended = _step(self._work.throw, error)
            else:
                waits_for, ended = _step(self._work.send, came)
            if ended is not None:
                return ended.value


def _step(step: Any, value: Any) -> tuple[Any, StopIteration | None]:
    try:
        return step(value), None
    except StopIteration as ended:
        return None, ended
