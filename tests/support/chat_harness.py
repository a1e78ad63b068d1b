"""A push channel before a desk whose agents follow a script."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from broker.errors import BrokerUnavailableError
from config.texts import FixedTexts, load_texts
from envelope.question import Question
from gateway.chat.connector import ChatChannel
from gateway.chat.delivery import ELLIPSIS
from gateway.chat.people import People, PersonLimits
from gateway.chat.ports import Channel, ChatPolicy
from gateway.conversations import Conversations
from gateway.desk import Desk
from gateway.port import HandOver
from memory.chat_state import RedisPushMemory
from memory.errors import MemoryUnavailableError
from memory.http_state import RedisRates
from tests.support.fake_channel import make_incoming
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

TEXTS: FixedTexts = load_texts(topic="routing")
WORKING = TEXTS.text("push_working", "en")
PLACEHOLDERS = {WORKING, ELLIPSIS}
ANSWER = "Open Routing [1]."
NO_LIMITS = PersonLimits(None, None)
AT_ONCE = ChatPolicy(burst_seconds=0.0)
WITH_DRAFTS = ChatPolicy(burst_seconds=0.0, draft_seconds=0.01)


@asynccontextmanager
async def open_connector(
    harness: WorkerHarness,
    channel: Channel,
    *,
    policy: ChatPolicy = AT_ONCE,
    deadline_seconds: float = 20.0,
    broker: Any = None,
    memory: Any = None,
    limits: PersonLimits = NO_LIMITS,
    handover: HandOver | None = None,
    **broker_options: Any,
) -> AsyncIterator[ChatChannel]:
    """Deliver for a channel while inside."""
    broker = harness.make_broker(**broker_options) if broker is None else broker
    desk = Desk(
        broker.producer,
        broker.replies,
        tenant="acme",
        assistant="docs",
        channel=channel.name,
        deadline_seconds=deadline_seconds,
        words=TEXTS.text,
        result_list=channel.name,
    )
    connector = ChatChannel(
        channel,
        desk=desk,
        broker=broker,
        memory=memory_of(harness, channel.name) if memory is None else memory,
        feedback=Conversations(harness.client, shards=1, ttl_seconds=600),
        texts=TEXTS,
        policy=policy,
        secret="of the test",  # noqa: S106 - of this test
        people=People(
            RedisRates(harness.client),
            limits,
            channel=channel.name,
            secret="of the test",  # noqa: S106 - of this test
        ),
        handover=handover,
        unavailable=(MemoryUnavailableError,),
    )
    try:
        async with connector.running():
            yield connector
    finally:
        await broker.close()


async def say(connector: ChatChannel, id_: str, text: str, order: float, **fields: str) -> Question:
    """Have a message of the conversation `c` taken in, or of another; return its question."""
    question = connector.name_question(fields.pop("conversation", "c"), id_)
    await connector.intake.accept(make_incoming(question, text, order, **fields))
    return question


def memory_of(harness: WorkerHarness, channel: str) -> RedisPushMemory:
    """What a channel remembers."""
    return RedisPushMemory(harness.client, channel, question_seconds=600, conversation_seconds=600)


class FlakyProducer:
    """A producer that cannot reach Redis the next `times` that something is submitted."""

    def __init__(self, producer: Any, times: int) -> None:
        self._producer = producer
        self.times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    async def submit(self, submission: Any) -> Any:
        self.times -= 1
        if self.times >= 0:
            raise BrokerUnavailableError("Redis does not answer")
        return await self._producer.submit(submission)


class Holding:
    """A producer or a memory that holds the first call of a method until the test lets it go on."""

    def __init__(self, held: Any, method: str) -> None:
        self._held = held
        self._method = method
        self.holds, self.goes_on = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return self._later if name == self._method else getattr(self._held, name)

    async def _later(self, *args: Any, **options: Any) -> Any:
        if not self.holds.is_set():
            self.holds.set()
            await self.goes_on.wait()
        return await getattr(self._held, self._method)(*args, **options)


async def wait_until_acknowledged(harness: WorkerHarness, name: str) -> None:
    """Wait until nothing is left on a channel's result list."""

    async def is_empty() -> bool:
        return not await harness.client.xlen(f"rd:{{0}}:results:{name}")

    await wait_until(is_empty)


async def all_shown(harness: WorkerHarness, name: str, texts: Callable[[], Iterable[str]]) -> None:
    """Wait until every outcome is shown, and a placeholder shown with one is gone again."""
    await wait_until_acknowledged(harness, name)
    await wait_until(lambda: PLACEHOLDERS.isdisjoint(texts()))
