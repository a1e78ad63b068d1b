"""Durable queues of webhook deliveries, and of e-mails to visitors, in Redis.

A delivery contains only IDs. Its text is read from the journal when it is sent, so that nothing is
sent after an erasure.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, JsonValue

from envelope.question import Question
from memory.key_names import delivery_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

TOLD_SECONDS = 90 * 86_400
"""How long an event without a message is remembered, so that it is sent only once."""
MOST_DEAD = 1_000
"""Maximum number of dead deliveries. Beyond that, each new one replaces an earlier one."""

_ADD = """
-- KEYS: due, deliveries. ARGV: id, delivery. Does nothing if the delivery is already waiting.
if redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2]) == 1 then
  local now = redis.call('TIME')
  redis.call('ZADD', KEYS[1], now[1], ARGV[1])
end
"""
_ADD_ONCE = """
-- KEYS: due, deliveries, told. ARGV: id, delivery, seconds, delay (s). Returns 0 for a known event.
if not redis.call('SET', KEYS[3], '1', 'NX', 'EX', ARGV[3]) then
  return 0
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[1], tonumber(redis.call('TIME')[1]) + tonumber(ARGV[4]), ARGV[1])
return 1
"""
_CLAIM = """
-- KEYS: due, deliveries. ARGV: count, lease (s). Returns due deliveries.
local now = tonumber(redis.call('TIME')[1])
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])) do
  local delivery = redis.call('HGET', KEYS[2], id)
  if delivery then
    redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), id)
    found[#found + 1] = delivery
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
return found
"""
_PUT_OFF = """
-- KEYS: due, deliveries. ARGV: id, delivery, seconds. Does nothing for a removed delivery.
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
  redis.call('ZADD', KEYS[1], tonumber(redis.call('TIME')[1]) + tonumber(ARGV[3]), ARGV[1])
end
"""
_BURY = """
-- KEYS: due, deliveries, dead. ARGV: id, delivery, the most dead deliveries.
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
if redis.call('HLEN', KEYS[3]) >= tonumber(ARGV[3]) then
  redis.call('HDEL', KEYS[3], redis.call('HKEYS', KEYS[3])[1])
end
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
"""
_REVIVE = """
-- KEYS: due, deliveries, dead. ARGV: id, delivery.
if redis.call('HDEL', KEYS[3], ARGV[1]) == 1 then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
  redis.call('ZADD', KEYS[1], redis.call('TIME')[1], ARGV[1])
end
"""
_SUBSCRIBE = """
-- KEYS: subscriptions. ARGV: names of endpoints. Returns the time at which each was first seen.
local now = redis.call('TIME')
local since = {}
for index, name in ipairs(ARGV) do
  redis.call('HSETNX', KEYS[1], name, now[1] .. '.' .. string.format('%06d', tonumber(now[2])))
  since[index] = redis.call('HGET', KEYS[1], name)
end
return since
"""


class WebhookDelivery(BaseModel, frozen=True):
    """An event for one endpoint or, if `endpoint` is empty, for all endpoints that subscribe to it.

    `event_id` stays the same when the event is sent again. `data` is the content of an event
    without a message. `at` is in Unix seconds.
    """

    event_id: str
    kind: str
    tenant: str
    assistant: str
    at: float
    endpoint: str = ""
    conversation_id: str = ""
    message_id: str = ""
    data: dict[str, JsonValue] = {}
    attempts: int = 0
    error: str = ""

    @property
    def id(self) -> str:
        """The id of the delivery."""
        return f"{self.endpoint}:{self.event_id}"

    @property
    def question(self) -> Question | None:
        """The message of the event, or None."""
        if not self.message_id:
            return None
        return Question(
            tenant=self.tenant,
            assistant=self.assistant,
            conversation_id=self.conversation_id,
            message_id=self.message_id,
        )


class RedisWebhookQueue:
    """A queue of deliveries by name; every method raises `MemoryUnavailableError`."""

    def __init__(self, client: "Redis", name: str = "webhooks") -> None:
        self._client = client
        self._name = name

    async def subscribe(self, names: Sequence[str]) -> Mapping[str, float]:
        """Return the Unix time at which each endpoint was first configured, in seconds.

        The time is stored at the first call, so that a new endpoint gets no events from before its
        configuration.
        """
        key = self._key("subscriptions")
        since = await await_answer(self._client.eval(_SUBSCRIBE, 1, key, *names))
        return {name: float(at) for name, at in zip(names, since, strict=True)}

    async def add(self, delivery: WebhookDelivery) -> None:
        """Add a delivery, due immediately, unless it is already waiting."""
        await self._run(_ADD, 2, delivery.id, delivery.model_dump_json())

    async def add_once(self, delivery: WebhookDelivery, *, delay_seconds: float = 0) -> bool:
        """Add a delivery, unless its event was added within `TOLD_SECONDS`; return whether it was
        added.
        """
        names = [self._key("due"), self._key("deliveries")]
        told = self._key(f"told:{delivery.event_id}")
        arguments = (delivery.id, delivery.model_dump_json(), TOLD_SECONDS, delay_seconds)
        return bool(await await_answer(self._client.eval(_ADD_ONCE, 3, *names, told, *arguments)))

    async def claim(self, *, count: int, lease_seconds: float) -> Sequence[WebhookDelivery]:
        """Claim due deliveries; after the lease, another process can claim them."""
        claimed = await self._run(_CLAIM, 2, count, lease_seconds)
        return [WebhookDelivery.model_validate_json(encoded) for encoded in claimed]

    async def finish(self, delivery: WebhookDelivery) -> None:
        """Remove a delivery that has arrived or is no longer needed."""
        due, deliveries = self._key("due"), self._key("deliveries")
        await await_answer(self._client.hdel(deliveries, delivery.id))
        await await_answer(self._client.zrem(due, delivery.id))

    async def put_off(self, delivery: WebhookDelivery, *, seconds: float) -> None:
        """Schedule a delivery again after `seconds`."""
        await self._run(_PUT_OFF, 2, delivery.id, delivery.model_dump_json(), seconds)

    async def bury(self, delivery: WebhookDelivery) -> None:
        """Mark a delivery as dead, so that it is not retried automatically."""
        await self._run(_BURY, 3, delivery.id, delivery.model_dump_json(), MOST_DEAD)

    async def list_dead(self) -> Sequence[WebhookDelivery]:
        """Return the dead deliveries, oldest first."""
        return await self._list("dead")

    async def list_waiting(self) -> Sequence[WebhookDelivery]:
        """Return the deliveries that have not arrived yet, oldest first."""
        return await self._list("deliveries")

    async def count_waiting(self) -> int:
        """Return the number of deliveries that have not arrived yet."""
        return int(await await_answer(self._client.hlen(self._key("deliveries"))))

    async def revive(self, delivery: WebhookDelivery) -> None:
        """Retry a dead delivery, starting again with its first attempt."""
        fresh = delivery.model_copy(update={"attempts": 0, "error": ""})
        await self._run(_REVIVE, 3, fresh.id, fresh.model_dump_json())

    async def drop_dead(self) -> int:
        """Delete the dead deliveries, and return how many there were."""
        dead = self._key("dead")
        count = int(await await_answer(self._client.hlen(dead)))
        await await_answer(self._client.delete(dead))
        return count

    async def _list(self, kind: str) -> Sequence[WebhookDelivery]:
        stored = await await_answer(self._client.hvals(self._key(kind)))
        deliveries = [WebhookDelivery.model_validate_json(encoded) for encoded in stored]
        return sorted(deliveries, key=lambda delivery: delivery.at)

    def _key(self, kind: str) -> str:
        return delivery_key(self._name, kind)

    async def _run(self, script: str, keys: int, *arguments: object) -> list[bytes]:
        names = [self._key(kind) for kind in ("due", "deliveries", "dead")[:keys]]
        result = await await_answer(self._client.eval(script, keys, *names, *map(str, arguments)))
        return result if isinstance(result, list) else []
