"""A lease by which one process of a channel does a task that needs a single process."""

from typing import TYPE_CHECKING

from memory.key_names import push_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

_KEEP = """
-- KEYS[1] who is on duty. ARGV: who asks, for how long (ms). Returns 1 to who is on duty now.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""

_LEAVE = """
-- KEYS[1] as above. ARGV: who leaves.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return 1
"""


class RedisDuty:
    """The lease of one task of a channel, for the process `holder`.

    It makes duplicate work unlikely but does not exclude it: a process that was paused may not know
    yet that its lease has expired.
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
