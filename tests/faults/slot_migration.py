"""Moves a slot from one master to another while it is used, as `redis-cli` does to reshard."""

import asyncio
from dataclasses import dataclass

from redis.crc import key_slot

from tests.faults.cluster import Cluster, Node

MIGRATE_MS = 5_000
SHARDS = range(64)


@dataclass
class Move:
    """The slot of some key that moves from one master to another."""

    slot: int
    masters: frozenset[Node]
    before: Node
    after: Node
    name: str

    async def carry(self, count: int) -> bool:
        """Carry that many keys over; return whether there were any."""
        keys = await self.before.ask("CLUSTER", "GETKEYSINSLOT", self.slot, count)
        if keys:
            target = ("127.0.0.1", self.after.port)
            await self.before.ask("MIGRATE", *target, "", 0, MIGRATE_MS, "KEYS", *keys)
        return bool(keys)

    async def end(self) -> None:
        """Inform all masters who holds it now."""
        for node in (self.after, self.before, *(self.masters - {self.before, self.after})):
            await node.ask("CLUSTER", "SETSLOT", self.slot, "NODE", self.name)


async def begun(cluster: Cluster, key: str) -> Move:
    """Begin to move the slot of a key to another master."""
    before = await cluster.master_of(key)
    masters = frozenset([await cluster.master_of(f"rd:{{{shard}}}:open") for shard in SHARDS])
    after = next(node for node in cluster.nodes if node in masters - {before})
    source, target = [(await node.ask("CLUSTER", "MYID")).decode() for node in (before, after)]
    slot = key_slot(key.encode())
    await after.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source)
    await before.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target)
    return Move(slot, masters, before, after, target)


async def move_slot(cluster: Cluster, key: str, *, keys: int, pause_seconds: float) -> Node:
    """Move the slot of a key to another master, that many keys at a time; return that one.

    After each time both nodes have a part of the slot for `pause_seconds`.
    """
    move = await begun(cluster, key)
    carries = True
    while carries:
        carries = await move.carry(keys)
        await asyncio.sleep(pause_seconds)
    await move.end()
    return move.after
