"""The instructions of operators to running workers, which read them with each heartbeat."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.key_names import controls_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

PAUSED = "paused/"
LEVEL = "level"
RELOADS = "reloads"
LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class WorkerControls:
    """What operators want of all worker processes.

    `paused` are the roles that take no entries, `level` the log level (empty: that of the
    settings), `reloads` the number of requests so far to read the prompts again.
    """

    paused: frozenset[str] = frozenset()
    level: str = ""
    reloads: int = 0


class RedisControls:
    """Stores the instructions; every method raises `MemoryUnavailableError`."""

    def __init__(self, client: "Redis") -> None:
        self._client = client

    async def read(self) -> WorkerControls:
        """Return the present instructions."""
        return parse_controls(await await_answer(self._client.hgetall(controls_key())))

    async def pause(self, roles: Collection[str]) -> None:
        """Let no worker take entries of these roles."""
        fields = [part for role in roles for part in (f"{PAUSED}{role}", "1")]
        await await_answer(self._client.hset(controls_key(), items=fields))

    async def resume(self, roles: Collection[str]) -> None:
        """Let workers take entries of these roles again."""
        names = [f"{PAUSED}{role}" for role in roles]
        await await_answer(self._client.hdel(controls_key(), *names))

    async def set_level(self, level: str) -> None:
        """Let workers log from this level on; empty: from that of their settings."""
        if level:
            await await_answer(self._client.hset(controls_key(), LEVEL, level))
        else:
            await await_answer(self._client.hdel(controls_key(), LEVEL))

    async def reload_prompts(self) -> None:
        """Let workers read their prompts again."""
        await await_answer(self._client.hincrby(controls_key(), RELOADS, 1))


def parse_controls(fields: Mapping[bytes, bytes]) -> WorkerControls:
    """Return the instructions in these fields of the stored hash; ignores unknown ones."""
    named = {name.decode(): value.decode() for name, value in fields.items()}
    level, reloads = named.get(LEVEL, ""), named.get(RELOADS, "")
    return WorkerControls(
        paused=frozenset(name.removeprefix(PAUSED) for name in named if name.startswith(PAUSED)),
        level=level if level in LEVELS else "",
        reloads=int(reloads) if reloads.isdecimal() else 0,
    )
