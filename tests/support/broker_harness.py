"""A broker on some Redis, and short words for what the tests do with it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from broker.keys import question_keys
from broker.redis_broker import RedisBroker
from broker.values import (
    Accepted,
    Busy,
    Delivery,
    Duplicate,
    Fields,
    Finish,
    Forward,
    FrameSend,
    JournalEntry,
    Submission,
)
from envelope.envelope import Envelope
from envelope.memory_access import MemoryWrite
from envelope.outcome import Outcome
from envelope.question import Question
from tests.support.empty_redis import play_redis
from tests.support.waiting import wait_until

ROLES = ("manager", "search")
LAST_RESORT: Fields = {"outcome": "failed", "text": "sorry"}
LONG = "word " * 1000
SHORT_LEASE = 0.05


def question(message: str = "m1", *, conversation: str = "c1", tenant: str = "acme") -> Question:
    return Question(
        tenant=tenant, assistant="desk", conversation_id=conversation, message_id=message
    )


def finish(
    text: str = "found it", *, remember: Sequence[MemoryWrite] = (), forget: Any = ""
) -> Finish:
    reply: Fields = {"outcome": "answered", "text": text}
    return Finish(Outcome.ANSWERED, reply, remember=remember, forget=forget)


def forward(frame: bytes = b"next", *, role: str = "search") -> Forward:
    return Forward((FrameSend(role, frame),), journal=(JournalEntry("routed", {"target": role}),))


def carrying(asked: Question | None = None, **payload: JsonValue) -> Envelope:
    """Return an envelope with a long text."""
    asked = question() if asked is None else asked
    return Envelope(
        tenant=asked.tenant,
        assistant=asked.assistant,
        channel="cli",
        conversation_id=asked.conversation_id,
        message_id=asked.message_id,
        create_ts=1.0,
        update_ts=1.0,
        deadline_ts=9.0,
        payload={"text": LONG, **payload},
    )


@dataclass
class BrokerHarness:
    """A broker under test and the client under it."""

    broker: RedisBroker
    client: Any
    make: Callable[..., RedisBroker]

    async def submit(
        self,
        asked: Question | None = None,
        *,
        frame: bytes = b"frame",
        deadline_seconds: float = 60.0,
        result_list: str = "",
        not_before_seconds: float = 0.0,
        role: str = "manager",
        dead_letter_changes: Fields | None = None,
    ) -> Accepted | Duplicate | Busy:
        return await self.broker.producer.submit(
            Submission(
                question=asked if asked is not None else question(),
                frame=frame,
                role=role,
                deadline_seconds=deadline_seconds,
                last_resort=LAST_RESORT,
                dead_letter_changes=dead_letter_changes or {},
                result_list=result_list,
                not_before_seconds=not_before_seconds,
            )
        )

    async def take(self, role: str = "manager", consumer: str = "w1") -> Delivery:
        """Take exactly one entry."""
        taken = await self.take_all(role, consumer)
        assert len(taken) == 1
        return taken[0]

    async def take_all(self, role: str = "manager", consumer: str = "w1") -> Sequence[Delivery]:
        return await self.broker.consumer.take(role, consumer, slots=10, block_seconds=0.0)

    async def settle(self, delivery: Delivery, settlement: Any) -> bool:
        (settled,) = await self.broker.settle([(delivery, settlement)])
        return settled

    async def reclaim(self, role: str = "manager", consumer: str = "w2") -> Delivery:
        """Take over one entry as soon as its lease ran out."""

        async def look() -> Sequence[Delivery]:
            await self.broker.maintenance.rescuer.sweep()
            return await self.take_all(role, consumer)

        result = await wait_until(look)
        assert len(result) == 1
        delivery: Delivery = result[0]
        return delivery

    async def due_reply(self, asked: Question) -> Fields:
        """Run what is due until the question has its reply."""

        async def look() -> Fields | None:
            await self.broker.maintenance.scheduler.send_due()
            return await self.broker.replies.read_reply(asked)

        reply: Fields = await wait_until(look)
        return reply

    async def kinds(self, asked: Question | None = None) -> list[str]:
        entries = await self.broker.replies.read_journal(asked if asked is not None else question())
        return [entry.kind for entry in entries]

    async def results(self, name: str = "chat", shard: int = 0) -> list[Any]:
        found: list[Any] = await self.client.xrange(f"rd:{{{shard}}}:results:{name}")
        return found

    async def record(self, asked: Question) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = await self.client.hgetall(question_keys(asked, 0).record)
        return found


async def prepare_harness(client: Any) -> BrokerHarness:
    """Return a prepared broker with a short lease."""

    def make(**options: Any) -> RedisBroker:
        return RedisBroker(client, **{"lease_seconds": SHORT_LEASE, **options})

    broker = make()
    await broker.prepare(ROLES)
    return BrokerHarness(broker, client, make)


@asynccontextmanager
async def play_broker() -> AsyncIterator[BrokerHarness]:
    """A prepared broker on a Redis that is played in the process."""
    client = play_redis().client()
    yield await prepare_harness(client)
    await client.aclose()
