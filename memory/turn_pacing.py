"""Spaces the calls to a rate-limited platform over all processes of a channel.

Each name has one stored time, up to which its turns are reserved (the generic cell rate algorithm,
GCRA). Turns are reserved in the order of the requests, at a fixed distance, after a burst of a few.
The turn of a process that died is lost, which delays the others by one turn.
"""

from typing import TYPE_CHECKING

from memory.key_names import push_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

_TURN = """
-- KEYS[1] the time (s) up to which turns are used up. ARGV: seconds between turns, turns at once,
-- patience (s). Returns the seconds to wait; nothing when that is more than the patience.
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
-- KEYS[1] as above. ARGV: seconds between turns, turns at once, seconds to give none.
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local used = now + tonumber(ARGV[3]) + tonumber(ARGV[1]) * (tonumber(ARGV[2]) - 1)
used = math.max(used, tonumber(redis.call('GET', KEYS[1]) or now))
redis.call('SET', KEYS[1], string.format('%.6f', used), 'PX', math.ceil((used - now) * 1000) + 1000)
return 1
"""


class RedisTurns:
    """The turns of one channel."""

    def __init__(self, client: "Redis", channel: str) -> None:
        self._client = client
        self._channel = channel

    async def turn(
        self, name: str, *, every_seconds: float, at_once: int, patience_seconds: float
    ) -> float | None:
        """Reserve the next turn; return the seconds to wait, None if above `patience_seconds`."""
        key, args = self._key(name), (every_seconds, at_once, patience_seconds)
        wait = await await_answer(self._client.eval(_TURN, 1, key, *args))
        return None if wait is None else float(wait)

    async def hold(self, name: str, *, every_seconds: float, at_once: int, seconds: float) -> None:
        """Grant no turn for `seconds`, then one at a time."""
        key, args = self._key(name), (every_seconds, at_once, seconds)
        await await_answer(self._client.eval(_HOLD, 1, key, *args))

    def _key(self, name: str) -> str:
        return push_key(self._channel, "pace", name)
