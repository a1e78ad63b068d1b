"""Runs a suspect in a process of its own, so that poison kills nobody else.

An entry whose worker died may have killed it, or only have been beside the one that did. Started
again, it runs in a child of this process: a child that dies convicts its own entry alone, neither
holds nor harms what runs here, and tells at once, without waiting for a lease. After three starts
in all the entry is buried. Children come from a fork server, which has no threads and no
connections that a fork would break; it starts with the first suspect, or before when `warm` is
called.
"""

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from multiprocessing import connection
from typing import Any, TypeVar

import structlog

from broker.errors import BrokerUnavailableError
from broker.journal_events import JournalEvent
from broker.settle.batch import STARTS
from broker.values import Bury, Death, Delivery, Forward, FrameSend, Settlement
from envelope.envelope import Envelope, decode
from envelope.memory_read import MemoryRead
from envelope.question import Question
from envelope.role import Role
from memory.errors import MemoryUnavailableError, QuestionEndedError
from worker.errors import HandlerTimeoutError, RunFailedError, SuspectFailedError
from worker.log_context import PRESENT
from worker.port import Handler, PrefetchesMemory

SUSPECT_STARTS = 2
"""An entry in this start or a later one may have killed the worker that had it before."""
CHILDREN = 8
"""Suspects that one process runs at once."""
RESERVE_SECONDS = 0.5
"""Left of a question's time when its child is ended."""

T = TypeVar("T")
MakeHandler = Callable[[str], AbstractAsyncContextManager[Handler]]
"""Makes the handler of a role inside the child; sent there, so a function of a module."""
Tell = Callable[[Delivery, str], FrameSend | None]

log = structlog.get_logger("worker")


@dataclass(frozen=True, slots=True)
class _Raised:
    """What a handler raised in the child."""

    told: str
    unavailable: bool = False
    journal: tuple[JournalEvent, ...] = ()


class Quarantine:
    """Starts children for suspects of `roles`; `tell` makes the frame that tells the manager."""

    def __init__(
        self,
        make: MakeHandler,
        roles: Collection[str],
        tell: Tell,
        *,
        preload: Collection[str] = (),
    ) -> None:
        self.roles = frozenset(roles)
        self._make = make
        self._tell = tell
        self._at_once = asyncio.Semaphore(CHILDREN)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__, *preload])
        # For each child one that waits for its answer, and one that may end it meanwhile: threads
        # that others share could all be waiting.
        self._threads = ThreadPoolExecutor(2 * CHILDREN, thread_name_prefix="quarantine")

    async def warm(self) -> None:
        """Start the fork server, so that the first suspect need not wait for it."""
        process: Any = self._context.Process(target=_nothing, name="quarantine", daemon=True)
        await asyncio.to_thread(process.start)
        await asyncio.to_thread(process.join)

    async def run(self, delivery: Delivery) -> Settlement:
        """Return the settlement of a suspect, which is buried when its last start kills too."""
        deaths, how = list(delivery.deaths), ""
        until = time.monotonic() + delivery.remaining_seconds
        async with self._at_once:
            for start in range(delivery.starts, STARTS + 1):
                # It may have waited for a place, or a child may have died of it meanwhile.
                left = until - time.monotonic()
                now = replace(delivery, remaining_seconds=left)
                child = _IsolatedProcess(self._context, self._threads, self._make, now)
                answer = await child.answer(left - RESERVE_SECONDS)
                if answer is not None:
                    return _settlement(answer)
                deaths.append(Death(delivery.consumer, child.ended_at))
                how = child.how
                log.warning(
                    "isolated_process_died", role=delivery.role, start=start, error=child.how
                )
        error = f"it killed its process in each of {STARTS} starts; the last: {how}"
        return Bury(
            "poison", error, poison_notice=self._tell(delivery, error), deaths=tuple(deaths)
        )


OnIsolatedRun = Callable[[str, Settlement], None]


def ignore_run(_role: str, _settlement: Settlement) -> None:
    """Count nothing."""


class IsolatedHandler:
    """A handler whose suspects run in quarantine, and everything else in this process.

    `on_isolated_run` receives the role and the settlement of each run in a child, whose own
    counters ended with it.
    """

    def __init__(
        self, handler: Handler, quarantine: Quarantine, on_isolated_run: OnIsolatedRun = ignore_run
    ) -> None:
        self.role: Role = handler.role
        self._handler = handler
        self._quarantine = quarantine
        self._on_isolated_run = on_isolated_run

    def prefetch_memory(self, question: Question) -> MemoryRead | None:
        """Return the read that the handler wants, if it wants one."""
        return (
            self._handler.prefetch_memory(question)
            if isinstance(self._handler, PrefetchesMemory)
            else None
        )

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        """Return the settlement of the run, here or in a child."""
        if delivery.starts < SUSPECT_STARTS:
            return await self._handler.handle(delivery, envelope)
        settlement = await self._quarantine.run(delivery)
        self._on_isolated_run(self.role.value, settlement)
        return settlement


class _IsolatedProcess:
    """One process for one start of one suspect."""

    def __init__(
        self, context: Any, threads: ThreadPoolExecutor, make: MakeHandler, delivery: Delivery
    ) -> None:
        self._threads = threads
        self.how = ""
        self.ended_at = 0.0
        self._ours, self._its = context.Pipe(duplex=False)
        self._lock = threading.Lock()
        self._over = False
        self._process = context.Process(
            target=_work, args=(make, delivery, self._its), name="quarantine", daemon=True
        )

    async def answer(self, seconds: float) -> Settlement | _Raised | None:
        """Return what the handler settled or raised; None when the process died of it."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._in_thread(self._start)
                return await self._in_thread(self._receive)
        except TimeoutError as error:
            raise HandlerTimeoutError("its process did not end in the question's time") from error
        finally:
            await self._in_thread(self._end)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _start(self) -> None:
        # The first start waits for the fork server; who gives up meanwhile must not leave a child.
        with self._lock:
            if not self._over:
                self._process.start()
                self._its.close()

    def _receive(self) -> Settlement | _Raised | None:
        try:
            found: Settlement | _Raised = self._ours.recv()
        except EOFError:
            self._process.join()
            self.ended_at = time.time()
            self.how = _describe_exit(self._process.exitcode)
            return None
        return found

    def _end(self) -> None:
        with self._lock:
            self._over = True
            if self._process.pid is not None:
                self._process.kill()
                self._process.join()
            self._its.close()
            self._ours.close()


def _settlement(answer: Settlement | _Raised) -> Settlement:
    if not isinstance(answer, _Raised):
        return answer
    if answer.unavailable:
        raise MemoryUnavailableError(answer.told)
    raise SuspectFailedError(answer.told, answer.journal)


def _describe_exit(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"it ended with exit code {exit_code}"
    return f"it ended by {signal.Signals(-exit_code).name}"


def _work(make: MakeHandler, delivery: Delivery, answer: "connection.Connection") -> None:
    """Run in the child: handle one delivery and send back what came of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    PRESENT.set(delivery)
    answer.send(asyncio.run(_handle(make, delivery)))


def _nothing() -> None:
    """End."""


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


async def _handle(make: MakeHandler, delivery: Delivery) -> Settlement | _Raised:
    try:
        async with make(delivery.role) as handler:
            return await handler.handle(delivery, decode(delivery.whole()))
    except QuestionEndedError:
        return Forward(sends=())
    except (BrokerUnavailableError, MemoryUnavailableError) as error:
        return _Raised(str(error), unavailable=True)
    except RunFailedError as error:
        return _Raised(str(error), journal=error.journal)
    except Exception as error:  # noqa: BLE001 - an agent may raise anything; its parent is told
        return _Raised(f"{type(error).__name__}: {error}")
