"""Reads the whole memory of a conversation in one call, which may share a round trip."""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redis.exceptions import NoScriptError, RedisError

from envelope.memory_read import MemoryFound, MemoryRead
from memory.errors import MemoryUnavailableError
from memory.key_names import ConversationKeys

if TYPE_CHECKING:
    from redis.asyncio import Redis

_RECALL = """
-- KEYS history, summary, preferences, pause, statistics; ARGV the first and last turn wanted.
local found = { redis.call('LRANGE', KEYS[1], ARGV[1], ARGV[2]), redis.call('LLEN', KEYS[1]) }
for place = 2, #KEYS do
  found[place + 1] = redis.call('HGETALL', KEYS[place])
end
return found
"""
_DIGEST = hashlib.sha1(_RECALL.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class NamedValues:
    """The stored values of a conversation; turns are JSON."""

    turns: list[bytes]
    kept: int
    summary: dict[str, str]
    preferences: dict[str, str]
    pause: dict[str, str]
    statistics: dict[str, str]


def reading(keys: ConversationKeys, *, window: int) -> MemoryRead:
    """Return the read of a conversation as data, with the last `window` turns."""
    # A window of 0 reads the range from 1 to 0, which is always empty.
    first, last = (-window, -1) if window else (1, 0)
    hashes = (keys.summary, keys.preferences, keys.pause, keys.statistics)
    return MemoryRead(keys.history, first, last, hashes)


async def read(client: "Redis", wanted: MemoryRead) -> MemoryFound:
    """Return the found values; raises `MemoryUnavailableError`."""
    call = (1 + len(wanted.hashes), wanted.list, *wanted.hashes, wanted.first, wanted.last)
    script: Any = client
    try:
        try:
            found: MemoryFound = await script.evalsha(_DIGEST, *call)
        except NoScriptError:
            found = await script.eval(_RECALL, *call)
    except (RedisError, OSError) as error:
        raise MemoryUnavailableError(f"Redis does not answer: {error}") from error
    return found


def name_found(found: MemoryFound) -> NamedValues:
    """Return the found values by name."""
    turns, kept, *hashes = found
    return NamedValues(turns, kept, *(_fields(raw) for raw in hashes))


def _fields(raw: list[bytes]) -> dict[str, str]:
    texts = [value.decode() for value in raw]
    return dict(zip(texts[::2], texts[1::2], strict=True))
