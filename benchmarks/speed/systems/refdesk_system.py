"""Refdesk: the whole assistant flow with all guarantees, and agents without work."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from benchmarks.speed.refdesk_flow import idle_agents, process
from benchmarks.speed.systems.port import Ask, Setting, Watch
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from broker.values import Delivery, Settlement
from envelope.conversation import Turn
from envelope.envelope import Envelope
from envelope.memory_access import MemoryFound, MemoryRead
from envelope.question import Question
from envelope.role import Role
from gateway.desk import Desk, Message
from memory.conversation import RedisMemory, Remembered
from worker.port import Handler, PrefetchesMemory
from worker.process import collect_rarely

LEASE_SECONDS = 15.0
DEADLINE_SECONDS = 60.0
WATCHED = (Role.MANAGER, Role.LANG)


class LongMemory(RedisMemory):
    """Reads the memory as usual, and adds the recorded turns to every question."""

    turns: tuple[Turn, ...] = ()

    def parse_recall(self, recalled: MemoryFound) -> Remembered:
        """Return the turns of the payload."""
        remembered = super().parse_recall(recalled)
        return replace(remembered, history=self.turns) if self.turns else remembered


class Watched:
    """A handler that notifies a `Watch` about its work."""

    def __init__(self, handler: Handler, watch: Watch) -> None:
        self.role = handler.role
        self._handler = handler
        self._reads_along = handler if isinstance(handler, PrefetchesMemory) else None
        self._watch = watch

    def prefetch_memory(self, question: Question) -> MemoryRead | None:
        """Read the memory that the handler needs."""
        return None if self._reads_along is None else self._reads_along.prefetch_memory(question)

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        """Notify the watch, then work."""
        if self.role is not Role.MANAGER:
            await self._watch.held(envelope.message_id)
        elif envelope.hop is None:
            self._watch.started(envelope.message_id)
        return await self._handler.handle(delivery, envelope)


@asynccontextmanager
async def harness(setting: Setting, watch: Watch) -> AsyncIterator[Ask]:
    """Open the system."""
    collect_rarely()
    lease_seconds = setting.lease_seconds or LEASE_SECONDS

    def broker(url: str) -> RedisBroker:
        return RedisBroker(connect(url), shards=setting.shards, lease_seconds=lease_seconds)

    def watch_handler(handler: Handler) -> Handler:
        # The other roles are not slowed down by being watched.
        return Watched(handler, watch) if handler.role in WATCHED else handler

    client = broker(setting.client_url)
    # As in `deploy`, where client and workers share one broker; not where trips of the
    # workers alone are counted.
    shares = setting.works and setting.client_url == setting.worker_url
    ask = _asking(client, setting.payload.text, watch)
    try:
        if not setting.works:
            yield ask
            return
        worker = client if shares else broker(setting.worker_url)
        agents = idle_agents(setting.payload.writes, watch.worked)
        harness = process(
            worker,
            lambda: broker(setting.worker_url),
            _memory(setting),
            agents,
            lease_seconds=lease_seconds,
            watched=watch_handler,
        )
        async with harness.running():
            yield ask
        if not shares:
            await worker.close()
    finally:
        await client.close()


def _asking(client: RedisBroker, text: str, watch: Watch) -> Ask:
    """Return a function that asks the desk and waits for the reply stored in Redis."""
    desk = Desk(
        client.producer,
        client.replies,
        tenant="bench",
        assistant="bench",
        channel="bench",
        deadline_seconds=DEADLINE_SECONDS,
        words=lambda _key, language: language,
    )

    async def ask(name: str) -> None:
        reply = await desk.ask(Message(text, name, name))
        if reply["outcome"] != "answered":
            raise RuntimeError(f"expected an answer, found {reply}")
        watch.finished(name)

    return ask


def _memory(setting: Setting) -> RedisMemory:
    memory = LongMemory(connect(setting.worker_url), shards=setting.shards)
    memory.turns = tuple(Turn.model_validate(turn) for turn in setting.payload.history)
    return memory
