"""Runs the work on timers for the whole system: due entries, deadlines, and entries of dead
workers.

If one process runs this loop, delays, deadlines and recovery work for all. It sleeps until the next
item is due, or until a wakeup announces an earlier one; on an idle system it calls Redis a few
times a minute. It also sends a heartbeat to Redis twice a second, so that all connections of the
process notice soon that they are dead.

One process does this for each shard: the one that sweeps it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from broker.context import BrokerContext
from broker.entry_codec import fields_of, seconds_of
from broker.errors import BrokerUnavailableError
from broker.keys import question_of, shard_keys
from broker.maintenance.erasure import Files
from broker.maintenance.heartbeat import Heartbeats
from broker.maintenance.orphan_rescuer import OrphanRescuer
from broker.maintenance.queue_admin import letter_fields
from broker.maintenance.scheduler import Scheduler
from broker.transport.connect import LONGEST_BLOCK_SECONDS, reachable

AWAY_SECONDS = 0.25
"""How long it sleeps when Redis does not answer."""
GATHER_SECONDS = 0.02
"""The least time between two wakeups, so that many retries are sent together."""
CANCEL_AGAIN_SECONDS = 0.05
TIDY_SECONDS = 1.0
"""How long a process waits before its first upkeep: the sweep finds out its shards first."""

RecordResult = Callable[[BrokerUnavailableError | None], None]


class Upkeep:
    """Deletes expired dead letters of the shards in `on_duty`, and starts rewritings of the file.

    Dead letters are kept for `seconds`; `of` has exceptions by tenant and assistant, in seconds.
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
        """Delete expired data once; return seconds until the next time."""
        for shard in tuple(self._on_duty):
            await self._drop_letters(shard)
            await self._files.look(shard)
        often = min(LONGEST_SECONDS, self._shortest_seconds / 4, self._files.patience_seconds / 4)
        return max(LEAST_SECONDS, often)

    async def _drop_letters(self, shard: int) -> None:
        keys, client = shard_keys(shard), self._context.client
        now, after = time.time(), "-"
        while True:
            # Entry ids are in Redis time: a clock difference delays or hastens this accordingly.
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
                        keys.letters, *(name for one in old for name in letter_fields(one))
                    )
                    pipeline.xdel(keys.dead, *old)
                    await pipeline.execute()
            if len(entries) < PAGE:
                return
            after = f"({entries[-1][0].decode()}"

    def _is_old(self, entry_id: bytes, raw: Any, now: float) -> bool:
        name = fields_of(raw).get(b"q", b"").decode()
        question = question_of(name) if name else None
        whose = None if question is None else (question.tenant, question.assistant)
        lives = self._seconds if whose is None else self._of.get(whose, self._seconds)
        return now - seconds_of(entry_id.decode()) >= lives


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The parts that work on timers."""

    scheduler: Scheduler
    rescuer: OrphanRescuer
    upkeep: Upkeep
    heartbeats: Heartbeats


class MaintenanceLoop:
    """Sends due entries, sweeps, tidies, and waits for wakeups.

    `record_result` receives the result of each call: the error when Redis did not answer, or None.
    """

    def __init__(self, maintenance: Maintenance, record_result: RecordResult) -> None:
        self._maintenance = maintenance
        self._record_result = record_result
        self._look_at = 0.0
        self._tidy_seconds = TIDY_SECONDS
        self._sooner = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set."""
        async with asyncio.TaskGroup() as tasks:
            keeping = {
                tasks.create_task(self._repeat(work))
                for work in (*self._own_work, self._maintenance.heartbeats.keep)
            }
            await stop.wait()
            while keeping:
                for task in keeping:
                    task.cancel()
                # Repeated where it had no effect: a client may lose a cancellation.
                _, keeping = await asyncio.wait(keeping, timeout=CANCEL_AGAIN_SECONDS)

    @property
    def _own_work(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        return self._listen, self._send_due, self._sweep, self._tidy

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except BrokerUnavailableError as error:
                self._record_result(error)
                # Wakeups of the meantime were missed: look as soon as Redis answers.
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
        # Set before the look: a wakeup during it shortens the sleep that follows.
        self._look_at = float("inf")
        seconds = await self._maintenance.scheduler.send_due()
        self._look_at = min(self._look_at, time.monotonic() + max(seconds, GATHER_SECONDS / 2))

    async def _sweep(self) -> None:
        await asyncio.sleep(await self._maintenance.rescuer.sweep())

    async def _tidy(self) -> None:
        await asyncio.sleep(self._tidy_seconds)
        self._tidy_seconds = await self._maintenance.upkeep.tidy()


LONGEST_SECONDS = 10.0
LEAST_SECONDS = 0.1
PAGE = 100
