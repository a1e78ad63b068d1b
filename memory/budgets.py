"""Budgets by reservation: a call reserves before it is made, and settles its real cost afterwards.

All amounts are whole numbers; prices are in millionths of a USD. The budget of a question is in the
slot of its conversation, that of a tenant's day is a separate key.
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
-- Count amounts if none of them goes beyond its limit; count nothing else. KEYS: budget.
-- ARGV: reservation, seconds to live, then name, amount, limit ('': none) of each.
-- Returns nothing, or the name of the exhausted amount and how much of it is used. A reservation
-- that is there is granted again and counted once.
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
-- Replace what a reservation counted by what the call cost. KEYS: budget.
-- ARGV: reservation, then name and amount of each; an amount that is not named cost nothing.
-- Returns 1, or 0 where there is no such reservation, or it was settled before. A settled one is
-- forgotten: what reserves the same again makes a further call.
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
    """The amount that a reservation would have taken beyond its limit."""

    name: str
    limit: int
    used: int


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts by name, such as model calls, tokens or millionths of a USD, and their limits."""

    amounts: Mapping[str, int]
    limits: Mapping[str, int]


class RedisBudgets:
    """Reserves amounts of questions, and of tenants per day."""

    def __init__(self, client: "Redis", *, shards: int) -> None:
        self._client = client
        self._shards = shards

    async def reserve(
        self, question: Question, reservation: str, asked: Amounts
    ) -> Exhausted | None:
        """Reserve amounts of a question; return the exhausted one, and then reserve nothing."""
        key = question_budget_key(question, self._shards)
        return await self._reserve(key, reservation, asked, RUNNING_SECONDS)

    async def settle(self, question: Question, reservation: str, cost: Mapping[str, int]) -> bool:
        """Replace a reservation by what the call cost; False where it was settled before."""
        return await self._settle(question_budget_key(question, self._shards), reservation, cost)

    async def read(self, question: Question) -> dict[str, int]:
        """Return the amounts of a question so far: settled ones, and those that are reserved."""
        key = question_budget_key(question, self._shards)
        found = await await_answer(self._client.hgetall(key))
        fields = {name.decode(): value for name, value in found.items()}
        return {name: int(value) for name, value in fields.items() if not name.startswith("r:")}

    async def reserve_of_tenant(
        self, tenant: str, day: str, reservation: str, asked: Amounts
    ) -> Exhausted | None:
        """Reserve amounts of a tenant's day (ISO date); see `reserve`."""
        key = tenant_budget_key(tenant, day)
        return await self._reserve(key, reservation, asked, 2 * DAY_SECONDS)

    async def settle_of_tenant(
        self, tenant: str, day: str, reservation: str, cost: Mapping[str, int]
    ) -> bool:
        """Replace a reservation of a tenant's day by what the call cost; see `settle`."""
        return await self._settle(tenant_budget_key(tenant, day), reservation, cost)

    async def _reserve(
        self, key: str, reservation: str, asked: Amounts, seconds: int
    ) -> Exhausted | None:
        args: list[str | int] = [reservation, seconds]
        for name, amount in asked.amounts.items():
            limit = asked.limits.get(name)
            args += (name, amount, "" if limit is None else limit)
        found = await await_answer(self._client.eval(_RESERVE, 1, key, *args))
        if not found:
            return None
        name = found[0].decode()
        return Exhausted(name, asked.limits[name], int(found[1]))

    async def _settle(self, key: str, reservation: str, cost: Mapping[str, int]) -> bool:
        args = [part for pair in cost.items() for part in pair]
        return bool(await await_answer(self._client.eval(_SETTLE, 1, key, reservation, *args)))
