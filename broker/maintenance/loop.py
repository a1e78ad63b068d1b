"""Runs timed work for the whole system: due entries, deadlines, and entries of dead workers.

One process that runs this loop is enough for delays, deadlines and recovery everywhere. It sleeps
until the next item is due, or until a wakeup announces an earlier one. On an idle system, it calls
Redis a few times a minute. It also checks Redis twice a second, to detect dead connections of the
process early.

Each shard is swept by one process, which also does the other timed work of the shard. A sweep
checks the consumers of every stream of a shard, not every entry. A consumer that owns entries and
was silent for one lease period is assumed to belong to a dead process. Each of its entries is
replaced by a new entry that records the number of earlier starts, so that any worker can take it
immediately. The next sweep is due when the next lease can expire, or after one lease period if no
entry is held.
"""

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from broker.background_jobs import BackgroundJobs
from broker.context import BrokerContext
from broker.entry_codec import Read, delivery_of, fields_of, seconds_of
from broker.errors import BrokerUnavailableError
from broker.keys import question_of, shard_keys, stream_key
from broker.leases import DeliveryLoader
from broker.maintenance.erasure import Files
from broker.maintenance.heartbeat import Heartbeats
from broker.maintenance.queue_admin import letter_fields
from broker.maintenance.scheduler import Scheduler
from broker.settlement import STARTS
from broker.transport.connect import LONGEST_BLOCK_SECONDS, reachable
from broker.transport.scripts import SWEEP, Argument
from broker.values import Bury, Delivery, FrameSend, Settlement

LOOKS = 1000
"""Maximum number of pending entries that a sweep of a shard checks."""
MOVES = 25
"""Maximum number of entries that a sweep returns; if more remain, the next sweep follows
immediately.
"""
SILENT_LEASES = 4
"""A consumer that does not own entries is removed if it was silent for this many lease periods."""
LEAST_SWEEP_SECONDS = 0.005

Settle = Callable[[Sequence[tuple[Delivery, Settlement]]], Awaitable[Sequence[bool]]]
MakeNotice = Callable[[Delivery, str], FrameSend | None]
"""Returns the notice that tells the manager that an entry killed its workers, with this error."""
AWAY_SECONDS = 0.25
"""The pause after Redis did not respond."""
GATHER_SECONDS = 0.02
"""Minimum time between two wakeups, so that many retries are sent together."""
TIDY_SECONDS = 1.0
"""The pause before the first upkeep, so that the first sweep can determine `on_duty`."""

RecordResult = Callable[[BrokerUnavailableError | None], None]
LONGEST_SECONDS = 30.0
LEAST_SECONDS = 0.1
PAGE = 100


class OrphanRescuer:
    """Sweeps all shards, and uses `settle` to bury entries that were started too often.

    `make_notice` creates the notice that tells the manager about a buried entry. `on_duty` contains
    the shards that this process swept last; it also does the other timed work of these shards.
    """

    def __init__(
        self,
        context: BrokerContext,
        settle: Settle,
        make_notice: MakeNotice,
        loader: DeliveryLoader,
    ) -> None:
        self._context = context
        self._settle = settle
        self._make_notice = make_notice
        self._loader = loader
        self.on_duty: set[int] = set()
        self._name = f"sweeper-{secrets.token_hex(4)}"
        self._random = random.SystemRandom()

    async def sweep(self) -> float:
        """Sweep the shards that no other process sweeps; return the seconds until the next
        sweep.
        """
        sweeps = [self._sweep(shard) for shard in range(self._context.shards)]
        waits = await self._context.on_shards(sweeps)
        # An unreachable shard is tried again soon.
        return min(wait if isinstance(wait, float) else AWAY_SECONDS for wait in waits)

    async def _sweep(self, shard: int) -> float:
        lease_ms, roles = self._context.lease_ms, tuple(self._context.roles)
        keys = [shard_keys(shard).duty, *(stream_key(role, shard) for role in roles)]
        args: list[Argument] = [
            self._name,
            lease_ms,
            SILENT_LEASES * lease_ms,
            LOOKS,
            MOVES,
            STARTS,
            self._context.limits.ttl_ms,
            *roles,
        ]
        wait_ms, swept, poison = await self._context.run(SWEEP, keys, args)
        for role, entry, count, consumer in poison:
            read = delivery_of(
                entry,
                role=role.decode(),
                shard=shard,
                consumer=consumer.decode(),
                count=count,
                now_ms=0.0,
            )
            await self._bury(read)
        (self.on_duty.add if swept else self.on_duty.discard)(shard)
        seconds = max(LEAST_SWEEP_SECONDS, float(wait_ms) / 1000)
        # The random delay spreads the processes that wait to take over.
        return seconds if swept else seconds + self._random.uniform(0.0, lease_ms / 16_000)

    async def _bury(self, read: Read) -> None:
        error = f"its worker died or hung in each of {STARTS} starts"
        for delivery in await self._loader.select_workable([read]):
            notice = self._make_notice(delivery, error)
            buried = Bury("poison", error, poison_notice=notice, deaths=delivery.deaths)
            await self._settle([(delivery, buried)])


class Upkeep:
    """Deletes expired dead letters of the shards in `on_duty`, and starts rewrites of the
    append-only file.

    Dead letters are kept for `seconds`; `of` overrides this for certain tenants and assistants.
    """

    def __init__(
        self,
        context: BrokerContext,
        files: Files,
        on_duty: Collection[int],
        *,
        seconds: float,
        of: Mapping[tuple[str, str], float],
    ) -> None:
        self._context = context
        self._files = files
        self._on_duty = on_duty
        self._seconds = seconds
        self._of = of
        self._shortest_seconds = min((seconds, *of.values()))

    async def tidy(self) -> float:
        """Delete expired data once; return the seconds until the next call is due."""
        for shard in tuple(self._on_duty):
            await self._drop_letters(shard)
            await self._files.look(shard)
        often = min(LONGEST_SECONDS, self._shortest_seconds / 4, self._files.patience_seconds / 4)
        return max(LEAST_SECONDS, often)

    async def _drop_letters(self, shard: int) -> None:
        keys, client = shard_keys(shard), self._context.client
        now, after = time.time(), "-"
        while True:
            # Entry ids use the clock of Redis; a clock difference shifts this time accordingly.
            until = int((now - self._shortest_seconds) * 1000)
            command: Any = client
            with reachable():
                entries = await command.execute_command(
                    "XRANGE", keys.dead, after, until, "COUNT", PAGE
                )
            old = [
                entry_id.decode() for entry_id, raw in entries if self._is_old(entry_id, raw, now)
            ]
            if old:
                with reachable():
                    pipeline: Any = client.pipeline(transaction=False)
                    pipeline.hdel(
                        keys.letters,
                        *(name for letter in old for name in letter_fields(letter)),
                    )
                    pipeline.xdel(keys.dead, *old)
                    await pipeline.execute()
            if len(entries) < PAGE:
                return
            after = f"({entries[-1][0].decode()}"

    def _is_old(self, entry_id: bytes, raw: Any, now: float) -> bool:
        name = fields_of(raw).get(b"q", b"").decode()
        question = question_of(name) if name else None
        owner = None if question is None else (question.tenant, question.assistant)
        lifetime_seconds = self._seconds if owner is None else self._of.get(owner, self._seconds)
        return now - seconds_of(entry_id.decode()) >= lifetime_seconds


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The parts of the broker that do timed work."""

    scheduler: Scheduler
    rescuer: OrphanRescuer
    upkeep: Upkeep
    heartbeats: Heartbeats


class MaintenanceLoop:
    """Sends due entries, sweeps shards, deletes expired data, and waits for wakeups.

    `record_result` receives the result of each call: an error if Redis did not respond, or None.
    """

    def __init__(
        self,
        maintenance: Maintenance,
        record_result: RecordResult,
        jobs: BackgroundJobs | None = None,
    ) -> None:
        self._maintenance = maintenance
        self._jobs = BackgroundJobs() if jobs is None else jobs
        self._record_result = record_result
        self._look_at = 0.0
        self._tidy_seconds = TIDY_SECONDS
        self._sooner = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set."""
        work: dict[str, Callable[[], Awaitable[None]]] = {
            "wakeups": self._listen,
            "due_entries": self._send_due,
            "rescue": self._sweep,
            "upkeep": self._tidy,
            "heartbeats": self._maintenance.heartbeats.keep,
        }
        async with AsyncExitStack() as stack:
            for name, job in work.items():
                await stack.enter_async_context(
                    self._jobs.running(name, partial(self._repeat, job))
                )
            await stop.wait()

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except BrokerUnavailableError as error:
                self._record_result(error)
                # Wakeups may have been missed: check as soon as Redis answers.
                self._schedule_look(0.0)
                await asyncio.sleep(AWAY_SECONDS)
            else:
                self._record_result(None)

    async def _listen(self) -> None:
        seconds = await self._maintenance.scheduler.wait_for_wakeup(
            block_seconds=LONGEST_BLOCK_SECONDS
        )
        if seconds is not None:
            self._schedule_look(seconds)
            await asyncio.sleep(GATHER_SECONDS)

    def _schedule_look(self, seconds: float) -> None:
        at = time.monotonic() + seconds
        if at < self._look_at:
            self._look_at = at
            self._sooner.set()

    async def _send_due(self) -> None:
        while (left := self._look_at - time.monotonic()) > 0:
            self._sooner.clear()
            try:
                async with asyncio.timeout(left):
                    await self._sooner.wait()
            except TimeoutError:
                break
        # Set before sending: a wakeup meanwhile shortens the next sleep.
        self._look_at = float("inf")
        seconds = await self._maintenance.scheduler.send_due()
        self._look_at = min(self._look_at, time.monotonic() + max(seconds, GATHER_SECONDS / 2))

    async def _sweep(self) -> None:
        await asyncio.sleep(await self._maintenance.rescuer.sweep())

    async def _tidy(self) -> None:
        await asyncio.sleep(self._tidy_seconds)
        self._tidy_seconds = await self._maintenance.upkeep.tidy()
