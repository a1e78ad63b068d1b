"""Runs suspect entries in child processes, so that a poison message cannot kill other runs.

If a worker dies, one of its entries may have killed it; the others were only running at the time.
Each of them is restarted in a child process. If the child dies, only its entry is affected, and the
death is noticed immediately instead of when the lease expires. After three starts in total, the
entry is buried. Children are created by a fork server, which has no threads or connections that a
fork would break. The fork server starts with the first suspect, or earlier with `warm`.
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
from broker.maintenance.loop import MakeNotice
from broker.settlement import STARTS
from broker.values import Bury, Death, Delivery, Forward, Settlement
from envelope.envelope import Envelope
from envelope.memory_access import MemoryRead
from envelope.question import Question
from envelope.role import Role
from memory.errors import MemoryUnavailableError, QuestionEndedError
from worker.agent_handler import open_envelope
from worker.errors import HandlerTimeoutError, RunFailedError, SuspectFailedError
from worker.log_context import PRESENT
from worker.port import Handler, PrefetchesMemory

SUSPECT_STARTS = 2
"""From this start on, the entry is suspected of having killed its previous worker."""
CHILDREN = 8
"""Maximum number of concurrent child processes."""
RESERVE_SECONDS = 0.5
"""How long before the deadline of its question a child is killed."""

T = TypeVar("T")
MakeHandler = Callable[[str], AbstractAsyncContextManager[Handler]]
"""Creates the handler of a role in the child process; must be picklable."""

log = structlog.get_logger("worker")
OnIsolatedRun = Callable[[str, Settlement], None]


class Quarantine:
    """Runs suspect entries of `roles` in child processes.

    `make` creates the handler in the child, and `make_notice` the frame that tells the manager
    about a buried entry. The fork server imports the modules in `preload`.
    """

    def __init__(
        self,
        make: MakeHandler,
        roles: Collection[str],
        make_notice: MakeNotice,
        *,
        preload: Collection[str] = (),
    ) -> None:
        self.roles = frozenset(roles)
        self._make = make
        self._make_notice = make_notice
        self._at_once = asyncio.Semaphore(CHILDREN)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__, *preload])
        # Two threads per child: one waits for its result, and one may kill it meanwhile. In a
        # shared pool, all threads could be waiting.
        self._threads = ThreadPoolExecutor(2 * CHILDREN, thread_name_prefix="quarantine")

    async def warm(self) -> None:
        """Start the fork server, so that the first suspect does not wait for it."""
        process: Any = self._context.Process(target=_do_nothing, name="quarantine", daemon=True)
        await asyncio.to_thread(process.start)
        await asyncio.to_thread(process.join)

    async def run(self, delivery: Delivery) -> Settlement:
        """Return the settlement of an entry, which is a burial if its last permitted start also
        kills the child.
        """
        deaths, how = list(delivery.deaths), ""
        until = time.monotonic() + delivery.remaining_seconds
        async with self._at_once:
            for start in range(delivery.starts, STARTS + 1):
                # Waiting for the semaphore and earlier children took time.
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
        error = f"the process terminated in each of {STARTS} starts; the last time, {how}"
        return Bury(
            "poison", error, poison_notice=self._make_notice(delivery, error), deaths=tuple(deaths)
        )


@dataclass(frozen=True, slots=True)
class _Raised:
    """The error that a handler raised in the child."""

    description: str
    unavailable: bool = False
    journal: tuple[JournalEvent, ...] = ()


class _IsolatedProcess:
    """The child process for one start of an entry."""

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
        """Return the settlement or the error of the handler, or None if the process died."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._in_thread(self._start)
                return await self._in_thread(self._receive)
        except TimeoutError as error:
            raise HandlerTimeoutError("the process did not finish before the deadline") from error
        finally:
            await self._in_thread(self._end)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _start(self) -> None:
        # The first start waits for the fork server; a timeout meanwhile must not leave a child.
        with self._lock:
            if not self._over:
                self._process.start()
                self._its.close()

    def _receive(self) -> Settlement | _Raised | None:
        try:
            result: Settlement | _Raised = self._ours.recv()
        except EOFError:
            self._process.join()
            self.ended_at = time.time()
            self.how = _describe_exit(self._process.exitcode)
            return None
        return result

    def _end(self) -> None:
        with self._lock:
            self._over = True
            if self._process.pid is not None:
                self._process.kill()
                self._process.join()
            self._its.close()
            self._ours.close()


def ignore_run(_role: str, _settlement: Settlement) -> None:
    """Ignore the run."""


class IsolatedHandler:
    """Runs suspect entries in quarantine, and all other entries in this process.

    `on_isolated_run` is called with the role and the settlement of each run in a child process,
    because the child's own metrics are lost.
    """

    def __init__(
        self, handler: Handler, quarantine: Quarantine, on_isolated_run: OnIsolatedRun = ignore_run
    ) -> None:
        self.role: Role = handler.role
        self._handler = handler
        self._quarantine = quarantine
        self._on_isolated_run = on_isolated_run

    def prefetch_memory(self, question: Question) -> MemoryRead | None:
        """Return the memory that the handler prefetches, or None."""
        return (
            self._handler.prefetch_memory(question)
            if isinstance(self._handler, PrefetchesMemory)
            else None
        )

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        """Return the settlement of the run, in this process or in a child."""
        if delivery.starts < SUSPECT_STARTS:
            return await self._handler.handle(delivery, envelope)
        settlement = await self._quarantine.run(delivery)
        self._on_isolated_run(self.role.value, settlement)
        return settlement


def _settlement(answer: Settlement | _Raised) -> Settlement:
    if not isinstance(answer, _Raised):
        return answer
    if answer.unavailable:
        raise MemoryUnavailableError(answer.description)
    raise SuspectFailedError(answer.description, answer.journal)


def _describe_exit(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"it terminated with exit code {exit_code}"
    return f"it was terminated by {signal.Signals(-exit_code).name}"


def _work(make: MakeHandler, delivery: Delivery, answer: "connection.Connection") -> None:
    """Handle one delivery in the child, and send its result to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    PRESENT.set(delivery)
    answer.send(asyncio.run(_handle(make, delivery)))


def _do_nothing() -> None:
    """Return immediately; the process only starts the fork server."""


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


async def _handle(make: MakeHandler, delivery: Delivery) -> Settlement | _Raised:
    try:
        async with make(delivery.role) as handler:
            return await handler.handle(delivery, open_envelope(delivery))
    except QuestionEndedError:
        return Forward(sends=())
    except (BrokerUnavailableError, MemoryUnavailableError) as error:
        return _Raised(str(error), unavailable=True)
    except RunFailedError as error:
        return _Raised(str(error), journal=error.journal)
    except Exception as error:  # noqa: BLE001 - an agent may raise anything; the parent gets it
        return _Raised(f"{type(error).__name__}: {error}")
