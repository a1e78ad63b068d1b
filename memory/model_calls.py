"""Stored model answers of running messages, and answers shared between messages."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from redis.exceptions import RedisError

from envelope.question import Question
from memory.errors import MemoryUnavailableError, QuestionEndedError
from memory.key_names import cache_key, conversation_keys

if TYPE_CHECKING:
    from redis.asyncio import Redis

T = TypeVar("T")
WAITS_SECONDS = (0.05, 0.2, 0.8, 2.0)
RUNNING_SECONDS = 3600
"""Longer than any message takes. The calls of a message are deleted when it is completed."""

_GET = """
-- Return a stored call, or 1 if its question has ended.
-- KEYS: calls, record; ARGV: field.
if redis.call('HEXISTS', KEYS[2], 'o') == 1 then
  return 1
end
return redis.call('HGET', KEYS[1], ARGV[1])
"""

_PUT = """
-- Store a call unless its question has ended, after which nothing would delete it. KEYS: calls,
-- record; ARGV: field, answer, seconds.
if redis.call('HEXISTS', KEYS[2], 'o') == 1 then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""

_SHARE = """
-- Share an answer unless its question has ended, because its conversation may be erased.
-- KEYS: shared, record; ARGV: hash, answer, seconds, the most answers.
if redis.call('HEXISTS', KEYS[2], 'o') == 1 then
  return 0
end
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then
  redis.call('DEL', KEYS[1])
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""
MOST_SHARED = 200
"""Maximum number of shared answers per conversation. When it is reached, all of them are
deleted.
"""


class ModelCallKey(Protocol):
    """The identity of one model call of one hop."""

    @property
    def question(self) -> Question: ...

    @property
    def stage(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def prompt_hash(self) -> str: ...


class Shared(Protocol):
    """The identity of an answer that is shared by the messages of one assistant."""

    @property
    def tenant(self) -> str: ...

    @property
    def assistant(self) -> str: ...

    @property
    def content_hash(self) -> str: ...

    @property
    def question(self) -> Question: ...


class RedisCallStore:
    """The paid model calls of running messages.

    `record_of` returns the key of a message's record, in the same slot. Its field `o` exists once
    the message has ended.
    """

    def __init__(
        self, client: "Redis", *, shards: int, record_of: Callable[[Question], str]
    ) -> None:
        self._client = client
        self._shards = shards
        self._record_of = record_of

    async def get(self, key: ModelCallKey) -> bytes | None:
        """Return the stored answer of this call, or None.

        Raises `QuestionEndedError` if the message has ended, so that a worker that was suspended
        beyond its lease does not pay for an answer that would be discarded.
        """
        keys = self._keys(key)
        answer: bytes | int | None = await await_answer(
            self._client.eval(_GET, len(keys), *keys, _field(key))
        )
        if isinstance(answer, int):
            raise QuestionEndedError(f"question {key.question!r} has already ended")
        return answer

    async def put(self, key: ModelCallKey, answer: bytes) -> None:
        """Store the answer of this call, with retries while Redis does not respond.

        Does nothing after the message has ended, because it may have been erased.
        """
        keys = self._keys(key)
        values: tuple[str | bytes | int, ...] = (_field(key), answer, RUNNING_SECONDS)
        for wait in (*WAITS_SECONDS, None):
            try:
                await await_answer(self._client.eval(_PUT, len(keys), *keys, *values))
                return
            except MemoryUnavailableError:
                if wait is None:
                    raise
                await asyncio.sleep(wait)

    def _keys(self, key: ModelCallKey) -> tuple[str, str]:
        calls = conversation_keys(key.question, self._shards).calls
        return calls, self._record_of(key.question)


class RedisCacheStore:
    """Answers that are shared by all messages of an assistant for a short time.

    An answer is stored with the conversation that paid for it and erased with it. The reference to
    it contains only a hash of the request. `record_of` is the same as in `RedisCallStore`.
    """

    def __init__(
        self, client: "Redis", *, shards: int, record_of: Callable[[Question], str]
    ) -> None:
        self._client = client
        self._shards = shards
        self._record_of = record_of

    async def get(self, key: Shared) -> bytes | None:
        """Return the shared answer, or None if it has expired."""
        name = cache_key(key.tenant, key.assistant, key.content_hash)
        shared_key: bytes | None = await await_answer(self._client.get(name))
        if shared_key is None:
            return None
        answer: bytes | None = await await_answer(
            self._client.hget(shared_key.decode(), key.content_hash)
        )
        return answer

    async def put(self, key: Shared, answer: bytes, *, ttl_seconds: int) -> None:
        """Share an answer for `ttl_seconds`, unless its message has ended."""
        shared = conversation_keys(key.question, self._shards).shared
        keys = (shared, self._record_of(key.question))
        values = (key.content_hash, answer, ttl_seconds, MOST_SHARED)
        if await await_answer(self._client.eval(_SHARE, len(keys), *keys, *values)):
            name = cache_key(key.tenant, key.assistant, key.content_hash)
            await await_answer(self._client.set(name, shared, ex=ttl_seconds))


async def await_answer(command: "Awaitable[T] | Any") -> Any:
    """Return the reply of Redis; raises `MemoryUnavailableError` if it does not respond."""
    try:
        return await command
    except (RedisError, OSError) as error:
        raise MemoryUnavailableError(f"Redis does not respond: {error}") from error


def _field(key: ModelCallKey) -> str:
    return f"{key.question.message_id}/{key.stage}/{key.attempt}/{key.prompt_hash}"
