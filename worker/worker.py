"""The worker of one role: takes, decodes, runs and settles entries.

A run submits its settlement to the settlement pipeline, and ends when the result arrives.
"""

import asyncio
import logging
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NoReturn

import structlog

from broker.errors import BrokerUnavailableError
from broker.lease_renewer import LeaseRenewal
from broker.ports import Consumer, ReplyReader
from broker.settle_pipeline import SettlementPipeline
from broker.transport.connect import Outage
from broker.values import (
    Bury,
    Delivery,
    Finish,
    Forward,
    FrameSend,
    LeaseLost,
    Retry,
    ReturnResult,
    ScatterBranches,
    Settlement,
)
from envelope.encoding import brief
from envelope.envelope import DecodeError, Envelope, Hop, NewerVersionError
from envelope.memory_access import MemoryRead
from envelope.question import Question
from envelope.role import Role
from memory.errors import MemoryUnavailableError, QuestionEndedError
from worker.agent_handler import UNROUTED, open_envelope, reply_to_manager
from worker.errors import RunFailedError, name_error
from worker.executor import Execution, Executor, Runners
from worker.log_context import PRESENT
from worker.port import Handler, PrefetchesMemory, WorkerMeter

log = structlog.get_logger("worker")
LEVEL = logging.getLogger("worker")
"""Checked before each hop is logged: structlog creates a logger before it checks the level."""

UNAVAILABLE = (BrokerUnavailableError, MemoryUnavailableError)
FIRST_SECONDS = 0.05
LONGEST_SECONDS = 0.5
"""Maximum delay; short enough that work resumes within two seconds after Redis is available
again.
"""
_RANDOM = random.Random()  # noqa: S311 - jitter needs no cryptographic randomness
UNSURE = -1
ROLES = frozenset(role.value for role in Role)
HOP_OUTCOMES = {
    Forward: "forward",
    ScatterBranches: "scatter",
    ReturnResult: "return",
    Finish: "finish",
    Retry: "retry",
    Bury: "dead_letter",
}
"""The metric label `outcome` of each settlement."""
LEASE_LOST = "lease_lost"
"""The metric label of a settlement that was rejected because another worker holds the entry."""


class Backoff:
    """Waits up to 0.5 s, with jitter, after a failure; `outage` logs the outage for the process."""

    def __init__(self, operation: str, outage: Outage, *, role: str) -> None:
        self._operation = operation
        self._role = role
        self._outage = outage
        self._failures = 0

    @property
    def in_trouble(self) -> bool:
        """Whether the last attempt failed."""
        return self._failures > 0

    def record_success(self) -> None:
        """Record that Redis responded."""
        self._failures = 0
        self._outage.record_success()

    async def wait_after_failure(self, error: Exception) -> None:
        """Record a failure, then wait for the backoff delay."""
        longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** min(self._failures, 10))
        self._failures += 1
        self._outage.record_failure(self._operation, error, role=self._role)
        await asyncio.sleep(_RANDOM.uniform(FIRST_SECONDS / 2, longest))


class Worker:
    """Takes entries of one role for its free slots, runs them, and settles them."""

    def __init__(
        self,
        entries: Consumer,
        replies: ReplyReader,
        handler: Handler,
        *,
        consumer: str,
        slots: int,
        settler: SettlementPipeline,
        leases: LeaseRenewal,
        runners: Runners,
        meter: WorkerMeter,
        attempts: int = 3,
        block_seconds: float = 8.0,
        outage: Outage | None = None,
    ) -> None:
        self.role = handler.role.value
        self.runs = Executor(self._work, slots=slots, leases=leases, runners=runners)
        self._runners = runners
        self._entries = entries
        self._replies = replies
        self._handler = handler
        self._reads_along = handler if isinstance(handler, PrefetchesMemory) else None
        self.consumer = consumer
        self._settler = settler
        self._meter = meter
        self._attempts = attempts
        self._block_seconds = block_seconds
        self._outage = Outage() if outage is None else outage
        self._recovered = 0
        self._recovers = False
        self._awaited = 0
        self._all_arrived = asyncio.Event()
        self._takes = False
        self._may_take = asyncio.Event()
        self._may_take.set()
        self.is_paused = False
        self.last_read = time.monotonic()

    @property
    def free_slots(self) -> int:
        """The number of additional entries it can run; 0 if paused, recovering or not started."""
        takes = self._takes and self._may_take.is_set() and not self._recovers
        return self.runs.free_slots if takes else 0

    def pause(self) -> None:
        """Take no more entries; a pending read may still return some.

        `is_paused` is True as soon as no read is pending.
        """
        self._may_take.clear()

    def resume(self) -> None:
        """Take entries again; do nothing if not paused."""
        self._may_take.set()

    def deliver(self, delivery: Delivery) -> None:
        """Run an entry that was taken in the round trip that settled or submitted another one."""
        if self._takes:
            self._start(delivery)

    def prefetch_memory(self, question: Question) -> MemoryRead | None:
        """Return the memory to read, for the handler, in the round trip that starts a question."""
        return None if self._reads_along is None else self._reads_along.prefetch_memory(question)

    @contextmanager
    def awaiting(self) -> Iterator[None]:
        """Mark a call whose response may deliver entries; recovery waits until it has ended."""
        self._awaited += 1
        try:
            yield
        finally:
            self._awaited -= 1
            if not self._awaited:
                self._all_arrived.set()

    def schedule_recovery(self) -> None:
        """Recover entries that were assigned but not received, before reading again."""
        self._recovered = UNSURE

    async def take(self) -> None:
        """Take entries until cancelled, and pass them to the runners."""
        self._takes = True
        try:
            await self._take()
        finally:
            self._takes = False

    async def _take(self) -> None:
        backoff = Backoff("take", self._outage, role=self.role)
        while True:
            await self.runs.free()
            await self._wait_while_paused()
            try:
                await self._recover()
                taken = await self._entries.take(
                    self.role,
                    self.consumer,
                    slots=max(1, self.runs.free_slots),
                    # After a failure, do not block, so that a success is known immediately.
                    block_seconds=0.0 if backoff.in_trouble else self._block_seconds,
                )
            except BrokerUnavailableError as error:
                await backoff.wait_after_failure(error)
                continue
            backoff.record_success()
            self.last_read = time.monotonic()
            for delivery in taken:
                self._start(delivery)

    async def _wait_while_paused(self) -> None:
        if self._may_take.is_set():
            return
        self.is_paused = True
        await self._may_take.wait()
        self.is_paused = False
        # The pause must not count as silence of Redis.
        self.last_read = time.monotonic()

    async def _recover(self) -> None:
        """Return entries whose delivery was lost to their streams before their leases expire.

        An entry that is still in transit would run here and elsewhere, and one start would not be
        counted.
        """
        troubles = self._outage.troubles
        if troubles == self._recovered:
            return
        self._recovers = True
        try:
            while self._awaited:
                self._all_arrived.clear()
                await self._all_arrived.wait()
            known = [(shard, entry_id) for _, shard, entry_id, _ in self.runs.by_key]
            if await self._entries.recover(self.role, self.consumer, known):
                self._recovered = troubles
        finally:
            self._recovers = False

    def cancel_lost(self, lost: LeaseLost) -> None:
        """Cancel the run of an entry whose lease was lost, because its settlement would be
        rejected.
        """
        if self.runs.cancel_lost(lost):
            self._meter.count_lost(self.role)

    def _start(self, delivery: Delivery) -> None:
        if self.runs.start(delivery) and delivery.starts > 1:
            self._meter.count_redelivery(self.role)

    async def _work(self, run: Execution) -> None:
        # Each runner has its own context; its log events now have the ids of this delivery.
        PRESENT.set(run.delivery)
        settlement = await self._settlement(run.delivery)
        run.task, run.settling = None, True
        settled = partial(self._finish_settlement, run, settlement)
        await self._settler.submit(run.delivery, settlement, settled)

    def _finish_settlement(
        self,
        run: Execution,
        settlement: Settlement,
        kept: bool | Exception,
        *,
        backoff: Backoff | None = None,
    ) -> None:
        if isinstance(kept, BrokerUnavailableError):
            if run.key not in self.runs.by_key:
                # Cancelled at shutdown: another worker takes over its entry.
                return
            backoff = backoff or Backoff("settle", self._outage, role=self.role)
            run.task = self._runners.spawn(self._settle_again(run, settlement, kept, backoff))
            return
        if isinstance(kept, Exception):
            self._runners.spawn(_raise(kept))
            return
        if not kept:
            self._meter.count_lost(self.role)
        outcome = HOP_OUTCOMES[type(settlement)] if kept else LEASE_LOST
        seconds = time.perf_counter() - run.began
        self._meter.count_hop(self.role, outcome, seconds)
        if LEVEL.isEnabledFor(logging.DEBUG):
            log.debug(
                "hop_settled",
                role=self.role,
                outcome=outcome,
                milliseconds=round(seconds * 1000, 1),
                conversation_id=run.delivery.question.conversation_id,
                message_id=run.delivery.question.message_id,
            )
        self.runs.end(run)

    async def _settle_again(
        self,
        run: Execution,
        settlement: Settlement,
        error: BrokerUnavailableError,
        backoff: Backoff,
    ) -> None:
        PRESENT.set(run.delivery)
        try:
            await backoff.wait_after_failure(error)
            run.task = None
            settled = partial(self._finish_settlement, run, settlement, backoff=backoff)
            await self._settler.submit(run.delivery, settlement, settled)
        except BaseException:
            self.runs.end(run)
            raise

    async def _settlement(self, delivery: Delivery) -> Settlement:
        try:
            known = delivery.decoded
            envelope = open_envelope(delivery) if known is None else known
            delivery.branch = envelope.branch
        except NewerVersionError as error:
            # During an upgrade a newer worker takes it; the deadline of the question limits this.
            self._record_failure(delivery, "newer_version", error)
            return Retry(delivery.whole(), str(error))
        except DecodeError as error:
            self._record_failure(delivery, "undecodable", error)
            return Bury(reason="undecodable", error=str(error))
        backoff: Backoff | None = None
        while True:
            try:
                if delivery.starts > 1 and await self._has_ended(delivery):
                    return Forward(sends=())
                return self._sendable(await self._handler.handle(delivery, envelope))
            except QuestionEndedError:
                return Forward(sends=())
            except UNAVAILABLE as error:
                backoff = backoff or Backoff("run", self._outage, role=self.role)
                await backoff.wait_after_failure(error)
            except Exception as error:  # noqa: BLE001 - an agent may raise anything; it is a failure
                self._record_failure(delivery, "failed", error)
                return self._failure(delivery, envelope, error)

    async def _has_ended(self, delivery: Delivery) -> bool:
        """Return whether the question has already ended, so that another run would be useless."""
        return await self._replies.await_reply(delivery.question, block_seconds=0.0) is not None

    def _sendable(self, settlement: Settlement) -> Settlement:
        """Return the settlement, or a burial if it sends to an unknown role."""
        sends = settlement.sends if isinstance(settlement, Forward) else ()
        for send in sends:
            if send.role not in ROLES:
                self._meter.count_failure(self.role, "unknown_role")
                return Bury("unknown_role", f"expected a role to send to, found {send.role!r}")
        return settlement

    def _failure(self, delivery: Delivery, envelope: Envelope, error: Exception) -> Settlement:
        reason = format_error(error)
        journal = error.journal if isinstance(error, RunFailedError) else ()
        if envelope.retries + 1 < self._attempts:
            again = envelope.replace(retries=envelope.retries + 1)
            return Retry(again.encode(), reason, journal=journal)
        if self.role in UNROUTED:
            return Bury("failed", reason)
        hop = Hop(role=self.role, status="failed", reason=reason)
        handed = reply_to_manager(delivery, envelope, hop, {}, 0.0)
        return Bury("failed", reason, FrameSend(Role.MANAGER.value, handed.encode()), journal)

    def _record_failure(self, delivery: Delivery, reason: str, error: Exception) -> None:
        self._meter.count_failure(self.role, reason)
        log.warning(
            "hop_failed",
            role=self.role,
            reason=reason,
            error=name_error(error),
            delivery=delivery.count,
        )


def format_error(error: Exception) -> str:
    """Return the message of an error for the journal and the log."""
    kind = "" if isinstance(error, RunFailedError) else f"{type(error).__name__}: "
    return brief(f"{kind}{error}")


async def _raise(error: Exception) -> NoReturn:
    """Raise the error of a settlement in the worker's task group, which ends the group."""
    raise error
