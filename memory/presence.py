"""The live worker processes: each one announces itself, and reads the controls set by operators.

`RedisDuty` is a lease for tasks that only one process of a channel may run.
"""

import asyncio
import json
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from memory.errors import MemoryUnavailableError
from memory.key_names import controls_key, push_key, workers_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = structlog.get_logger("worker")

ALIVE_SECONDS = 30.0
"""A process that has not announced itself for this long counts as dead."""
ANNOUNCE_SECONDS = 5.0
LEAVE_SECONDS = 2.0
"""How long a process that is shutting down tries to remove its announcement, which expires
otherwise.
"""
MOST = 1000
"""Maximum number of processes that are stored. Beyond that, the oldest announcements are
removed.
"""

_NOW = """
-- KEYS[1] the workers, only to select the server. Returns its time (ms).
local time = redis.call('TIME')
return string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
"""

ANNOUNCE = """
-- KEYS[1] the processes, by the time of their last announcement (ms). ARGV: the process, time after
-- which a silent process counts as dead (ms), the most processes, the previous value of the
-- process.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if ARGV[4] ~= ARGV[1] then
  redis.call('ZREM', KEYS[1], ARGV[4])
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - tonumber(ARGV[2])))
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -tonumber(ARGV[3]) - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""

LIVING = """
-- KEYS[1] as above. ARGV: time after which a silent process counts as dead (ms).
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local since = string.format('(%.0f', now - tonumber(ARGV[1]))
return redis.call('ZRANGEBYSCORE', KEYS[1], since, '+inf', 'WITHSCORES')
"""
PAUSED = "paused/"
LEVEL = "level"
RELOADS = "reloads"
LEVELS = ("debug", "info", "warning", "error")
_KEEP = """
-- KEYS[1] the lease. ARGV: the caller, duration (ms). Returns 1 if the caller holds the lease now.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""

_LEAVE = """
-- KEYS[1] as above. ARGV: the caller.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return 1
"""


@dataclass(frozen=True, slots=True)
class LivingWorker:
    """A live worker process; times are in Unix seconds of the Redis clock.

    `paused` contains the roles for which the process currently takes no entries.
    """

    host: str
    pid: int
    roles: tuple[str, ...]
    started_at: float
    seen_at: float
    paused: tuple[str, ...] = ()


class RedisPresence:
    """The worker processes that have announced themselves within the last `alive_seconds`."""

    def __init__(
        self, client: "Redis", *, alive_seconds: float = ALIVE_SECONDS, most: int = MOST
    ) -> None:
        self._client = client
        self._alive_ms = max(1, int(alive_seconds * 1000))
        self._most = most

    def of_process(self, host: str, pid: int, roles: Sequence[str]) -> "ProcessPresence":
        """Return an object that announces one process."""
        about = {"host": host, "pid": pid, "roles": list(roles), "id": secrets.token_hex(4)}
        return ProcessPresence(self._client, about, alive_ms=self._alive_ms, most=self._most)

    async def living(self) -> list[LivingWorker]:
        """Return the live processes by host and pid; raises `MemoryUnavailableError`.

        Ignores entries that are not descriptions of processes.
        """
        flat = await await_answer(self._client.eval(LIVING, 1, workers_key(), self._alive_ms))
        pairs = zip(flat[::2], flat[1::2], strict=True)
        read = [_read(member, float(seen_ms) / 1000) for member, seen_ms in pairs]
        workers = [worker for worker in read if worker is not None]
        return sorted(workers, key=lambda worker: (worker.host, worker.pid, worker.started_at))


@dataclass(frozen=True, slots=True)
class WorkerControls:
    """The controls that operators set for all worker processes.

    `paused` contains the roles that take no entries. `level` is the log level; if it is empty, the
    level in the settings applies. `reloads` counts the requests to reload the prompts.
    """

    paused: frozenset[str] = frozenset()
    level: str = ""
    reloads: int = 0


class ProcessPresence:
    """Announces one process; its start is the time of its first announcement."""

    def __init__(
        self, client: "Redis", about: Mapping[str, Any], *, alive_ms: int, most: int
    ) -> None:
        self._client = client
        self._about = dict(about)
        self._alive_ms = alive_ms
        self._most = most
        self._member: str | None = None

    async def announce(self, paused: Sequence[str] = ()) -> WorkerControls:
        """Announce that the process is alive, remove dead processes, and return the controls.

        `paused` contains the roles for which it takes no entries. Raises `MemoryUnavailableError`.
        """
        if self._member is None:
            now_ms = await await_answer(self._client.eval(_NOW, 1, workers_key()))
            self._about["started_at"] = float(now_ms) / 1000
        own = json.dumps({**self._about, "paused": list(paused)} if paused else self._about)
        before, self._member = self._member or own, own
        arguments = (own, self._alive_ms, self._most, before)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.eval(ANNOUNCE, 1, workers_key(), *arguments)
        # Outside the script, because the Redis user of a worker may only read the controls.
        pipeline.hgetall(controls_key())
        _, controls = await await_answer(pipeline.execute())
        return parse_controls(controls)

    async def leave(self) -> None:
        """Remove the announcement of the process; raises `MemoryUnavailableError`."""
        if self._member is not None:
            await await_answer(self._client.zrem(workers_key(), self._member))

    async def keep_announcing(
        self,
        list_paused: Callable[[], Sequence[str]],
        follow: Callable[[WorkerControls], None],
        *,
        every_seconds: float = ANNOUNCE_SECONDS,
    ) -> None:
        """Announce the process and follow the controls, until cancelled.

        If Redis is unreachable, the error is only logged.
        """
        while True:
            try:
                follow(await self.announce(list_paused()))
            except MemoryUnavailableError as error:
                # The workers already log that Redis is unreachable.
                log.debug("worker_heartbeat_failed", error=str(error))
            await asyncio.sleep(every_seconds)

    async def leave_quietly(self, left: Callable[[], float]) -> None:
        """Remove the announcement within the remaining shutdown time; otherwise, it expires."""
        try:
            async with asyncio.timeout(min(LEAVE_SECONDS, left())):
                await self.leave()
        except (MemoryUnavailableError, TimeoutError) as error:
            log.debug("worker_heartbeat_failed", error=str(error))


class RedisControls:
    """Stores the controls; every method raises `MemoryUnavailableError`."""

    def __init__(self, client: "Redis") -> None:
        self._client = client

    async def read(self) -> WorkerControls:
        """Return the current controls."""
        return parse_controls(await await_answer(self._client.hgetall(controls_key())))

    async def pause(self, roles: Collection[str]) -> None:
        """Pause these roles, so that workers take no more entries for them."""
        fields = [part for role in roles for part in (f"{PAUSED}{role}", "1")]
        await await_answer(self._client.hset(controls_key(), items=fields))

    async def resume(self, roles: Collection[str]) -> None:
        """Resume these roles."""
        names = [f"{PAUSED}{role}" for role in roles]
        await await_answer(self._client.hdel(controls_key(), *names))

    async def set_level(self, level: str) -> None:
        """Set the log level of all workers; "" restores the level in their settings."""
        if level:
            await await_answer(self._client.hset(controls_key(), LEVEL, level))
        else:
            await await_answer(self._client.hdel(controls_key(), LEVEL))

    async def reload_prompts(self) -> None:
        """Request that all workers reload their prompts."""
        await await_answer(self._client.hincrby(controls_key(), RELOADS, 1))


class RedisDuty:
    """A lease on one task of a channel, for the process `holder`.

    It does not fully prevent duplicate work, because a process that was suspended may not know yet
    that its lease has expired.
    """

    def __init__(self, client: "Redis", channel: str, name: str, holder: str) -> None:
        self._client = client
        self._key = push_key(channel, "duty", name)
        self._holder = holder

    async def keep(self, seconds: float) -> bool:
        """Acquire or renew the lease for `seconds`; return False if another process holds it."""
        milliseconds = max(1, int(seconds * 1000))
        kept = await await_answer(
            self._client.eval(_KEEP, 1, self._key, self._holder, milliseconds)
        )
        return bool(kept)

    async def leave(self) -> None:
        """Release the lease, so that another process can acquire it immediately."""
        await await_answer(self._client.eval(_LEAVE, 1, self._key, self._holder))


def parse_controls(fields: Mapping[bytes, bytes]) -> WorkerControls:
    """Parse the fields of the stored hash; ignores unknown ones."""
    named = {name.decode(): value.decode() for name, value in fields.items()}
    level, reloads = named.get(LEVEL, ""), named.get(RELOADS, "")
    return WorkerControls(
        paused=frozenset(name.removeprefix(PAUSED) for name in named if name.startswith(PAUSED)),
        level=level if level in LEVELS else "",
        reloads=int(reloads) if reloads.isdecimal() else 0,
    )


def _read(member: bytes, seen_at: float) -> LivingWorker | None:
    try:
        about = json.loads(member)
        return LivingWorker(
            host=str(about["host"]),
            pid=int(about["pid"]),
            roles=tuple(str(role) for role in about["roles"]),
            started_at=float(about["started_at"]),
            seen_at=seen_at,
            paused=tuple(str(role) for role in about.get("paused", ())),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
