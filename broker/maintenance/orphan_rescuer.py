"""Gives the work of dead workers back to whoever is free, on a timer that needs no traffic.

A sweep looks at the consumers of every stream of a shard, not at every entry: a consumer that
holds something and was silent for a lease belongs to a process that died. What it held becomes a
new entry that tells how often it was started before, so that any worker takes it at once. The next
sweep is due when the next lease can end: a lease later where nothing is held.
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
"""Entries that one sweep of a shard looks at, of however many are pending."""
MOVES = 25
"""Entries that one sweep gives back; where there are more, the next follows at once."""
SILENT_LEASES = 4
"""A consumer that holds nothing and was silent for so many leases is removed."""
LEAST_SECONDS = 0.005
AWAY_SECONDS = 0.25

Settle = Callable[[Sequence[tuple[Delivery, Settlement]]], Awaitable[Sequence[bool]]]
Tell = Callable[[Delivery, str], FrameSend | None]


class OrphanRescuer:
    """Sweeps all shards; `settle` buries what was started too often, which `tell` tells of.

    `on_duty` are the shards that this process swept last: what one process does is done by it.
    """

    def __init__(
        self, space: BrokerContext, settle: Settle, tell: Tell, opening: DeliveryLoader
    ) -> None:
        self._space = space
        self._settle = settle
        self._tell = tell
        self._opening = opening
        self.on_duty: set[int] = set()
        self._name = f"sweeper-{secrets.token_hex(4)}"
        self._random = random.SystemRandom()

    async def sweep(self) -> float:
        """Sweep, where nobody else does; return seconds until it is worth doing again."""
        sweeps = [self._sweep(shard) for shard in range(self._space.shards)]
        waits = await self._space.on_shards(sweeps)
        # A shard that is away is swept as soon as it may answer again.
        return min(wait if isinstance(wait, float) else AWAY_SECONDS for wait in waits)

    async def _sweep(self, shard: int) -> float:
        lease_ms, roles = self._space.lease_ms, tuple(self._space.roles)
        keys = [shard_keys(shard).duty, *(stream_key(role, shard) for role in roles)]
        args: list[Argument] = [
            self._name,
            lease_ms,
            SILENT_LEASES * lease_ms,
            LOOKS,
            MOVES,
            STARTS,
            self._space.limits.ttl_ms,
            *roles,
        ]
        wait_ms, swept, poison = await self._space.run(SWEEP, keys, args)
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
        # Of those who stand by, one shall come first.
        return seconds if swept else seconds + self._random.uniform(0.0, lease_ms / 16_000)

    async def _bury(self, found: Read) -> None:
        error = f"its worker died or hung in each of {STARTS} starts"
        for delivery in await self._opening.select_workable([found]):
            tell = self._tell(delivery, error)
            buried = Bury("poison", error, poison_notice=tell, deaths=delivery.deaths)
            await self._settle([(delivery, buried)])
