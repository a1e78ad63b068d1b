"""Budgets with reservations: each call first reserves its maximum cost, and settles its actual cost
later.

All amounts are integers; prices are in millionths of a USD. The budget of a question is in the hash
slot of its conversation; the daily budget of a tenant is stored under a separate key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envelope.question import Question
from memory.key_names import question_budget_key, tenant_budget_key
from memory.model_calls import RUNNING_SECONDS, await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

DAY_SECONDS = 86_400

_RESERVE = """
-- Reserve all amounts, or none if one would exceed its limit. KEYS: budget.
-- ARGV: reservation, time to live (s), then name, amount, limit ('': none) of each.
-- Returns false, or the name of the exhausted amount and its used amount. Repeating an existing
-- reservation succeeds and counts once.
local reservation = 'r:' .. ARGV[1]
if redis.call('HEXISTS', KEYS[1], reservation) == 1 then
  return false
end
local parts = {}
for place = 3, #ARGV, 3 do
  local name, amount, limit = ARGV[place], tonumber(ARGV[place + 1]), tonumber(ARGV[place + 2])
  local used = tonumber(redis.call('HGET', KEYS[1], name) or 0)
  if limit and used + amount > limit then
    return { name, used }
  end
  parts[#parts + 1] = name .. ' ' .. ARGV[place + 1]
end
for place = 3, #ARGV, 3 do
  redis.call('HINCRBY', KEYS[1], ARGV[place], ARGV[place + 1])
end
redis.call('HSET', KEYS[1], reservation, table.concat(parts, '\\n'))
redis.call('EXPIRE', KEYS[1], ARGV[2])
return false
"""

_SETTLE = """
-- Replace the reserved amounts by the actual cost. KEYS: budget.
-- ARGV: reservation, then name and amount of each; a missing amount is 0.
-- Returns 1, or 0 if there is no such reservation or it was settled before. A settled reservation
-- is deleted: reserving the same name again is a new call.
local reservation = 'r:' .. ARGV[1]
local held = redis.call('HGET', KEYS[1], reservation)
if not held then
  return 0
end
for name, amount in string.gmatch(held, '(%S+) (%d+)') do
  redis.call('HINCRBY', KEYS[1], name, string.format('%d', -tonumber(amount)))
end
for place = 2, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[1], ARGV[place], ARGV[place + 1])
end
redis.call('HDEL', KEYS[1], reservation)
return 1
"""


@dataclass(frozen=True, slots=True)
class Exhausted:
    """The amount whose limit a reservation would exceed."""

    name: str
    limit: int
    used: int


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts by name, such as model calls, tokens or millionths of a USD, and their limits."""

    amounts: Mapping[str, int]
    limits: Mapping[str, int]


class RedisBudgets:
    """Budgets of questions, and daily budgets of tenants."""

    def __init__(self, client: "Redis", *, shards: int) -> None:
        self._client = client
        self._shards = shards

    async def reserve(
        self, question: Question, reservation: str, asked: Amounts
    ) -> Exhausted | None:
        """Reserve amounts for a question; if a limit would be exceeded, reserve nothing and return
        the exhausted amount.
        """
        key = question_budget_key(question, self._shards)
        return await self._reserve(key, reservation, asked, RUNNING_SECONDS)

    async def settle(self, question: Question, reservation: str, cost: Mapping[str, int]) -> bool:
        """Replace a reservation with the actual cost; return False if it was already settled."""
        return await self._settle(question_budget_key(question, self._shards), reservation, cost)

    async def read(self, question: Question) -> dict[str, int]:
        """Return the settled and reserved amounts of a question, by name."""
        key = question_budget_key(question, self._shards)
        stored = await await_answer(self._client.hgetall(key))
        fields = {name.decode(): value for name, value in stored.items()}
        return {name: int(value) for name, value in fields.items() if not name.startswith("r:")}

    async def reserve_of_tenant(
        self, tenant: str, day: str, reservation: str, asked: Amounts
    ) -> Exhausted | None:
        """Reserve amounts for a tenant on a day (ISO date); see `reserve`."""
        key = tenant_budget_key(tenant, day)
        return await self._reserve(key, reservation, asked, 2 * DAY_SECONDS)

    async def settle_of_tenant(
        self, tenant: str, day: str, reservation: str, cost: Mapping[str, int]
    ) -> bool:
        """Replace a tenant's reservation for a day with the actual cost; see `settle`."""
        return await self._settle(tenant_budget_key(tenant, day), reservation, cost)

    async def _reserve(
        self, key: str, reservation: str, asked: Amounts, seconds: int
    ) -> Exhausted | None:
        args: list[str | int] = [reservation, seconds]
        for name, amount in asked.amounts.items():
            limit = asked.limits.get(name)
            args += (name, amount, "" if limit is None else limit)
        exhausted = await await_answer(self._client.eval(_RESERVE, 1, key, *args))
        if not exhausted:
            return None
        name = exhausted[0].decode()
        return Exhausted(name, asked.limits[name], int(exhausted[1]))

    async def _settle(self, key: str, reservation: str, cost: Mapping[str, int]) -> bool:
        args = [part for pair in cost.items() for part in pair]
        return bool(await await_answer(self._client.eval(_SETTLE, 1, key, reservation, *args)))
