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

from broker.admission import NO_PACE, Pace
from broker.ending import Endings, superseded
from broker.erasure import Erased
from broker.errors import BrokerUnavailableError, UnwritableError
from broker.forgetting import Forgetting, Forgotten
from broker.keys import QuestionKeys, named_key, pace_key, results_key
from broker.leasing import Leases
from broker.opening import Opening
from broker.outcomes import Outcomes
from broker.port import (
    Accepted,
    Busy,
    DeadLetter,
    Delivery,
    Duplicate,
    Expected,
    Fields,
    Finish,
    JournalEntry,
    Lost,
    RoleStatus,
    Send,
    Settled,
    Settlement,
    Submission,
    Taker,
    Want,
)
from broker.preparing import check_server
from broker.pulse import Pulses
from broker.reading import kept_at_the_door, submission_result, taken_at_the_door
from broker.results import ResultList
from broker.rewriting import Files, Rewriting
from broker.scripts import SETTLE, SUBMIT
from broker.settling import Call, Limits, Settlements, outcome_of, unwritable
from broker.space import Space
from broker.sweeping import Sweeping, Tell
from broker.upkeep import Upkeep
from broker.views import Views
from envelope.encoding import to_json
from envelope.question import Question
from envelope.role import Role

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = structlog.get_logger("broker")


DOUBT_SECONDS = 1.0
"""After so long it is known whether a call that nobody heard of was carried out."""


def tell_nobody(_delivery: Delivery, _error: str) -> Send | None:
    """Let the script end a poisonous question with the last resort of its record."""
    return None


class RedisBroker:
    """The broker on one Redis. Times are seconds.

    `lease`: after it a silent worker's entries are taken over. `ttl`: how long records, journals
    and results of ended questions stay. `quota`: open questions of one shard; from half of it on a
    tenant may hold no more than its equal share. `pace`: how many the door lets in under overload;
    `retry_after` is told where nothing was measured yet. `longest_queue`: messages that may wait in
    a conversation. `attempts`: failures of one hop before it is buried. `dead_letter_ttls`: by
    tenant and assistant, where it is another. `rewriting`: of the file. `tell` makes the frame that
    tells the manager of an entry that killed its workers.
    """

    def __init__(
        self,
        client: "Redis",
        *,
        shards: int = 1,
        lease_seconds: float = 15.0,
        ttl_seconds: float = 86_400.0,
        quota: int = 10_000,
        pace: Pace = NO_PACE,
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
        limits = Limits(
            ttl_ms=int(ttl_seconds * 1000),
            dead_letters=dead_letters,
            dead_letter_ttl_ms=int(longest_ttl_seconds * 1000),
            attempts=attempts,
            backoff_ms=int(backoff_seconds * 1000),
            longest_backoff_ms=int(longest_backoff_seconds * 1000),
        )
        roles = dict.fromkeys(role.value for role in Role)
        self._space = Space(client, shards, limits, int(lease_seconds * 1000), roles)
        self._quota = quota
        self._pace = pace
        self._longest_queue = longest_queue
        self._retry_after_seconds = retry_after_seconds
        self._random = random.SystemRandom()
        opening = Opening(self._space)
        self._leases = Leases(self._space, opening)
        self._files = Files(self._space, rewriting)
        self._sweeping = Sweeping(self._space, self.settle, tell, opening)
        self._upkeep = Upkeep(
            self._space,
            self._files,
            self._sweeping.on_duty,
            seconds=dead_letter_ttl_seconds,
            of=dead_letter_ttls,
        )
        self._endings = Endings(self._space)
        self._pulses = Pulses(self._space)
        self._views = Views(self._space)
        self._outcomes = Outcomes(self._space, self._views)
        self._forgetting = Forgetting(self._space, self._files)
        self._opening = opening
        self._takers: list[Sequence[Taker]] = []
        self._tell = tell

    async def submit(self, submission: Submission) -> Accepted | Duplicate | Busy:
        shard, names = self._space.place(submission.question)
        taker = self._taker(submission.role)
        call = self._submitting(submission, shard, names, taker)
        try:
            kind, value, *more = await self._space.run(SUBMIT, call.keys, call.folded())
            if taker is not None and kind == b"accepted" and more and more[0]:
                await self._hand(taker, submission, shard, more[0])
        except (Exception, asyncio.CancelledError):
            _doubt(taker)
            raise
        return submission_result(kind, value, *more)

    @contextmanager
    def handing_to(self, takers: Sequence[Taker]) -> Iterator[None]:
        self._takers.append(takers)
        try:
            yield
        finally:
            self._takers.remove(takers)

    def _taker(self, role: str) -> Taker | None:
        known = (taker for takers in self._takers for taker in takers)
        return next((taker for taker in known if taker.role == role and taker.room > 0), None)

    async def _hand(
        self, taker: Taker, submission: Submission, shard: int, taken: Sequence[Any]
    ) -> None:
        """Hand over what a submission took on its way: itself, or what was there before it."""
        found = taken_at_the_door(
            taken, submission=submission, shard=shard, consumer=taker.consumer
        )
        for delivery in await self._opening.opened([found]):
            taker.accept(delivery)

    async def take(
        self, role: str, consumer: str, *, places: int, block_seconds: float
    ) -> Sequence[Delivery]:
        return await self._leases.take(role, consumer, places=places, block_seconds=block_seconds)

    async def settle(self, settlements: Sequence[tuple[Delivery, Settlement]]) -> Sequence[bool]:
        settled = await self.settle_and_take(settlements, ())
        for error in settled.away.values():
            raise error
        return settled.kept

    async def settle_and_take(
        self, settlements: Sequence[tuple[Delivery, Settlement]], wants: Sequence[Want]
    ) -> Settled:
        places: defaultdict[int, list[int]] = defaultdict(list)
        for place, (delivery, _) in enumerate(settlements):
            places[delivery.shard].append(place)
        kept = [False] * len(settlements)
        taken: list[Delivery] = []
        away: dict[int, BrokerUnavailableError] = {}
        calls = [
            self._settle(shard, [settlements[index] for index in indices], wants)
            for shard, indices in places.items()
        ]
        for indices, answer in zip(places.values(), await self._space.over(calls), strict=True):
            if isinstance(answer, BrokerUnavailableError):
                away.update(dict.fromkeys(indices, answer))
                continue
            for index, held in zip(indices, answer[0], strict=True):
                kept[index] = bool(held)
            taken += answer[1]
        return Settled(kept, taken, away)

    async def renew(self, held: Sequence[Delivery]) -> Sequence[Lost]:
        return await self._leases.renew(held)

    async def sweep(self) -> float:
        return await self._sweeping.sweep()

    async def tidy(self) -> float:
        return await self._upkeep.tidy()

    async def due(self) -> float:
        return await self._endings.due()

    async def alarm(self, *, block_seconds: float) -> float | None:
        return await self._endings.alarm(block_seconds)

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

    def expecting(self, question: Question) -> AbstractAsyncContextManager[Expected]:
        return self._outcomes.expecting(question)

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
        self, submission: Submission, shard: int, names: QuestionKeys, taker: Taker | None
    ) -> Call:
        call = self._space.call(shard, [submission.role])
        results = submission.result_list
        call.keys.extend([
            *names.closing,
            names.messages,
            named_key(submission.question.message_id, shard),
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
            to_json(submission.accepted),
            self._quota,
            self._longest_queue,
            to_json(superseded(submission.question)) if submission.not_before_seconds else "",
            submission.retry_of,
            "" if submission.keep_seconds is None else int(submission.keep_seconds * 1000),
            "" if taker is None else taker.consumer,
            "" if taker is None else kept_at_the_door(submission),
            self._pace.share,
            max(1, self._pace.at_least),
            int(self._retry_after_seconds * 1000),
            len(self._pace.lanes),
            *self._pace.lanes,
        ])  # fmt: skip
        _read_along(call, taker, submission.question)
        return call

    async def _settle(
        self, shard: int, batch: Sequence[tuple[Delivery, Settlement]], wants: Sequence[Want]
    ) -> tuple[Sequence[int], Sequence[Delivery]]:
        settlements = Settlements(
            shard, self._space.limits, jitter=self._random.random, wants=wants
        )
        forgets = {
            delivery.question: await self._forgetting.before(delivery.question)
            for delivery, what in batch
            if isinstance(what, Finish) and what.forget
        }
        batch = [
            (delivery, self._added(settlements, delivery, what, forgets))
            for delivery, what in batch
        ]
        call = settlements.call(self._space.roles)
        finishes = [delivery.question for delivery, what in batch if isinstance(what, Finish)]
        async with self._outcomes.ending(finishes):
            done, now_ms, taken = await self._space.run(SETTLE, call.keys, call.folded())
            for (delivery, settlement), held in zip(batch, done, strict=True):
                if held and isinstance(settlement, Finish):
                    self._outcomes.ended(delivery.question, settlement.reply)
        for (delivery, _), held in zip(batch, done, strict=True):
            if held and delivery.question in forgets:
                await self._forgetting.after(delivery.question)
        return done, await self._leases.taken(batch, wants, taken, float(now_ms))

    def _added(
        self,
        settlements: Settlements,
        delivery: Delivery,
        settlement: Settlement,
        forgets: Mapping[Question, Sequence[Forgotten]],
    ) -> Settlement:
        """Add a settlement, and return it; what is added instead of one that cannot be written."""
        forgotten = forgets.get(delivery.question, ()) if forgets else ()
        try:
            settlements.add(delivery, settlement, forgotten)
        except UnwritableError as error:
            log.warning("settlement_unwritable", role=delivery.role, error=str(error))
            settlement = unwritable(settlement, error, self._tell(delivery, str(error)))
            settlements.add(delivery, settlement, ())
        return settlement


def _doubt(taker: Taker | None) -> None:
    """Let a worker look for what it may own without knowing; the call may be under way still."""
    if taker is not None:
        asyncio.get_running_loop().call_later(DOUBT_SECONDS, taker.doubt)


def _read_along(call: Call, taker: Taker | None, question: Question) -> None:
    wanted = None if taker is None else taker.along(question)
    if wanted is None:
        call.args.extend(["", "", ""])
        return
    call.keys.extend([wanted.list, *wanted.hashes])
    call.args.extend([len(wanted.hashes), wanted.first, wanted.last])
