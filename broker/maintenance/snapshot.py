"""Copies all keys of Refdesk in Redis at one point in time, and restores them.

Writes to Redis wait during the copy (`CLIENT PAUSE ... WRITE`); reads continue. The pause is
renewed batch by batch, so Redis resumes by itself if the process dies. If a batch outlasts the
pause, the copy fails, because writes may have happened in between.
"""

import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from broker.errors import BrokerError
from broker.transport.cluster import ClusterClient
from broker.transport.connect import reachable

EVERY_KEY = "rd:*"
BATCH = 200
PAUSE_SECONDS = 10.0
NO_TTL = -1


class SnapshotError(BrokerError):
    """The state of Redis could not be copied or restored."""


@dataclass(frozen=True, slots=True)
class SavedKey:
    """A key and its value as serialized by DUMP. `expires_at` is in Unix seconds of the Redis
    clock, or None.
    """

    name: bytes
    value: bytes
    expires_at: float | None = None


class RedisSnapshot:
    """Reads and writes all keys of Refdesk; the Redis user needs the required permissions."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def is_empty(self) -> bool:
        """Return whether the database has no keys."""
        for node in await self._nodes():
            async for names in self._scan(node):
                if names:
                    return False
        return True

    async def read(self) -> AsyncIterator[SavedKey]:
        """Yield every key, all as of the same point in time; raises `SnapshotError`."""
        nodes = await self._nodes()
        paused_at = await self._pause(nodes)
        try:
            for node in nodes:
                async for names in self._scan(node):
                    if time.monotonic() - paused_at > PAUSE_SECONDS / 2:
                        if time.monotonic() - paused_at > PAUSE_SECONDS:
                            raise SnapshotError(
                                "the copy took too long, so Redis may have "
                                "changed in the meantime: run the command again"
                            )
                        paused_at = await self._pause(nodes)
                    for key in await self._dump(node, names):
                        yield key
        finally:
            await self._command(nodes, "CLIENT", "UNPAUSE")

    async def write(self, keys: Iterable[SavedKey]) -> int:
        """Write keys that have not expired, replacing existing ones; return the number of keys
        written.
        """
        count, batch, nodes = 0, list[SavedKey](), await self._nodes()
        clock = await self._read_clock(nodes[0])
        for key in keys:
            if key.expires_at is None or key.expires_at > clock:
                batch.append(key)
            if len(batch) == BATCH:
                count += await self._restore(batch, clock)
                batch = []
        return count + await self._restore(batch, clock)

    async def check_values(self) -> bool:
        """Make Redis validate restored values; return False if it rejects the setting.

        Without this check, a crafted value can crash Redis or write to its memory.
        """
        for node in await self._nodes():
            try:
                with reachable():
                    await node.execute_command("CONFIG", "SET", "sanitize-dump-payload", "clients")
            except ResponseError:
                return False
        return True

    async def delete_all(self) -> None:
        """Delete every key."""
        for node in await self._nodes():
            async for names in self._scan(node):
                for name in names:
                    with reachable():
                        await node.execute_command("DEL", name)

    async def _nodes(self) -> Sequence[Any]:
        if isinstance(self._client, ClusterClient):
            return await self._client.nodes()
        return [self._client]

    async def _pause(self, nodes: Sequence[Any]) -> float:
        began = time.monotonic()
        await self._command(nodes, "CLIENT", "PAUSE", int(PAUSE_SECONDS * 1000), "WRITE")
        return began

    async def _command(self, nodes: Sequence[Any], *words: str | int) -> None:
        for node in nodes:
            with _permitted(), reachable():
                await node.execute_command(*words)

    async def _scan(self, node: Any) -> AsyncIterator[list[bytes]]:
        cursor = 0
        while True:
            with _permitted(), reachable():
                cursor, names = await node.scan(cursor, match=EVERY_KEY, count=BATCH)
            yield names
            if cursor == 0:
                return

    async def _dump(self, node: Any, names: Sequence[bytes]) -> list[SavedKey]:
        with _permitted(), reachable():
            pipeline = node.pipeline(transaction=False)
            for name in names:
                pipeline.execute_command("DUMP", name)
                pipeline.execute_command("PTTL", name)
            clock = await self._read_clock(node)
            answers = await pipeline.execute()
        return [
            SavedKey(name, value, None if ttl == NO_TTL else clock + ttl / 1000)
            for name, value, ttl in zip(names, answers[::2], answers[1::2], strict=True)
            if value is not None
        ]

    async def _restore(self, keys: Sequence[SavedKey], clock: float) -> int:
        for key in keys:
            left = 0 if key.expires_at is None else max(1, int((key.expires_at - clock) * 1000))
            with _permitted(), reachable():
                # One by one, because the keys of a cluster are on several nodes.
                await self._client.execute_command("RESTORE", key.name, left, key.value, "REPLACE")
        return len(keys)

    async def _read_clock(self, node: Any) -> float:
        with reachable():
            seconds, microseconds = await node.time()
        return int(seconds) + int(microseconds) / 1e6


class _permitted:  # noqa: N801 - a context manager, named for what it provides
    """Raises `SnapshotError` with the required permissions if Redis rejects a command."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ResponseError):
            raise SnapshotError(
                f"Redis refused the command: {error}. A backup needs a user with the permissions "
                f"+scan +dump "
                "+pttl +time +client|pause +client|unpause; a restore needs +restore +del. Values "
                "of a newer Redis can only be restored to a Redis that is at least as new"
            ) from error
