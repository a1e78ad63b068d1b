"""Has Redis rewrite its append-only file after an erasure, because the file still contains the
text.

An erasure sets a mark before it deletes anything. The process that sweeps the shard reads the mark.
When the mark is old enough, it starts one rewriting, which covers all erasures until then. The mark
is removed only when that rewriting has succeeded on the same run of the server; later erasures have
set another mark. Without a mark the file is rewritten periodically, to remove expired data.
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
"""How long (ms) a mark is kept if no process sweeps the shard."""
WARN_SECONDS = 3600.0
"""The least time between two warnings about a server that refuses; it is asked each time."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """When files are rewritten: this long after an erasure, and periodically. 0: never."""

    after_seconds: float = 60.0
    every_seconds: float = 86_400.0


class Files:
    """The append-only files of the servers that hold the shards."""

    def __init__(self, context: BrokerContext, rewriting: Rewriting) -> None:
        self._context = context
        self._rewriting = rewriting
        self._warned_at = float("-inf")

    @property
    def patience_seconds(self) -> float:
        """The longest time for which erased text may remain in the file."""
        return self._rewriting.after_seconds or float("inf")

    async def mark(self, shard: int) -> None:
        """Set the mark that something is being erased."""
        await self._context.run(MARK, [self._key(shard)], [KEEP_MS])

    async def look(self, shard: int, *, at_once: bool = False) -> bool:
        """Start a rewriting when it is due; return whether one is running."""
        if shard and not self._context.slots_apart:
            return False  # One server holds all shards; the first shard takes care of its file.
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
        client: Any = self._context.client
        with reachable():
            await client.hsetnx(key, "written", int(now_ms))
            await client.pexpire(key, KEEP_MS)

    async def _begin(self, key: str, known: dict[bytes, bytes]) -> bool:
        """Start a rewriting; where the server has no file, record that it was rewritten."""
        state = await self._state(key)
        enabled = bool(state.get("aof_enabled"))
        if enabled and not await self._is_asked(key):
            return False
        run = str(state.get("run_id", ""))
        began = await self._context.run(BEGUN, [key], [run, known.get(b"marks", b"")])
        if not enabled:
            await self._context.run(WRITTEN, [key], [began, KEEP_MS])
        return enabled

    async def _is_asked(self, key: str) -> bool:
        client = await self._client(key)
        try:
            with reachable():
                await client.execute_command("BGREWRITEAOF")
        except ResponseError as error:
            if "in progress" not in str(error):
                self._log_refusal(error)
            return False
        return True

    async def _state(self, key: str) -> dict[str, Any]:
        client = await self._client(key)
        try:
            with reachable():
                return {**await client.info("server"), **await client.info("persistence")}
        except ResponseError:
            return {}  # fakeredis has no INFO, and no file.

    async def _follow(self, key: str, known: dict[bytes, bytes]) -> bool:
        """Check a running rewriting: remove its mark when it succeeded, else repeat it later."""
        state = await self._state(key)
        run = str(state.get("run_id", ""))
        same = run == known.get(b"run", b"").decode()
        going = state.get("aof_rewrite_in_progress") or state.get("aof_rewrite_scheduled")
        if same and going:
            return True
        with reachable():
            if same and state.get("aof_last_bgrewrite_status", "ok") == "ok":
                await self._context.run(WRITTEN, [key], [known[b"began"], KEEP_MS])
            else:
                # The mark remains: the next look starts another rewriting.
                await self._context.client.hdel(key, "began", "run", "covers")
        return False

    async def _read_notes(self, key: str) -> tuple[dict[bytes, bytes], float]:
        """Return the fields of the mark, and the server's time (ms)."""
        client: Any = self._context.client
        with reachable():
            found: dict[bytes, bytes] = await client.hgetall(key)
            seconds, microseconds = await client.time()
        return found, seconds * 1000 + microseconds / 1000

    async def _client(self, key: str) -> Any:
        client: Redis = self._context.client
        with reachable():
            return (await client.holder(key))[1] if isinstance(client, ClusterClient) else client

    def _log_refusal(self, error: ResponseError) -> None:
        """Log at intervals that the server refuses to rewrite its file: an operator must act."""
        if time.monotonic() - self._warned_at > WARN_SECONDS:
            self._warned_at = time.monotonic()
            log.warning("aof_rewrite_failed", error=str(error))

    def _key(self, shard: int) -> str:
        return shard_keys(shard if self._context.slots_apart else 0).files
