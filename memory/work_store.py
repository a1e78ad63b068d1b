"""Stores the interim results of a question that are too large for its envelopes, and its report."""

import hashlib
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from envelope.question import Question
from memory.errors import QuestionEndedError
from memory.key_names import conversation_keys
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

KEPT_SECONDS = 86_400
"""A report can be fetched for a day after the last write of its conversation."""
LARGEST = 32_000_000
"""Bytes of one value before it is compressed."""
MOST_VALUES = 4_000
"""Values of one conversation."""
_FULL, _ENDED = -1, 0

_PUT = """
-- Store a value unless its question has ended, or its conversation has too many.
-- KEYS: work, record; ARGV: field, value, seconds, how many there may be.
if redis.call('HEXISTS', KEYS[2], 'o') == 1 then
  return 0
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0
    and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then
  return -1
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""


class RedisWorkStore:
    """Values of conversations by their content: an equal value is stored once.

    They are erased with the conversation. `record_of` returns the key of a message's record, in the
    same slot; its field `o` exists once the message has ended.
    """

    def __init__(
        self, client: "Redis", *, shards: int, record_of: Callable[[Question], str]
    ) -> None:
        self._client = client
        self._shards = shards
        self._record_of = record_of

    async def put(self, question: Question, value: bytes) -> str:
        """Store a value and return its reference; raises `ValueError` for one that is too large.

        Raises `QuestionEndedError` if the message has ended: nothing would delete it then.
        """
        if len(value) > LARGEST:
            raise ValueError(f"expected at most {LARGEST:,} bytes to store, found {len(value):,}")
        reference = hashlib.blake2b(value, digest_size=20).hexdigest()
        keys = (self._find_key(question), self._record_of(question))
        values = (reference, zlib.compress(value, 6), KEPT_SECONDS, MOST_VALUES)
        stored: int = await await_answer(self._client.eval(_PUT, len(keys), *keys, *values))
        if stored == _ENDED:
            raise QuestionEndedError(f"expected an open question, found {question!r} ended")
        if stored == _FULL:
            raise ValueError(f"expected at most {MOST_VALUES:,} stored values, found one more")
        return reference

    async def get(self, question: Question, reference: str) -> bytes:
        """Return a value of the question's conversation; raises `LookupError` if it expired."""
        found: bytes | None = await await_answer(
            self._client.hget(self._find_key(question), reference)
        )
        if found is None:
            raise LookupError(f"expected the stored result {reference!r}, found none")
        return zlib.decompress(found)

    def _find_key(self, question: Question) -> str:
        return conversation_keys(question, self._shards).work
