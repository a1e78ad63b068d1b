"""Rate limits across processes, for models (token buckets) and for calls to a platform (GCRA).

The generic cell rate algorithm (GCRA) stores for each name the time up to which turns are reserved.
Turns are reserved in the order of requests, at a fixed interval after an initial burst. If a
process dies, its turn is lost, which delays the others by one interval.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from memory.key_names import limit_key, push_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

_ACQUIRE = """
-- KEYS[1] the model's buckets. ARGV per bucket: limit per minute (0: none), requested amount.
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local stored = redis.call('HMGET', KEYS[1], 'at', '1', '2')
local wait, levels = 0, {}
for bucket = 1, 2 do
  local holds, asked = tonumber(ARGV[bucket * 2 - 1]), tonumber(ARGV[bucket * 2])
  if holds > 0 then
    local level = tonumber(stored[bucket + 1] or holds)
    level = math.min(holds, level + (now - tonumber(stored[1] or now)) * holds / 60)
    asked = math.min(asked, holds)
    wait = math.max(wait, (asked - level) * 60 / holds)
    levels[bucket] = {level, asked}
  end
end
for bucket, pair in pairs(levels) do
  local taken = wait <= 0 and pair[2] or 0
  redis.call('HSET', KEYS[1], tostring(bucket), tostring(pair[1] - taken))
end
redis.call('HSET', KEYS[1], 'at', string.format('%.6f', now))
redis.call('EXPIRE', KEYS[1], 120)
return tostring(math.max(0, wait))
"""
_TURN = """
-- KEYS[1] the time (s) up to which turns are reserved. ARGV: interval (s), burst, longest wait (s).
-- Returns the seconds to wait, or false if that is more than the longest wait.
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local every = tonumber(ARGV[1])
local used = math.max(now, tonumber(redis.call('GET', KEYS[1]) or now))
local wait = math.max(0, used - every * (tonumber(ARGV[2]) - 1) - now)
if wait > tonumber(ARGV[3]) then
  return false
end
used = used + every
redis.call('SET', KEYS[1], string.format('%.6f', used), 'PX', math.ceil((used - now) * 1000) + 1000)
return tostring(wait)
"""

_HOLD = """
-- KEYS[1] as above. ARGV: interval (s), burst, seconds without turns.
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local used = now + tonumber(ARGV[3]) + tonumber(ARGV[1]) * (tonumber(ARGV[2]) - 1)
used = math.max(used, tonumber(redis.call('GET', KEYS[1]) or now))
redis.call('SET', KEYS[1], string.format('%.6f', used), 'PX', math.ceil((used - now) * 1000) + 1000)
return 1
"""


class Limit(Protocol):
    """The limits of one model per minute; None means no limit."""

    @property
    def requests_per_minute(self) -> float | None: ...

    @property
    def tokens_per_minute(self) -> float | None: ...


class RedisLimiter:
    """Limits the requests and tokens of models. A model without a limit is never delayed."""

    def __init__(self, client: "Redis", limits: Mapping[str, Limit]) -> None:
        self._client = client
        self._limits = dict(limits)

    async def acquire(self, model: str, tokens: int) -> float:
        """Reserve one request of `tokens` and return 0.0, or return the number of seconds to
        wait.
        """
        limit = self._limits.get(model)
        if limit is None:
            return 0.0
        amounts = (limit.requests_per_minute or 0, 1, limit.tokens_per_minute or 0, tokens)
        wait = await await_answer(self._client.eval(_ACQUIRE, 1, limit_key(model), *amounts))
        return float(wait)


class RedisTurns:
    """The rate limits for the calls of one channel."""

    def __init__(self, client: "Redis", channel: str) -> None:
        self._client = client
        self._channel = channel

    async def turn(
        self, name: str, *, every_seconds: float, at_once: int, patience_seconds: float
    ) -> float | None:
        """Reserve the next turn; return the seconds to wait, or None if that exceeds
        `patience_seconds`.
        """
        key, args = self._key(name), (every_seconds, at_once, patience_seconds)
        wait = await await_answer(self._client.eval(_TURN, 1, key, *args))
        return None if wait is None else float(wait)

    async def hold(self, name: str, *, every_seconds: float, at_once: int, seconds: float) -> None:
        """Grant no turns for `seconds`, and then one at a time."""
        key, args = self._key(name), (every_seconds, at_once, seconds)
        await await_answer(self._client.eval(_HOLD, 1, key, *args))

    def _key(self, name: str) -> str:
        return push_key(self._channel, "pace", name)
