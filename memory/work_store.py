"""Values of a conversation that are too large for envelopes, in the hash slot of the conversation.

These are interim results and reports of questions, and documents that the user attached. They are
erased with the conversation.
"""

import hashlib
import zlib
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from envelope.question import Question
from memory.errors import QuestionEndedError
from memory.key_names import conversation_keys
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

KEPT_SECONDS = 86_400
"""Time to live after the last write in a conversation."""
LARGEST = 32_000_000
"""Maximum number of bytes per value before compression."""
MOST_VALUES = 4_000
"""Maximum number of values per conversation."""
_FULL, _ENDED = -1, 0

_PUT = """
-- Store a value unless its question has ended, or its conversation has too many.
-- KEYS: work, record; ARGV: field, value, seconds, the most values.
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
MOST_ATTACHMENTS = 10
MOST_ATTACHED_BYTES = 16 * 1024 * 1024
"""Maximum stored size of all documents of a conversation, in bytes."""

_PUT_ATTACHMENT = """
-- KEYS[1] the documents of a conversation. ARGV: id, value, time to live (s), the most documents,
-- the most bytes. Returns 0 if there is no room, 1 for a new document, 2 for a replaced one.
local count, bytes = 1, string.len(ARGV[2])
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  if name ~= ARGV[1] then
    count = count + 1
    bytes = bytes + redis.call('HSTRLEN', KEYS[1], name)
  end
end
if count > tonumber(ARGV[4]) or bytes > tonumber(ARGV[5]) then
  return 0
end
local added = redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 2 - added
"""


class RedisWorkStore:
    """Content-addressed values of conversations; equal values are stored once.

    They are erased with the conversation. `record_of` returns the key of a message's record, in the
    same hash slot, whose field `o` exists once the message has ended.
    """

    def __init__(
        self, client: "Redis", *, shards: int, record_of: Callable[[Question], str]
    ) -> None:
        self._client = client
        self._shards = shards
        self._record_of = record_of

    async def put(self, question: Question, value: bytes) -> str:
        """Store a value and return its reference; raises `ValueError` if it is too large.

        Raises `QuestionEndedError` if the message has ended, because nothing would delete the value
        afterwards.
        """
        if len(value) > LARGEST:
            raise ValueError(f"expected at most {LARGEST:,} bytes to store, found {len(value):,}")
        reference = hashlib.blake2b(value, digest_size=20).hexdigest()
        keys = (self._find_key(question), self._record_of(question))
        values = (reference, zlib.compress(value, 6), KEPT_SECONDS, MOST_VALUES)
        stored: int = await await_answer(self._client.eval(_PUT, len(keys), *keys, *values))
        if stored == _ENDED:
            raise QuestionEndedError(f"{question!r} has already ended")
        if stored == _FULL:
            raise ValueError(f"expected at most {MOST_VALUES:,} stored values, found one more")
        return reference

    async def get(self, question: Question, reference: str) -> bytes:
        """Return a value of the question's conversation. Raises `LookupError` if it has expired."""
        compressed: bytes | None = await await_answer(
            self._client.hget(self._find_key(question), reference)
        )
        if compressed is None:
            raise LookupError(f"expected the stored result {reference!r}, found none")
        return zlib.decompress(compressed)

    def _find_key(self, question: Question) -> str:
        return conversation_keys(question, self._shards).work


class Stored(IntEnum):
    """The result of storing an attached document."""

    NO_ROOM = 0
    ADDED = 1
    REPLACED = 2


class RedisAttachments:
    """The documents of conversations, by id; `ttl_of` returns how many seconds they are kept.

    Reading a document extends that time, so that documents are kept for as long as their
    conversation is in use.
    """

    def __init__(
        self,
        client: "Redis",
        *,
        shards: int,
        ttl_of: Callable[[Question], int],
        most_documents: int = MOST_ATTACHMENTS,
    ) -> None:
        self._client = client
        self._shards = shards
        self._ttl_of = ttl_of
        self.most_documents = most_documents

    async def put(self, question: Question, document_id: str, value: bytes) -> "Stored":
        """Store a document of the question's conversation if there is enough space."""
        stored: int = await await_answer(
            self._client.eval(
                _PUT_ATTACHMENT,
                1,
                self._key(question),
                document_id,
                value,
                self._ttl_of(question),
                self.most_documents,
                MOST_ATTACHED_BYTES,
            )
        )
        return Stored(stored)

    async def remove(self, question: Question, document_id: str) -> None:
        """Remove a document of the question's conversation."""
        await await_answer(self._client.hdel(self._key(question), document_id))

    async def find(self, question: Question, document_ids: Sequence[str]) -> dict[str, bytes]:
        """Return the documents with these ids, by id, as far as the conversation contains them."""
        if not document_ids:
            return {}
        key = self._key(question)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.hmget(key, list(document_ids))
        pipeline.expire(key, self._ttl_of(question))
        values, _ = await await_answer(pipeline.execute())
        return {
            name: value
            for name, value in zip(document_ids, values, strict=True)
            if value is not None
        }

    async def all(self, question: Question) -> dict[str, bytes]:
        """Return every document of the question's conversation, by id."""
        stored: dict[bytes, bytes] = await await_answer(self._client.hgetall(self._key(question)))
        return {name.decode(): value for name, value in stored.items()}

    def _key(self, question: Question) -> str:
        return conversation_keys(question, self._shards).attachments
