"""A Redis Cluster of three masters and three replicas, of plain `redis-server` processes."""

import asyncio
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from redis import asyncio as aioredis
from redis.crc import key_slot
from redis.exceptions import RedisError

from tests.conftest import start_redis
from tests.support.waiting import wait_until

T = TypeVar("T")
SLOTS = 16_384
MASTERS = 3
NODE_TIMEOUT_MS = 1_500
HANDING_SECONDS = 6.0
"""Redis gives up handing over after five seconds; then it may be asked again."""
OPTIONS = (
    "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
    "--cluster-node-timeout", str(NODE_TIMEOUT_MS), "--cluster-require-full-coverage", "no",
    "--cluster-replica-validity-factor", "0", "--repl-diskless-sync", "yes",
    "--repl-diskless-sync-delay", "0", "--appendonly", "yes", "--loglevel", "warning",
)  # fmt: skip


class Node:
    """One server of the cluster."""

    def __init__(self, folder: Path, port: int) -> None:
        folder.mkdir()
        self.port = port
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it alone answers."""
        return f"redis://127.0.0.1:{self.port}"

    @property
    def lives(self) -> bool:
        """Whether its process runs."""
        return self._process is not None

    def start(self) -> None:
        """Start it, with what it remembers."""
        path = self._folder / "r.sock"
        path.unlink(missing_ok=True)
        self._process = start_redis(path, *OPTIONS, "--port", str(self.port))

    def kill(self) -> None:
        """Kill it at once."""
        process, self._process = self._process, None
        if process is not None:
            # A stopped one can be killed as well.
            process.kill()
            process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Stop it, or let it go on."""
        assert self._process is not None, "expected a server that runs"
        self._process.send_signal(number)

    async def ask(self, *words: Any) -> Any:
        """Return what it answers to one command."""
        client: Any = aioredis.Redis.from_url(self.url, protocol=2, socket_timeout=5.0)
        try:
            return await client.execute_command(*words)
        finally:
            await client.aclose()


class Cluster:
    """Six nodes; the first three were masters in the beginning."""

    def __init__(self, folder: Path) -> None:
        ports = _free_ports()
        self.nodes = [Node(folder / f"node{n}", next(ports)) for n in range(2 * MASTERS)]

    def __enter__(self) -> "Cluster":
        for node in self.nodes:
            node.start()
        asyncio.run(self._meet())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node in self.nodes:
            node.kill()

    @property
    def url(self) -> str:
        """Where clients find the cluster: any of its nodes lists all."""
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    async def master_of(self, key: str) -> Node:
        """Return the living node that answers for a key, as the others see it."""
        slot = key_slot(key.encode())

        async def look() -> Node | None:
            for node in self.nodes:
                with suppress(RedisError, OSError):
                    if node.lives:
                        return self._owner(await node.ask("CLUSTER", "SLOTS"), slot)
            return None

        node: Node = await wait_until(look)
        return node

    async def replica_of(self, master: Node) -> Node:
        """Return the replica that would take over from a master."""
        name = (await master.ask("CLUSTER", "MYID")).decode()

        async def look() -> Node | None:
            rows = await master.ask("CLUSTER", "REPLICAS", name)
            ports = [_port(row) for row in rows if "fail" not in _words(row)[2]]
            return next((node for node in self.nodes if node.port in ports), None)

        node: Node = await wait_until(look)
        return node

    async def has_failed_over(self, key: str, before: Node) -> Node:
        """Wait until another node answers for a key, and return it."""

        async def look() -> Node | None:
            now = await self.master_of(key)
            return now if now is not before and now.lives else None

        node: Node = await wait_until(look)
        return node

    async def hand_over(self, key: str) -> None:
        """Let the replica take its master's place, and wait until it has it."""
        master = await self.master_of(key)
        asked_at = float("-inf")

        async def look() -> bool:
            nonlocal asked_at
            if await self.master_of(key) is not master:
                return True
            if time.monotonic() - asked_at > HANDING_SECONDS:
                asked_at = time.monotonic()
                await (await self.replica_of(master)).ask("CLUSTER", "FAILOVER")
            return False

        await wait_until(look)

    async def healthy(self) -> None:
        """Wait until every master has a replica that has all it has."""

        async def look() -> bool:
            with suppress(RedisError, OSError):
                answers = [await node.ask("INFO", "replication") for node in self.nodes]
                masters = [info for info in answers if info["role"] == "master"]
                linked = [info for info in answers if info.get("master_link_status") == "up"]
                return len(masters) == len(linked) == MASTERS and await self._has_agreed()
            return False

        await wait_until(look)

    async def _meet(self) -> None:
        masters, replicas = self.nodes[:MASTERS], self.nodes[MASTERS:]
        for number, node in enumerate(masters):
            first, last = SLOTS * number // MASTERS, SLOTS * (number + 1) // MASTERS
            await node.ask("CLUSTER", "ADDSLOTS", *range(first, last))
            await node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            await node.ask("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port)

        async def all_met() -> bool:
            views = [_lines(await node.ask("CLUSTER", "NODES")) for node in self.nodes]
            return all(len(rows) == len(self.nodes) for rows in views) and not any(
                "handshake" in row for rows in views for row in rows
            )

        await wait_until(all_met)
        for replica, master in zip(replicas, masters, strict=True):
            await replica.ask(
                "CLUSTER", "REPLICATE", (await master.ask("CLUSTER", "MYID")).decode()
            )
        await self.healthy()

    async def _has_agreed(self) -> bool:
        answers = [await node.ask("CLUSTER", "INFO") for node in self.nodes if node.lives]
        return all(
            "cluster_state:ok" in _text(info) and f"cluster_slots_ok:{SLOTS}" in _text(info)
            for info in answers
        )

    def _owner(self, rows: Any, slot: int) -> Node | None:
        for first, last, master, *_ in rows:
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == master[1])
        return None


def _free_ports() -> Iterator[int]:
    """Yield ports below 50000 that are free, with the one 10000 above for the nodes' talk."""
    for port in range(21_000 + 11 * (time.time_ns() % 900), 50_000, 3):
        with closing(socket.socket()) as first, closing(socket.socket()) as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
        yield port


def _text(response: Any) -> str:
    return response.decode() if isinstance(response, bytes) else str(response)


def _lines(response: Any) -> list[str]:
    return [line for line in _text(response).splitlines() if line]


def _words(row: Any) -> list[str]:
    return _text(row).split()


def _port(row: Any) -> int:
    return int(_words(row)[1].split("@")[0].rsplit(":", 1)[1])


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
        await asyncio.sleep(pause_seconds)  # noqa: TID251 - two nodes own the slot for this long
    await move.end()
    return move.after
