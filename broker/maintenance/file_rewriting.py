"""Has Redis write its file anew after something was erased, since the file tells all that ever was.

What erases leaves a mark before it does. Whoever sweeps the shard looks at the mark: when it is
old enough, one rewriting covers all that was erased until then. The mark goes only when that
rewriting has ended well on the same run of the server; what was erased meanwhile has left another.
Without a mark the file is written anew from time to time, for what expired.
"""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from redis.exceptions import ResponseError

from broker.context import BrokerContext
from broker.keys import shard_keys
from broker.transport.cluster import ClusterClient
from broker.transport.connect import reachable
from broker.transport.scripts import BEGUN, MARK, WRITTEN

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = structlog.get_logger("broker")

KEEP_MS = 90 * 86_400_000
"""How long (ms) a mark stays where nobody sweeps."""
WARN_SECONDS = 3600.0
"""A server that refuses is asked again each time, and told of in the log once in so long."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """When files are written anew: so long after an erasure, and so often anyway. 0: never."""

    after_seconds: float = 60.0
    every_seconds: float = 86_400.0


class Files:
    """The append-only files of the servers that hold the shards."""

    def __init__(self, space: BrokerContext, rewriting: Rewriting) -> None:
        self._space = space
        self._rewriting = rewriting
        self._warned_at = float("-inf")

    @property
    def patience_seconds(self) -> float:
        """How long after an erasure its words may stand in the file."""
        return self._rewriting.after_seconds or float("inf")

    async def mark(self, shard: int) -> None:
        """Keep that something is erased now."""
        await self._space.run(MARK, [self._key(shard)], [KEEP_MS])

    async def look(self, shard: int, *, at_once: bool = False) -> bool:
        """Have the file written anew when it is time; return whether that is under way."""
        if shard and not self._space.slots_apart:
            return False  # One server holds all shards, and the first one looks after its file.
        key = self._key(shard)
        known, now_ms = await self._read_notes(key)
        if b"began" in known:
            return await self._follow(key, known)
        if not self._is_time(known, now_ms, at_once=at_once):
            if b"written" not in known:
                await self._note_first_look(key, now_ms)
            return False
        return await self._begin(key, known)

    def _is_time(self, known: dict[bytes, bytes], now_ms: float, *, at_once: bool) -> bool:
        rewriting = self._rewriting
        if b"first" in known and rewriting.after_seconds > 0:
            waited_ms = now_ms - float(known[b"first"])
            if at_once or waited_ms >= rewriting.after_seconds * 1000:
                return True
        since_ms = now_ms - float(known.get(b"written", now_ms))
        return rewriting.every_seconds > 0 and since_ms >= rewriting.every_seconds * 1000

    async def _note_first_look(self, key: str, now_ms: float) -> None:
        """Count the time until the next rewriting from now on."""
        client: Any = self._space.client
        with reachable():
            await client.hsetnx(key, "written", int(now_ms))
            await client.pexpire(key, KEEP_MS)

    async def _begin(self, key: str, known: dict[bytes, bytes]) -> bool:
        """Ask for the file to be written anew; where there is none, note that it was."""
        state = await self._state(key)
        enabled = bool(state.get("aof_enabled"))
        if enabled and not await self._is_asked(key):
            return False
        run = str(state.get("run_id", ""))
        began = await self._space.run(BEGUN, [key], [run, known.get(b"marks", b"")])
        if not enabled:
            await self._space.run(WRITTEN, [key], [began, KEEP_MS])
        return enabled

    async def _is_asked(self, key: str) -> bool:
        client = await self._client(key)
        try:
            with reachable():
                await client.execute_command("BGREWRITEAOF")
        except ResponseError as error:
            if "in progress" not in str(error):
                self._tell_of_refusal(error)
            return False
        return True

    async def _state(self, key: str) -> dict[str, Any]:
        client = await self._client(key)
        try:
            with reachable():
                return {**await client.info("server"), **await client.info("persistence")}
        except ResponseError:
            return {}  # A Redis that is played has no INFO, and no file.

    async def _follow(self, key: str, known: dict[bytes, bytes]) -> bool:
        """Look how the rewriting went that began before."""
        state = await self._state(key)
        run = str(state.get("run_id", ""))
        same = run == known.get(b"run", b"").decode()
        going = state.get("aof_rewrite_in_progress") or state.get("aof_rewrite_scheduled")
        if same and going:
            return True
        with reachable():
            if same and state.get("aof_last_bgrewrite_status", "ok") == "ok":
                await self._space.run(WRITTEN, [key], [known[b"began"], KEEP_MS])
            else:
                # The mark is there still: the next look begins again.
                await self._space.client.hdel(key, "began", "run", "covers")
        return False

    async def _read_notes(self, key: str) -> tuple[dict[bytes, bytes], float]:
        """Return what is noted, and what time it is (ms)."""
        client: Any = self._space.client
        with reachable():
            found: dict[bytes, bytes] = await client.hgetall(key)
            seconds, microseconds = await client.time()
        return found, seconds * 1000 + microseconds / 1000

    async def _client(self, key: str) -> Any:
        client: Redis = self._space.client
        with reachable():
            return (await client.holder(key))[1] if isinstance(client, ClusterClient) else client

    def _tell_of_refusal(self, error: ResponseError) -> None:
        """Tell now and then that the server does not let us: somebody else has to see to it."""
        if time.monotonic() - self._warned_at > WARN_SECONDS:
            self._warned_at = time.monotonic()
            log.warning("aof_rewrite_failed", error=str(error))

    def _key(self, shard: int) -> str:
        return shard_keys(shard if self._space.slots_apart else 0).files
