from dataclasses import dataclass
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis
from redis.exceptions import ConnectionError as RedisConnectionError

from envelope.question import Question
from memory.errors import MemoryUnavailableError, QuestionEndedError
from memory.key_names import conversation_keys
from memory.receipts import MOST_RECEIPTS, RECEIPT_SECONDS, RedisReceipts

QUESTION = Question(tenant="acme", assistant="desk", conversation_id="c1", message_id="m1")
RECEIPTS = conversation_keys(QUESTION, 1).receipts


@dataclass(frozen=True)
class Key:
    name: str = "pay/abc/1"
    action: str = "pay/abc"


def record_of(question: Question) -> str:
    return f"rd:{{0}}:record:{question.message_id}"


def receipts(client: Any, delivery: str = "one", branch: str = "") -> RedisReceipts:
    return RedisReceipts(
        client, QUESTION, branch=branch, delivery=delivery, shards=1, record_of=record_of
    )


async def test_the_delivery_that_claims_a_call_may_run_it_and_finish_it(client: Any) -> None:
    assert await receipts(client).claim(Key()) == ("claimed", b"")
    assert await receipts(client).claim(Key()) == ("claimed", b"")

    await receipts(client).finish(Key(), b"\x00paid \xff")

    assert await receipts(client, "two").claim(Key()) == ("done", b"\x00paid \xff")


async def test_a_call_that_another_delivery_claimed_is_unknown_for_good(client: Any) -> None:
    await receipts(client, "one").claim(Key())

    assert await receipts(client, "two").claim(Key()) == ("unknown", b"")
    assert await receipts(client, "one").claim(Key()) == ("unknown", b"")


async def test_an_action_in_doubt_runs_under_another_id_only_when_a_person_approves(
    client: Any,
) -> None:
    await receipts(client).claim(Key())
    await receipts(client).mark_unknown(Key())
    again = Key(name="pay/abc/2")

    assert await receipts(client).claim(again) == ("unknown", b"")
    assert await receipts(client).claim(again, was_approved=True) == ("claimed", b"")


async def test_a_late_result_replaces_the_doubt_about_its_call(client: Any) -> None:
    await receipts(client, "one").claim(Key())
    await receipts(client, "two").claim(Key())

    await receipts(client, "one").finish(Key(), b"paid")

    assert await receipts(client, "two").claim(Key()) == ("done", b"paid")


async def test_branches_and_calls_do_not_share_receipts(client: Any) -> None:
    await receipts(client, branch="w1/t1").claim(Key())

    others = [
        await receipts(client, "two", branch="w1/t2").claim(Key()),
        await receipts(client, "two", branch="w1/t1").claim(Key("pay/abc/2")),
    ]

    assert others == [("claimed", b"")] * 2


async def test_nothing_is_claimed_for_a_question_that_has_ended(client: Any) -> None:
    await client.hset(record_of(QUESTION), mapping={"d": "1", "o": "superseded"})

    with pytest.raises(QuestionEndedError):
        await receipts(client).claim(Key())

    assert await client.exists(RECEIPTS) == 0


async def test_a_result_that_arrives_after_its_conversation_was_forgotten_is_not_stored(
    client: Any,
) -> None:
    await receipts(client).claim(Key())
    await client.delete(*conversation_keys(QUESTION, 1).all)

    await receipts(client).finish(Key(), b"of somebody who was forgotten")

    assert await client.exists(RECEIPTS) == 0


async def test_receipts_live_for_a_day_and_are_bounded_without_forgetting_one(client: Any) -> None:
    for number in range(MOST_RECEIPTS):
        await receipts(client).claim(Key(f"pay/abc/{number}"))

    assert await receipts(client).claim(Key("pay/abc/more")) == ("full", b"")
    assert (await receipts(client, "two").claim(Key("pay/abc/0")))[0] == "unknown"
    assert 0 < await client.ttl(RECEIPTS) <= RECEIPT_SECONDS


class Away:
    """A client whose Redis is away at the first calls."""

    def __init__(self, times: int) -> None:
        self.times = times
        self._client = FakeAsyncRedis(protocol=2)

    async def eval(self, *call: Any) -> Any:
        self.times -= 1
        if self.times >= 0:
            raise RedisConnectionError("closed")
        return await self._client.eval(*call)


async def test_a_call_is_not_claimed_without_redis_and_a_result_waits_for_it() -> None:
    away: Any = Away(times=1)
    with pytest.raises(MemoryUnavailableError):
        await receipts(away).claim(Key())
    await receipts(away).claim(Key())
    away.times = 1

    await receipts(away).finish(Key(), b"paid")

    assert await receipts(away, "two").claim(Key()) == ("done", b"paid")
