"""The outcomes of swarms, from which strategies and numbers of workers are learned.

An outcome is numbers and the names of a kind of question and of a strategy, without any text. It is
written by the script that ends its message, so that each message has one, whatever process dies.
Each shard has a list of each assistant, which keeps the newest outcomes and expires when none is
added. An entry is `<digest of the message> <thumb> <milliseconds> <JSON>`.
"""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envelope.memory_access import Append
from envelope.question import Question, shard_of
from memory.key_names import outcomes_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

OUTCOME_SECONDS = 90 * 86_400
"""How long the outcomes of an assistant live after the newest of them."""
MOST_OUTCOMES = 1_000
_LEAST_OUTCOMES = 20
_READS_AT_ONCE = 32

_RATE = """
-- Set the thumb of an outcome. KEYS: outcomes. ARGV: digest of the message, thumb.
-- Returns 1, or 0 where the message has no outcome (any longer).
local entries = redis.call('LRANGE', KEYS[1], 0, -1)
for place = #entries, 1, -1 do
  local digest, rest = string.match(entries[place], '^(%x+) %-?%d (.*)$')
  if digest == ARGV[1] then
    redis.call('LSET', KEYS[1], place - 1, digest .. ' ' .. ARGV[2] .. ' ' .. rest)
    return 1
  end
end
return 0
"""


@dataclass(frozen=True, slots=True)
class LoggedOutcome:
    """One outcome as JSON, with the thumb of a user: 1, -1, or 0 for none."""

    thumb: int
    at_ms: int
    written: str


class RedisOutcomeLog:
    """The outcomes of each assistant; every method raises `MemoryUnavailableError`."""

    def __init__(self, client: "Redis", *, shards: int) -> None:
        self._client = client
        self._shards = shards

    async def load(self, tenant: str, assistant: str) -> Sequence[LoggedOutcome]:
        """Return the newest outcomes of an assistant, oldest first."""
        reads = asyncio.Semaphore(_READS_AT_ONCE)

        async def read(shard: int) -> list[bytes]:
            # One command per key: each shard is in another slot of the cluster.
            async with reads:
                key = outcomes_key(tenant, assistant, shard)
                found: list[bytes] = await await_answer(self._client.lrange(key, 0, -1))
                return found

        lists = await asyncio.gather(*map(read, range(self._shards)))
        outcomes = [_parse(entry) for entries in lists for entry in entries]
        return sorted(outcomes, key=lambda one: one.at_ms)[-MOST_OUTCOMES:]

    async def rate(self, question: Question, thumb: int) -> bool:
        """Set the thumb of a message, 1 or -1; False where it has no outcome."""
        shard = shard_of(question.conversation, self._shards)
        key = outcomes_key(question.tenant, question.assistant, shard)
        call = self._client.eval(_RATE, 1, key, _digest(question), thumb)
        return bool(await await_answer(call))

    async def forget(self, tenant: str, assistant: str) -> None:
        """Delete all outcomes of an assistant."""
        for shard in range(self._shards):
            await await_answer(self._client.delete(outcomes_key(tenant, assistant, shard)))


def log_outcome(question: Question, written: str, *, shards: int) -> Append:
    """Return the write that adds the outcome of a message to those of its assistant."""
    shard = shard_of(question.conversation, shards)
    entry = f"{_digest(question)} 0 {int(time.time() * 1000)} {written}"
    return Append(
        key=outcomes_key(question.tenant, question.assistant, shard),
        values=(entry,),
        keep=max(_LEAST_OUTCOMES, MOST_OUTCOMES // shards),
        ttl_seconds=OUTCOME_SECONDS,
    )


def _digest(question: Question) -> str:
    name = "\0".join((*question.conversation, question.message_id))
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _parse(entry: bytes) -> LoggedOutcome:
    _, thumb, at_ms, written = entry.decode().split(" ", 3)
    return LoggedOutcome(int(thumb), int(at_ms), written)
