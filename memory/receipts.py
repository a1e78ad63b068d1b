"""Receipts for tool calls with side effects, so that none is executed twice; see `tools.calls`.

They are in the hash slot of their conversation and are erased with it. They are stored for a day,
which is longer than any message takes, including the wait for an approval.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from envelope.question import Question
from memory.errors import MemoryUnavailableError, QuestionEndedError
from memory.key_names import conversation_keys
from memory.model_calls import WAITS_SECONDS, await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

RECEIPT_SECONDS = 86_400
MOST_RECEIPTS = 1_000
"""Maximum number of calls with side effects per conversation and day; further calls are
rejected.
"""
DONE, UNKNOWN = "done", "unknown"

_CLAIM = """
-- Claim a call, or return its state. KEYS: receipts, record.
-- ARGV: call, action, delivery, seconds, the most receipts, '1' if the user approved the call.
-- Returns {state, result}, or 1 if the question has ended.
if redis.call('HEXISTS', KEYS[2], 'o') == 1 then
  return 1
end
local known = redis.call('HGET', KEYS[1], 'call:' .. ARGV[1])
if known then
  local state, rest = string.match(known, '^(%a+) ?(.*)$')
  if state == 'claimed' and rest ~= ARGV[3] then
    redis.call('HSET', KEYS[1], 'call:' .. ARGV[1], 'unknown', 'doubt:' .. ARGV[2], '1')
    return { 'unknown', '' }
  end
  return { state, state == 'done' and rest or '' }
end
if ARGV[6] ~= '1' and redis.call('HEXISTS', KEYS[1], 'doubt:' .. ARGV[2]) == 1 then
  return { 'unknown', '' }
end
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[5]) then
  return { 'full', '' }
end
redis.call('HSET', KEYS[1], 'call:' .. ARGV[1], 'claimed ' .. ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return { 'claimed', '' }
"""

_SETTLE = """
-- Store the outcome of a claimed call, unless its conversation was erased since. KEYS: receipts.
-- ARGV: call, action, state, result.
if redis.call('HEXISTS', KEYS[1], 'call:' .. ARGV[1]) == 0 then
  return 0
end
if ARGV[3] == 'unknown' then
  redis.call('HSET', KEYS[1], 'call:' .. ARGV[1], 'unknown', 'doubt:' .. ARGV[2], '1')
else
  redis.call('HSET', KEYS[1], 'call:' .. ARGV[1], 'done ' .. ARGV[4])
end
return 1
"""


class ReceiptName(Protocol):
    """The identity of a call within its question and branch."""

    @property
    def action(self) -> str: ...

    @property
    def name(self) -> str: ...


class RedisReceipts:
    """Receipts of calls; `record_of` returns the key of a message's record, in the same slot.

    `delivery` identifies one delivery of an envelope; a call that another delivery claimed may
    already have been executed. `branch` is the path of the branch that makes the call, or empty
    outside of branches.
    """

    def __init__(
        self,
        client: "Redis",
        question: Question,
        *,
        branch: str,
        delivery: str,
        shards: int,
        record_of: Callable[[Question], str],
    ) -> None:
        self._client = client
        self._scope = f"{question.message_id}/{branch}"
        self._delivery = delivery
        self._question = question
        self._receipts = conversation_keys(question, shards).receipts
        self._record = record_of(question)

    async def claim(self, key: ReceiptName, *, was_approved: bool = False) -> tuple[str, bytes]:
        """Return the state and the stored result; `claimed` means that this delivery may run it.

        Raises `QuestionEndedError` if the message has ended, or `MemoryUnavailableError`. In both
        cases, the call must not be made.
        """
        asked = (*self._fields(key), self._delivery, RECEIPT_SECONDS, MOST_RECEIPTS)
        state_and_result = await await_answer(
            self._client.eval(
                _CLAIM, 2, self._receipts, self._record, *asked, "1" if was_approved else ""
            )
        )
        if state_and_result == 1:
            raise QuestionEndedError(f"question {self._question!r} has already ended")
        return state_and_result[0].decode(), state_and_result[1]

    async def finish(self, key: ReceiptName, result: bytes) -> None:
        """Store the result of a claimed call, with retries while Redis does not respond."""
        await self._settle(key, DONE, result)

    async def mark_unknown(self, key: ReceiptName) -> None:
        """Record that the outcome of a claimed call is unknown, with retries as in `finish`."""
        await self._settle(key, UNKNOWN, b"")

    async def _settle(self, key: ReceiptName, state: str, result: bytes) -> None:
        values: tuple[str | bytes, ...] = (*self._fields(key), state, result)
        for wait in (*WAITS_SECONDS, None):
            try:
                await await_answer(self._client.eval(_SETTLE, 1, self._receipts, *values))
                return
            except MemoryUnavailableError:
                if wait is None:
                    raise
                await asyncio.sleep(wait)

    def _fields(self, key: ReceiptName) -> tuple[str, str]:
        return f"{self._scope}/{key.name}", f"{self._question.message_id}/{key.action}"
