"""Implements the port on Redis Streams.

States of a question: *waiting* (behind another of its conversation, or for its start), *open* (one
entry travels, or is parked until a retry is due), *closed* (its record has an outcome). Only the
scripts move it on, each atomically; a closed question never changes again. An entry belongs to the
consumer that holds its latest delivery; when its lease runs out anybody may take it over, and what
the old owner settles then is refused.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import structlog

from broker.consume.delivery_loader import DeliveryLoader
from broker.consume.leases import Leases
from broker.context import BrokerContext
from broker.entry_codec import base_frame_name, encode_accepted, read_delivered, submission_result
from broker.erasure import Erased
from broker.errors import BrokerUnavailableError, UnwritableError
from broker.keys import QuestionKeys, message_id_key, pace_key, results_key
from broker.maintenance.file_rewriting import Files, Rewriting
from broker.maintenance.forgetting_scope import ConversationEraser, Forgotten
from broker.maintenance.heartbeat import Heartbeats
from broker.maintenance.orphan_rescuer import OrphanRescuer, Tell
from broker.maintenance.scheduler import Scheduler, encode_superseded_reply
from broker.maintenance.upkeep import Upkeep
from broker.port import (
    Accepted,
    Busy,
    ConsumerDemand,
    DeadLetter,
    Delivery,
    Duplicate,
    Expected,
    Fields,
    Finish,
    FrameSend,
    JournalEntry,
    LeaseLost,
    LocalConsumer,
    RoleStatus,
    Settled,
    Settlement,
    Submission,
)
from broker.replies.queries import Views
from broker.replies.reply_waiter import ReplyWaiter
from broker.replies.result_list import ResultList
from broker.settle.admission import NO_PACE, AdmissionPolicy
from broker.settle.batch import BrokerLimits, ScriptCall, SettleBatch, outcome_of, unwritable
from broker.settle.script import SETTLE
from broker.transport.connect import reachable
from broker.transport.scripts import SUBMIT, RunScript
from broker.transport.server_check import check_server
from envelope.encoding import to_json
from envelope.question import Question
from envelope.role import Role

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = structlog.get_logger("broker")

DOUBT_SECONDS = 1.0
"""After so long it is known whether a call that nobody heard of was carried out."""


def tell_nobody(_delivery: Delivery, _error: str) -> FrameSend | None:
    """Let the script end a poisonous question with the last resort of its record."""
    return None


class RedisBroker:
    """The broker on one Redis. Times are seconds.

    `lease`: idle time after which entries are taken over. `ttl`: of what ended questions leave.
    `quota`: open questions of a shard; above half of it a tenant gets at most an equal share.
    `pace`: admission under overload, with `retry_after` as long as nothing was measured.
    `longest_queue`: waiting messages of a conversation. `attempts`: failures of a hop before it is
    buried. `dead_letter_ttls`: exceptions by tenant and assistant. `rewriting`: of the append-only
    file. `tell` makes the notice for the manager about an entry that killed its workers.
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
        tell: Tell = tell_nobody,
    ) -> None:
        self.shards = shards
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
        self._space = BrokerContext(client, shards, limits, int(lease_seconds * 1000), roles)
        self._quota = quota
        self._pace = pace
        self._longest_queue = longest_queue
        self._retry_after_seconds = retry_after_seconds
        self._random = random.SystemRandom()
        opening = DeliveryLoader(self._space)
        self._leases = Leases(self._space, opening)
        self._files = Files(self._space, rewriting)
        self._sweeping = OrphanRescuer(self._space, self.settle, tell, opening)
        self._upkeep = Upkeep(
            self._space,
            self._files,
            self._sweeping.on_duty,
            seconds=dead_letter_ttl_seconds,
            of=dead_letter_ttls,
        )
        self._endings = Scheduler(self._space)
        self._pulses = Heartbeats(self._space)
        self._views = Views(self._space)
        self._outcomes = ReplyWaiter(self._space, self._views)
        self._forgetting = ConversationEraser(self._space, self._files)
        self._opening = opening
        self._takers: list[Sequence[LocalConsumer]] = []
        self._tell = tell

    async def submit(self, submission: Submission) -> Accepted | Duplicate | Busy:
        shard, names = self._space.locate(submission.question)
        taker = self._taker(submission.role)
        call = self._submitting(submission, shard, names, taker)
        try:
            kind, value, *more = await self._space.run(SUBMIT, call.keys, call.fold())
            if taker is not None and kind == b"accepted" and more and more[0]:
                await self._hand(taker, submission, shard, more[0])
        except (Exception, asyncio.CancelledError):
            _doubt(taker)
            raise
        return submission_result(kind, value, *more)

    @contextmanager
    def local_consumers(self, takers: Sequence[LocalConsumer]) -> Iterator[None]:
        self._takers.append(takers)
        try:
            yield
        finally:
            self._takers.remove(takers)

    def _taker(self, role: str) -> LocalConsumer | None:
        known = (taker for takers in self._takers for taker in takers)
        return next((taker for taker in known if taker.role == role and taker.free_slots > 0), None)

    async def _hand(
        self, taker: LocalConsumer, submission: Submission, shard: int, taken: Sequence[Any]
    ) -> None:
        """Hand over what a submission took on its way: itself, or what was there before it."""
        found = read_delivered(taken, submission=submission, shard=shard, consumer=taker.consumer)
        for delivery in await self._opening.select_workable([found]):
            taker.deliver(delivery)

    async def take(
        self, role: str, consumer: str, *, slots: int, block_seconds: float
    ) -> Sequence[Delivery]:
        return await self._leases.take(role, consumer, slots=slots, block_seconds=block_seconds)

    async def settle(self, settlements: Sequence[tuple[Delivery, Settlement]]) -> Sequence[bool]:
        settled = await self.settle_and_take(settlements, ())
        for error in settled.away.values():
            raise error
        return settled.kept

    async def settle_and_take(
        self, settlements: Sequence[tuple[Delivery, Settlement]], wants: Sequence[ConsumerDemand]
    ) -> Settled:
        places: defaultdict[int, list[int]] = defaultdict(list)
        for place, (delivery, _) in enumerate(settlements):
            places[delivery.shard].append(place)
        kept = [False] * len(settlements)
        taken: list[Delivery] = []
        away: dict[int, BrokerUnavailableError] = {}
        run = SETTLE.run_at_once if len(places) == 1 else SETTLE.run
        calls = [
            self._settle(shard, [settlements[index] for index in indices], wants, run)
            for shard, indices in places.items()
        ]
        answers = [await calls[0]] if len(calls) == 1 else await self._space.on_shards(calls)
        for indices, answer in zip(places.values(), answers, strict=True):
            if isinstance(answer, BrokerUnavailableError):
                away.update(dict.fromkeys(indices, answer))
                continue
            for index, held in zip(indices, answer[0], strict=True):
                kept[index] = bool(held)
            taken += answer[1]
        return Settled(kept, taken, away)

    async def renew(self, held: Sequence[Delivery]) -> Sequence[LeaseLost]:
        return await self._leases.renew(held)

    async def sweep(self) -> float:
        return await self._sweeping.sweep()

    async def tidy(self) -> float:
        return await self._upkeep.tidy()

    async def due(self) -> float:
        return await self._endings.due()

    async def wait_for_wakeup(self, *, block_seconds: float) -> float | None:
        return await self._endings.wait_for_wakeup(block_seconds)

    async def pulse(self) -> None:
        await self._pulses.keep()

    async def give_back(self, held: Sequence[Delivery]) -> None:
        await self._leases.give_back(held)

    async def recover(self, role: str, consumer: str, known: Collection[tuple[int, str]]) -> bool:
        return await self._leases.recover(role, consumer, known)

    async def leave(self, role: str, consumer: str) -> None:
        await self._leases.leave(role, consumer)

    async def cancel(
        self, question: Question, *, forget: bool = False, reason: str | None = None
    ) -> bool:
        if forget:
            await self._forgetting.mark(question)
        was_open = await self._endings.cancel(question, forget=forget, reason=reason)
        if forget:
            await self._forgetting.after(question, alone=True)
        return was_open

    async def forget(self, question: Question, memory: Sequence[str] = ()) -> Erased:
        return await self._forgetting.forget(question, memory)

    async def rewrite_file(self) -> bool:
        """Have the server's file written anew if anything was erased; whether that goes on."""
        return await self._files.look(0, at_once=True)

    async def reply(self, question: Question) -> Fields | None:
        return await self._views.reply(question)

    async def outcome(self, question: Question, *, block_seconds: float = 0.0) -> Fields | None:
        """Return the final reply, waiting for it; thousands may wait at the cost of one read."""
        return await self._outcomes.outcome(question, block_seconds)

    def subscribe(self, question: Question) -> AbstractAsyncContextManager[Expected]:
        return self._outcomes.subscribe(question)

    async def journal(
        self, question: Question, *, after: str = "0", block_seconds: float = 0.0
    ) -> Sequence[JournalEntry]:
        return await self._views.journal(question, after=after, block_seconds=block_seconds)

    async def find(self, message_id: str) -> Sequence[Question]:
        return await self._views.find(message_id)

    async def status(self, roles: Sequence[str]) -> Sequence[RoleStatus]:
        return await self._views.status(roles)

    async def dead_letters(self, *, limit: int = 100) -> Sequence[DeadLetter]:
        return await self._views.dead_letters(limit)

    async def dead_letter(self, letter_id: str) -> DeadLetter | None:
        return await self._views.dead_letter(letter_id)

    async def drop_dead_letter(self, letter_id: str) -> bool:
        return await self._views.drop_dead_letter(letter_id)

    async def prepare(self, roles: Sequence[str]) -> None:
        """Check the server and make streams and groups; raises `UnsuitableServerError`."""
        cluster = await check_server(self._space.client, self.shards)
        self._space.slots_apart = cluster and self.shards > 1
        for role in roles:
            await self._leases.make_groups(role)

    def result_list(self, name: str, consumer: str) -> ResultList:
        """Return the reader of the final replies for a push channel."""
        return ResultList(self._space, name, consumer)

    async def close(self) -> None:
        """Close the client's connections."""
        await self._space.client.aclose()

    def _submitting(
        self, submission: Submission, shard: int, names: QuestionKeys, taker: LocalConsumer | None
    ) -> ScriptCall:
        call = self._space.call(shard, [submission.role])
        results = submission.result_list
        call.keys.extend([
            *names.closing,
            names.messages,
            message_id_key(submission.question.message_id, shard),
            results_key(results, shard) if results else names.record,
            pace_key(shard),
        ])  # fmt: skip
        call.args.extend([
            names.name,
            submission.question.tenant,
            submission.role,
            submission.frame,
            int(submission.deadline_seconds * 1000),
            to_json(submission.last_resort),
            outcome_of(submission.last_resort),
            results,
            int(submission.not_before_seconds * 1000),
            encode_accepted(submission.accepted),
            self._quota,
            self._longest_queue,
            encode_superseded_reply(submission),
            submission.retry_of,
            "" if submission.keep_seconds is None else int(submission.keep_seconds * 1000),
            "" if taker is None else taker.consumer,
            "" if taker is None else base_frame_name(submission),
            self._pace.share,
            max(1, self._pace.at_least),
            int(self._retry_after_seconds * 1000),
            len(self._pace.lanes),
            *self._pace.lanes,
        ])  # fmt: skip
        _read_along(call, taker, submission.question)
        return call

    async def _settle(
        self,
        shard: int,
        batch: Sequence[tuple[Delivery, Settlement]],
        wants: Sequence[ConsumerDemand],
        run: RunScript,
    ) -> tuple[Sequence[int], Sequence[Delivery]]:
        packed = SettleBatch(shard, self._space.limits, jitter=self._random.random, wants=wants)
        forgets = {
            delivery.question: await self._forgetting.before(delivery.question)
            for delivery, what in batch
            if isinstance(what, Finish) and what.forget
        }
        batch = [(delivery, self._add(packed, delivery, what, forgets)) for delivery, what in batch]
        call = packed.call(self._space.roles)
        finishes = [delivery.question for delivery, what in batch if isinstance(what, Finish)]
        async with self._outcomes.ending(finishes):
            with reachable():
                done, now_ms, taken = await run(self._space.client, call.keys, call.fold())
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
        """Add a settlement, and return it; what is added instead of one that cannot be written."""
        forgotten = forgets.get(delivery.question, ()) if forgets else ()
        try:
            settlements.add(delivery, settlement, forgotten)
        except UnwritableError as error:
            log.warning("settlement_not_encodable", role=delivery.role, error=str(error))
            settlement = unwritable(settlement, error, self._tell(delivery, str(error)))
            settlements.add(delivery, settlement, ())
        return settlement


def _doubt(taker: LocalConsumer | None) -> None:
    """Let a worker look for what it may own without knowing; the call may be under way still."""
    if taker is not None:
        asyncio.get_running_loop().call_later(DOUBT_SECONDS, taker.schedule_recovery)


def _read_along(call: ScriptCall, taker: LocalConsumer | None, question: Question) -> None:
    wanted = None if taker is None else taker.prefetch_memory(question)
    if wanted is None:
        call.args.extend(["", "", ""])
        return
    call.keys.extend([wanted.list, *wanted.hashes])
    call.args.extend([len(wanted.hashes), wanted.first, wanted.last])
