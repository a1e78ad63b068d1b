"""Keeps model answers in Redis: those of a running question, and those that all may share."""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from redis.exceptions import RedisError

from envelope.question import Question
from memory.errors import MemoryUnavailableError
from memory.keys import cache_key, conversation_keys

if TYPE_CHECKING:
    from redis.asyncio import Redis

T = TypeVar("T")
WAITS_SECONDS = (0.05, 0.2, 0.8, 2.0)
RUNNING_SECONDS = 3600
"""Longer than any question runs; a question's end deletes its calls anyway."""


class Call(Protocol):
    """Names one model call of one hop."""

    @property
    def question(self) -> Question: ...

    @property
    def stage(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def prompt_hash(self) -> str: ...


class Shared(Protocol):
    """Names an answer that questions of one assistant share."""

    @property
    def tenant(self) -> str: ...

    @property
    def assistant(self) -> str: ...

    @property
    def content_hash(self) -> str: ...


class RedisCallStore:
    """The paid calls of the questions that run."""

    def __init__(self, client: "Redis", *, shards: int) -> None:
        self._client = client
        self._shards = shards

    async def get(self, key: Call) -> bytes | None:
        """Return the stored answer of this call."""
        calls = conversation_keys(key.question, self._shards).calls
        found: bytes | None = await answered(self._client.hget(calls, _field(key)))
        return found

    async def put(self, key: Call, answer: bytes) -> None:
        """Store the answer of this call; it is paid, so a short absence of Redis is waited out."""
        calls = conversation_keys(key.question, self._shards).calls
        for wait in (*WAITS_SECONDS, None):
            pipeline = self._client.pipeline(transaction=False)
            pipeline.hset(calls, _field(key), answer)
            pipeline.expire(calls, RUNNING_SECONDS)
            try:
                await answered(pipeline.execute())
                return
            except MemoryUnavailableError:
                if wait is None:
                    raise
                await asyncio.sleep(wait)


class RedisCacheStore:
    """Answers that all questions of an assistant share, for a short time."""

    def __init__(self, client: "Redis") -> None:
        self._client = client

    async def get(self, key: Shared) -> bytes | None:
        """Return the shared answer, while it lives."""
        name = cache_key(key.tenant, key.assistant, key.content_hash)
        found: bytes | None = await answered(self._client.get(name))
        return found

    async def put(self, key: Shared, answer: bytes, *, ttl_seconds: int) -> None:
        """Share an answer for `ttl_seconds`."""
        name = cache_key(key.tenant, key.assistant, key.content_hash)
        await answered(self._client.set(name, answer, ex=ttl_seconds))


async def answered(command: "Awaitable[T] | Any") -> Any:
    """Return what Redis answers; raises `MemoryUnavailableError` when it does not."""
    try:
        return await command
    except (RedisError, OSError) as error:
        raise MemoryUnavailableError(f"Redis does not answer: {error}") from error


def _field(key: Call) -> str:
    return f"{key.question.message_id}/{key.stage}/{key.attempt}/{key.prompt_hash}"
