from dataclasses import dataclass
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis
from redis.exceptions import ConnectionError as RedisConnectionError

from envelope.question import Question
from memory.answers import WAITS_SECONDS, RedisCallStore
from memory.errors import MemoryUnavailableError

QUESTION = Question(tenant="acme", assistant="desk", conversation_id="c1", message_id="m1")


@dataclass(frozen=True)
class Key:
    question: Question = QUESTION
    stage: str = "essence"
    attempt: int = 0
    prompt_hash: str = "abc"


class Away:
    """A client whose first pipelines find no Redis."""

    def __init__(self, times: int) -> None:
        self.times = times
        self._client = FakeAsyncRedis(protocol=2)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def pipeline(self, **options: Any) -> Any:
        self.times -= 1
        return self if self.times >= 0 else self._client.pipeline(**options)

    def hset(self, *_: Any) -> None: ...

    def expire(self, *_: Any) -> None: ...

    async def execute(self) -> None:
        raise RedisConnectionError("closed")


async def test_a_paid_answer_is_stored_through_a_short_absence_of_redis() -> None:
    client: Any = Away(times=1)
    calls = RedisCallStore(client, shards=1)

    await calls.put(Key(), b"paid")

    assert await calls.get(Key()) == b"paid"


@pytest.mark.slow
async def test_a_redis_that_stays_away_is_told() -> None:
    client: Any = Away(times=len(WAITS_SECONDS) + 1)

    with pytest.raises(MemoryUnavailableError):
        await RedisCallStore(client, shards=1).put(Key(), b"paid")
