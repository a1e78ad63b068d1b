"""Returns the entries of dead workers to their streams, on a timer, even without other traffic.

A sweep checks the consumers of every stream of a shard, not every entry. A consumer that owns
entries and was silent for one lease belongs to a dead process. Each of its entries becomes a new
entry with the number of its earlier starts, so that any worker takes it immediately. The next sweep
is due when the next lease can end: one lease later if no entry is held.
"""

import random
import secrets
from collections.abc import Awaitable, Callable, Sequence

from broker.consume.delivery_loader import DeliveryLoader
from broker.context import BrokerContext
from broker.entry_codec import Read, delivery_of
from broker.keys import shard_keys, stream_key
from broker.settle.batch import STARTS
from broker.transport.scripts import SWEEP, Argument
from broker.values import Bury, Delivery, FrameSend, Settlement

LOOKS = 1000
"""Pending entries that one sweep of a shard checks at most."""
MOVES = 25
"""Entries that one sweep returns at most; if more remain, the next sweep follows at once."""
SILENT_LEASES = 4
"""A consumer that owns nothing is removed after this many leases of silence."""
LEAST_SECONDS = 0.005
AWAY_SECONDS = 0.25

Settle = Callable[[Sequence[tuple[Delivery, Settlement]]], Awaitable[Sequence[bool]]]
MakeNotice = Callable[[Delivery, str], FrameSend | None]
"""Returns the notice for the manager about an entry that killed its workers, and its error."""


class OrphanRescuer:
    """Sweeps all shards; buries, by `settle`, entries that were started too often.

    `make_notice` creates the notice to the manager about a buried entry. `on_duty` contains the
    shards that this process swept last: the other work on timers is done by the same process.
    """

    def __init__(
        self,
        context: BrokerContext,
        settle: Settle,
        make_notice: MakeNotice,
        opening: DeliveryLoader,
    ) -> None:
        self._context = context
        self._settle = settle
        self._make_notice = make_notice
        self._opening = opening
        self.on_duty: set[int] = set()
        self._name = f"sweeper-{secrets.token_hex(4)}"
        self._random = random.SystemRandom()

    async def sweep(self) -> float:
        """Sweep the shards that no other process sweeps; return seconds until the next sweep is
        useful.
        """
        sweeps = [self._sweep(shard) for shard in range(self._context.shards)]
        waits = await self._context.on_shards(sweeps)
        # An unreachable shard is swept as soon as it may answer again.
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
            found = delivery_of(
                entry,
                role=role.decode(),
                shard=shard,
                consumer=consumer.decode(),
                count=count,
                now_ms=0.0,
            )
            await self._bury(found)
        (self.on_duty.add if swept else self.on_duty.discard)(shard)
        seconds = max(LEAST_SECONDS, float(wait_ms) / 1000)
        # The random delay separates the processes that wait to take over.
        return seconds if swept else seconds + self._random.uniform(0.0, lease_ms / 16_000)

    async def _bury(self, found: Read) -> None:
        error = f"its worker died or hung in each of {STARTS} starts"
        for delivery in await self._opening.select_workable([found]):
            notice = self._make_notice(delivery, error)
            buried = Bury("poison", error, poison_notice=notice, deaths=delivery.deaths)
            await self._settle([(delivery, buried)])
