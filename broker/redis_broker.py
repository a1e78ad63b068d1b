"""Implements the ports on Redis Streams.

A question has three states: *waiting* (for an earlier question of its conversation, or for its
start time), *open* (an entry is in a stream, or parked until a retry is due), *closed* (its record
has an outcome). Only the scripts change the state, each atomically; a closed question never changes
again. An entry belongs to the consumer of its latest delivery. When the lease ends, any consumer
may take it over, and a later settlement by the old holder is rejected.
"""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING

import structlog

from broker.context import BrokerContext
from broker.errors import BrokerUnavailableError, UnwritableError
from broker.keys import stream_key
from broker.leases import DeliveryLoader, Leases
from broker.maintenance.erasure import ConversationEraser, Files, Forgotten, Rewriting
from broker.maintenance.heartbeat import Heartbeats
from broker.maintenance.loop import Maintenance, MakeNotice, OrphanRescuer, Upkeep
from broker.maintenance.queue_admin import QueueAdmin
from broker.maintenance.scheduler import Scheduler
from broker.ports import Admin, Consumer, DraftWriter, EndedReader, Eraser, Producer, ReplyReader
from broker.producer import NO_PACE, AdmissionPolicy, RedisProducer, SubmissionLimits
from broker.reply_waiter import ReplyWaiter
from broker.result_list import RECORDS, TELEMETRY, WEBHOOKS, EndedMessages, ResultList
from broker.settlement import BrokerLimits, SettleBatch, unwritable
from broker.transport.connect import check_server
from broker.transport.scripts import DRAFT, Argument
from broker.values import ConsumerDemand, Delivery, Fields, Finish, FrameSend, Settled, Settlement
from envelope.encoding import to_json
from envelope.question import Question
from envelope.role import Role

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = structlog.get_logger("broker")


class JournalDraftWriter:
    """Stores only the newest draft of each run of an agent, because it contains the whole text.

    Drafts are journal events: they are ordered among the other events of the question, read by the
    same readers, expire with the journal, and are erased with the conversation.
    """

    def __init__(self, context: BrokerContext) -> None:
        self._context = context

    async def write_draft(self, delivery: Delivery, draft: Fields, *, replaces: str = "") -> str:
        """Write a draft and delete the one with the id `replaces`; return its id.

        Returns an empty id, and writes nothing, if the delivery is no longer held or the
        question has ended. Raises `BrokerUnavailableError`.
        """
        _, names = self._context.locate(delivery.question)
        keys = [stream_key(delivery.role, delivery.shard), names.record, names.journal]
        held: list[Argument] = [delivery.entry_id, delivery.consumer, delivery.count]
        written: bytes = await self._context.run(DRAFT, keys, [*held, to_json(draft), replaces])
        return written.decode()


def make_no_notice(_delivery: Delivery, _error: str) -> FrameSend | None:
    """Return no notice, so that the script ends the question with the fallback reply in its
    record.
    """
    return None


class RedisBroker:
    """Implements all ports on one Redis (a server or a cluster).

    All times are in seconds.
    - `lease_seconds`: time without renewal after which other consumers may take over an entry
    - `ttl_seconds`: how long the results of closed questions are kept
    - `quota`: open questions of a shard; above half of it, a tenant gets at most an equal share
    - `pace`: admission under overload; `retry_after_seconds` applies until a rate is measured
    - `longest_queue`: the most waiting messages of one conversation
    - `attempts`: failures of a hop before its entry is buried
    - `backoff_seconds`, `longest_backoff_seconds`: bounds of the delay before a retry
    - `dead_letters`, `dead_letter_ttl_seconds`: how many a shard keeps, and for how long
    - `dead_letter_ttls`: overrides of this time by tenant and assistant
    - `rewriting`: when the append-only file is rewritten
    - `make_notice`: creates the notice to the manager about an entry that killed its workers
    """

    def __init__(
        self,
        client: "Redis",
        *,
        shards: int = 1,
        lease_seconds: float = 15.0,
        ttl_seconds: float = 86_400.0,
        quota: int = 10_000,
        pace: AdmissionPolicy = NO_PACE,
        longest_queue: int = 20,
        retry_after_seconds: float = 2.0,
        attempts: int = 8,
        backoff_seconds: float = 0.5,
        longest_backoff_seconds: float = 30.0,
        dead_letters: int = 1_000,
        dead_letter_ttl_seconds: float = 7 * 86_400.0,
        dead_letter_ttls: Mapping[tuple[str, str], float] = MappingProxyType({}),
        rewriting: Rewriting = Rewriting(),  # noqa: B008 - frozen
        make_notice: MakeNotice = make_no_notice,
    ) -> None:
        longest_ttl_seconds = max((dead_letter_ttl_seconds, *dead_letter_ttls.values()))
        limits = BrokerLimits(
            ttl_ms=int(ttl_seconds * 1000),
            dead_letters=dead_letters,
            dead_letter_ttl_ms=int(longest_ttl_seconds * 1000),
            attempts=attempts,
            backoff_ms=int(backoff_seconds * 1000),
            longest_backoff_ms=int(longest_backoff_seconds * 1000),
        )
        roles = dict.fromkeys(role.value for role in Role)
        context = BrokerContext(client, shards, limits, int(lease_seconds * 1000), roles)
        loader, files = DeliveryLoader(context), Files(context, rewriting)
        rescuer = OrphanRescuer(context, self.settle, make_notice, loader)
        upkeep = Upkeep(
            context,
            files,
            rescuer.on_duty,
            seconds=dead_letter_ttl_seconds,
            of=dead_letter_ttls,
        )
        self._context = context
        self._random = random.SystemRandom()
        self._leases = Leases(context, loader)
        self._outcomes = ReplyWaiter(context)
        self._forgetting = ConversationEraser(context, files)
        self._make_notice = make_notice
        admission = SubmissionLimits(quota, longest_queue, retry_after_seconds, pace)
        self.producer: Producer = RedisProducer(context, loader, self._forgetting, admission)
        self.consumer: Consumer = self._leases
        self.replies: ReplyReader = self._outcomes
        self.drafts: DraftWriter = JournalDraftWriter(context)
        self.admin: Admin = QueueAdmin(context)
        self.eraser: Eraser = self._forgetting
        self.ended: EndedReader = EndedMessages(context, RECORDS)
        self.observed: EndedReader = EndedMessages(context, TELEMETRY)
        self.announced: EndedReader = EndedMessages(context, WEBHOOKS)
        self.maintenance = Maintenance(Scheduler(context), rescuer, upkeep, Heartbeats(context))

    async def settle(self, settlements: Sequence[tuple[Delivery, Settlement]]) -> Sequence[bool]:
        settled = await self.settle_and_take(settlements, ())
        for error in settled.away.values():
            raise error
        return settled.kept

    async def settle_and_take(
        self, settlements: Sequence[tuple[Delivery, Settlement]], wants: Sequence[ConsumerDemand]
    ) -> Settled:
        by_shard: defaultdict[int, list[int]] = defaultdict(list)
        for index, (delivery, _) in enumerate(settlements):
            by_shard[delivery.shard].append(index)
        kept = [False] * len(settlements)
        taken: list[Delivery] = []
        away: dict[int, BrokerUnavailableError] = {}
        answers = await self._context.on_shards(
            [
                self._settle(shard, [settlements[index] for index in indices], wants)
                for shard, indices in by_shard.items()
            ]
        )
        for indices, answer in zip(by_shard.values(), answers, strict=True):
            if isinstance(answer, BrokerUnavailableError):
                away.update(dict.fromkeys(indices, answer))
                continue
            for index, held in zip(indices, answer[0], strict=True):
                kept[index] = bool(held)
            taken += answer[1]
        return Settled(kept, taken, away)

    async def prepare(self, roles: Sequence[str]) -> None:
        """Check the server, and create streams and groups; raises `UnsuitableServerError`."""
        cluster = await check_server(self._context.client, self._context.shards)
        self._context.slots_apart = cluster and self._context.shards > 1
        for role in roles:
            await self._leases.make_groups(role)

    def result_list(self, name: str, consumer: str) -> ResultList:
        """Return the reader of the final replies for a push channel."""
        return ResultList(self._context, name, consumer)

    async def close(self) -> None:
        """Close the client's connections."""
        await self._context.client.aclose()

    async def _settle(
        self,
        shard: int,
        batch: Sequence[tuple[Delivery, Settlement]],
        wants: Sequence[ConsumerDemand],
    ) -> tuple[Sequence[int], Sequence[Delivery]]:
        packed = SettleBatch(shard, self._context.limits, jitter=self._random.random, wants=wants)
        forgets = {
            delivery.question: await self._forgetting.before(delivery.question)
            for delivery, settlement in batch
            if isinstance(settlement, Finish) and settlement.forget
        }
        batch = [
            (delivery, self._add(packed, delivery, settlement, forgets))
            for delivery, settlement in batch
        ]
        call = packed.call(self._context.roles)
        finishes = [
            delivery.question for delivery, settlement in batch if isinstance(settlement, Finish)
        ]
        async with self._outcomes.ending(finishes) if finishes else nullcontext():
            done, now_ms, taken = await self._context.run(packed.script, call.keys, call.args)
            for (delivery, settlement), held in zip(batch, done, strict=True):
                if held and isinstance(settlement, Finish):
                    self._outcomes.publish_local(delivery.question, settlement.reply)
        for (delivery, _), held in zip(batch, done, strict=True):
            if held and delivery.question in forgets:
                await self._forgetting.after(delivery.question)
        return done, await self._leases.add_prefetched(batch, wants, taken, float(now_ms))

    def _add(
        self,
        settlements: SettleBatch,
        delivery: Delivery,
        settlement: Settlement,
        forgets: Mapping[Question, Sequence[Forgotten]],
    ) -> Settlement:
        """Add a settlement; return it, or the `Bury` that replaces it if it cannot be encoded."""
        forgotten = forgets.get(delivery.question, ()) if forgets else ()
        try:
            settlements.add(delivery, settlement, forgotten)
        except UnwritableError as error:
            log.warning("settlement_not_encodable", role=delivery.role, error=str(error))
            settlement = unwritable(settlement, error, self._make_notice(delivery, str(error)))
            settlements.add(delivery, settlement, ())
        return settlement
