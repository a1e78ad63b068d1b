"""Names every place where worker and manager wait, and dies or stops there when a plan says so.

No line of production code knows of this. A task factory drives each task of the process by hand;
whenever a task really waits, the chain of what it awaits shows which line of `worker/` or
`manager/` that is. A label is `file:function:line`, and `goes` when the task begins to wait there
or `returns` when it is about to go on.
"""

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType
from types import coroutine as generator_coroutine
from typing import Any, Literal

ROOT = Path(__file__).parent.parent.parent
INNER = tuple(f"{ROOT / package}{os.sep}" for package in ("worker", "manager"))
OUTER = (f"{ROOT / 'broker' / 'lease_renewer.py'}",)
"""A task of the renewal thread has no frame of the worker: it is named after its own file."""

Phase = Literal["goes", "returns"]
Watch = Callable[[Sequence[str], Phase], None]
"""Receives the labels of a chain, the innermost last, and whether its task goes or returns."""
Awaited = object


@dataclass(frozen=True, slots=True)
class Plan:
    """Die (`kill`) or stop (`stop`) at the `passing`-th time that the process passes a label."""

    label: str
    phase: Phase
    passing: int = 1
    do: Literal["kill", "stop"] = "kill"


def carry_out(plan: Plan) -> Watch:
    """Return a watch that carries out the plan, in whichever thread the label is passed."""
    passings = count(1)
    ends = signal.SIGKILL if plan.do == "kill" else signal.SIGSTOP

    def watch(labels: Sequence[str], phase: Phase) -> None:
        here = labels[-1] == plan.label and phase == plan.phase
        if here and next(passings) == plan.passing:
            os.kill(os.getpid(), ends)

    return watch


class WatchedPolicy(asyncio.DefaultEventLoopPolicy):
    """Every loop of the process, that of the renewal thread too, drives its tasks by hand."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        loop = super().new_event_loop()
        loop.set_task_factory(self._task)
        return loop

    def _task(
        self, loop: asyncio.AbstractEventLoop, awaited: Any, **options: Any
    ) -> "asyncio.Task[Any]":
        return asyncio.Task(_driven(awaited, self._watch), loop=loop, **options)


def labels_of(awaited: Awaited) -> list[str]:
    """Return the lines of worker and manager in a chain of awaits, the innermost last."""
    frames = list(_frames(awaited))
    results = [frame for frame in frames if frame.f_code.co_filename.startswith(INNER)]
    return [_label(frame) for frame in results or frames if _is_ours(frame)]


def _is_ours(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith(INNER) or name in OUTER


def _label(frame: FrameType) -> str:
    place = os.path.relpath(frame.f_code.co_filename, ROOT)
    return f"{place}:{frame.f_code.co_name}:{frame.f_lineno}"


async def _driven(awaited: Coroutine[Any, Any, Any], watch: Watch) -> Any:
    return await _steps(awaited, watch)


@generator_coroutine
def _steps(awaited: Coroutine[Any, Any, Any], watch: Watch) -> Generator[Any, Any, Any]:
    """Do what `await` does, and look on at every step."""
    step: Callable[[], Any] = lambda: awaited.send(None)  # noqa: E731 - replaced at each step
    while True:
        try:
            waits_for = step()
        except StopIteration as stop:
            return stop.value
        labels = labels_of(awaited)
        if labels:
            watch(labels, "goes")
        try:
            sent = yield waits_for
        except GeneratorExit:
            awaited.close()
            raise
        except BaseException as error:  # noqa: BLE001 - a cancellation is handed on like the rest
            step = _throwing(awaited, error)
        else:
            step = _sending(awaited, sent)
        if labels:
            watch(labels, "returns")


def _sending(awaited: Coroutine[Any, Any, Any], sent: object) -> Callable[[], Any]:
    return lambda: awaited.send(sent)


def _throwing(awaited: Coroutine[Any, Any, Any], error: BaseException) -> Callable[[], Any]:
    return lambda: awaited.throw(error)


def _frames(awaited: Awaited) -> Iterator[FrameType]:
    while awaited is not None:
        frame: FrameType | None
        if isinstance(awaited, CoroutineType):
            frame, awaited = awaited.cr_frame, awaited.cr_await
        elif isinstance(awaited, AsyncGeneratorType):
            frame, awaited = awaited.ag_frame, awaited.ag_await
        elif isinstance(awaited, GeneratorType):
            frame, awaited = awaited.gi_frame, awaited.gi_yieldfrom
        else:
            frame, awaited = None, _inside(awaited)
        if frame is not None:
            yield frame


def _inside(awaited: Awaited) -> Awaited:
    """Look through the interpreter's own wrappers, such as one step of an async generator."""
    if not type(awaited).__name__.startswith(("async_generator_", "coroutine_wrapper", "anext_")):
        return None
    kinds = (CoroutineType, AsyncGeneratorType, GeneratorType)
    return next((each for each in gc.get_referents(awaited) if isinstance(each, kinds)), None)
