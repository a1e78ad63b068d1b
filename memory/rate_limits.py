"""Limits the requests and tokens of models over all processes, by token buckets in Redis."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from memory.key_names import limit_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

_ACQUIRE = """
-- KEYS[1] the model's buckets; ARGV per bucket: what a minute holds (0: no limit), what is asked.
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


class Limit(Protocol):
    """The limits of one model per minute; None: no limit."""

    @property
    def requests_per_minute(self) -> float | None: ...

    @property
    def tokens_per_minute(self) -> float | None: ...


class RedisLimiter:
    """Reserves requests and tokens of models; a model without a limit is never delayed."""

    def __init__(self, client: "Redis", limits: Mapping[str, Limit]) -> None:
        self._client = client
        self._limits = dict(limits)

    async def acquire(self, model: str, tokens: int) -> float:
        """Reserve one request of `tokens` and return 0.0, or return the seconds to wait."""
        limit = self._limits.get(model)
        if limit is None:
            return 0.0
        amounts = (limit.requests_per_minute or 0, 1, limit.tokens_per_minute or 0, tokens)
        wait = await await_answer(self._client.eval(_ACQUIRE, 1, limit_key(model), *amounts))
        return float(wait)
