from dataclasses import dataclass
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis
from redis.exceptions import ConnectionError as RedisConnectionError

from envelope.question import Question
from memory.errors import MemoryUnavailableError, QuestionEndedError
from memory.model_calls import WAITS_SECONDS, RedisCallStore

QUESTION = Question(tenant="acme", assistant="desk", conversation_id="c1", message_id="m1")


@dataclass(frozen=True)
class Key:
    question: Question = QUESTION
    stage: str = "essence"
    attempt: int = 0
    prompt_hash: str = "abc"


class Away:
    """A client whose first calls find no Redis."""

    def __init__(self, times: int) -> None:
        self.times = times
        self._client = FakeAsyncRedis(protocol=2)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def eval(self, *call: Any) -> Any:
        self.times -= 1
        if self.times >= 0:
            raise RedisConnectionError("closed")
        return await self._client.eval(*call)


def record_of(question: Question) -> str:
    return f"rd:{{0}}:record:{question.message_id}"


async def test_a_paid_answer_is_stored_through_a_short_absence_of_redis() -> None:
    client: Any = Away(times=1)
    calls = RedisCallStore(client, shards=1, record_of=record_of)

    await calls.put(Key(), b"paid")

    assert await calls.get(Key()) == b"paid"


@pytest.mark.slow
async def test_a_redis_that_stays_away_is_reported() -> None:
    client: Any = Away(times=len(WAITS_SECONDS) + 1)

    with pytest.raises(MemoryUnavailableError):
        await RedisCallStore(client, shards=1, record_of=record_of).put(Key(), b"paid")


async def test_answers_after_the_end_of_their_question_are_not_stored() -> None:
    client = FakeAsyncRedis(protocol=2)
    calls = RedisCallStore(client, shards=1, record_of=record_of)
    await client.hset(record_of(QUESTION), mapping={"d": "1", "o": "superseded"})

    await calls.put(Key(), b"paid")

    assert await client.keys("*:calls") == []


async def test_a_call_for_an_ended_question_fails_before_it_is_paid() -> None:
    client = FakeAsyncRedis(protocol=2)
    calls = RedisCallStore(client, shards=1, record_of=record_of)
    await calls.put(Key(), b"paid")

    await client.hset(record_of(QUESTION), mapping={"d": "1", "o": "answered"})

    with pytest.raises(QuestionEndedError):
        await calls.get(Key())
