"""Does everything twice, on the played Redis and in the model, and compares all that there is.

One method is one operation of the broker's port, or, of those that take two round trips, one half.
"""

import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import from_json

from broker.keys import name_of
from broker.redis_broker import RedisBroker
from broker.values import (
    Accepted,
    Bury,
    Busy,
    ConsumerDemand,
    Death,
    Delivery,
    Finish,
    FrameSend,
    Settlement,
    Submission,
)
from envelope.encoding import to_json
from envelope.question import Question
from tests.simulation.branch_moves import path_of
from tests.simulation.expected_state import MANAGER, ROLES, STARTS, Entry, Rules
from tests.simulation.invariants import check_promises
from tests.simulation.model import Model
from tests.simulation.simulated_redis import (
    Client,
    Edit,
    Operation,
    SimulatedClock,
    SimulatedRedis,
    Standing,
)
from tests.simulation.state_snapshot import Facts, read_expected, read_observed
from tests.support.local_consumer import RecordingConsumer

if TYPE_CHECKING:
    from redis.asyncio import Redis

PROCESSES = ("S", "T")
"""Each has a timer and a sweeper, as every worker process has."""
SHORTEST_WAIT, LONGEST_WAIT = 0.05, 60.0
_NEVER = 1 << 60
_OUTLASTING = (b"dead", b"letters", b"files")
"""Kinds of keys that live for days: dead letters, and what is known of the file."""
POISON = f"its worker died or hung in each of {STARTS} starts"


@dataclass(frozen=True, slots=True)
class Half:
    """An operation that stands between two of its round trips; `seen` is what is still to do."""

    verb: str
    process: str
    standing: Standing
    seen: tuple[Any, ...]


def make_notice(delivery: Delivery, _error: str) -> FrameSend | None:
    """Notify the manager of poison; for poison in its stream there is no one to notify."""
    delivery.branch = path_of(delivery.whole())
    if delivery.role == MANAGER:
        return None
    return FrameSend(MANAGER, f"poison {delivery.branch}".strip().encode())


class Trial:
    """A broker on a fake Redis and the model of it, by one clock."""

    def __init__(self, clock: SimulatedClock, rules: Rules, edit: Edit | None = None) -> None:
        self.clock = clock
        self.rules = rules
        self.model = Model(rules, clock.now_ms)
        self.seen: Counter[str] = Counter()
        self._played = SimulatedRedis(ROLES, edit)
        self._brokers = {process: _broker(rules) for process in PROCESSES}
        self._names: dict[str, str] = {}
        self._before = (_NEVER, _NEVER, 0)
        for process in PROCESSES:
            self._whole(lambda broker: broker.maintenance.scheduler.send_due(), process)

    def saved(self) -> tuple[bytes, bytes]:
        """Return everything, on both sides."""
        ours = pickle.dumps((self.clock.now_ms, self.model, self._before), pickle.HIGHEST_PROTOCOL)
        return self._played.saved(), ours

    def put_back(self, saved: tuple[bytes, bytes]) -> None:
        """Return to what was saved."""
        played, ours = saved
        self._played.put_back(played)
        self.clock.now_ms, self.model, self._before = pickle.loads(ours)  # noqa: S301 - our own
        self._played.tick()

    def wait(self, milliseconds: int) -> None:
        """Let time pass."""
        self.clock.now_ms += milliseconds
        self.model.now = self.clock.now_ms
        if self.model.kept:
            self._played.tick()

    def submit(self, submission: Submission, taker: RecordingConsumer | None = None) -> Any:
        """Submit; return the answer. A taker with room is handed what is next for its role."""

        async def handing(broker: RedisBroker) -> Any:
            with broker.producer.local_consumers([] if taker is None else [taker]):
                return await broker.producer.submit(submission)

        result = self._whole(handing)
        if isinstance(result, Busy):
            # How long to wait is reckoned from what was measured; here it only has to be sane.
            assert SHORTEST_WAIT <= result.retry_after_seconds <= LONGEST_WAIT
            result = replace(result, retry_after_seconds=self.rules.retry_after_seconds)
        owed = self.model.submit(submission)
        if taker is not None:
            starts = owed == Accepted() and not submission.not_before_seconds
            entries = self.model.take(taker.role, taker.consumer, 1) if starts else []
            self.model.keep_submitted(submission, entries)
            self._compare_deliveries(taker.role, taker.held, entries)
            self.seen["handed over on submission"] += len(entries)
        answer = self._same("submit", result, owed)
        merged = isinstance(answer, Accepted) and answer.merged_into is not None
        self.seen["merged" if merged else type(answer).__name__.lower()] += 1
        return answer

    def take(self, role: str, consumer: str, places: int) -> list[Delivery]:
        """Take new entries."""
        result = self._whole(
            lambda broker: broker.consumer.take(role, consumer, slots=places, block_seconds=0.0)
        )
        self._compare_deliveries(role, result, self.model.take(role, consumer, places))
        self.check()
        return list(result)

    def settle(
        self, batch: Sequence[tuple[Delivery, Settlement]], want: ConsumerDemand | None = None
    ) -> tuple[list[bool], list[Delivery]]:
        """Settle, and prefetch."""
        wants = () if want is None else (want,)
        done = self._whole(lambda broker: broker.settle_and_take(batch, wants))
        wanted = "" if want is None else want.role
        kept = [self.model.settle(delivery, what, wanted) for delivery, what in batch]
        if want is not None:
            entries = self.model.take(want.role, want.consumer, want.slots)
            self._compare_deliveries(want.role, done.taken, entries)
        for (delivery, what), held in zip(batch, kept, strict=True):
            if isinstance(what, Finish) and what.forget and held:
                self.model.take_off(self.model.of_conversation(name_of(delivery.question)))
        self._same("settle", list(done.kept), kept)
        self.seen["settled"] += sum(kept)
        self.seen["late, refused"] += len(kept) - sum(kept)
        return kept, list(done.taken)

    def renew(self, held: Sequence[Delivery]) -> list[str]:
        """Renew leases; return the ids of what was lost."""
        result = self._whole(lambda broker: broker.consumer.renew(held)) if held else ()
        lost = self.model.renew(held)
        self._same("renew", [each.entry_id for each in result], lost)
        return lost

    def give_back(self, held: Sequence[Delivery]) -> None:
        """Hand entries back."""
        if held:
            self._whole(lambda broker: broker.consumer.give_back(held))
        self.model.give_back(held)
        self.check()

    def leave(self, role: str, consumer: str) -> None:
        """Remove a consumer."""
        self._whole(lambda broker: broker.consumer.leave(role, consumer))
        self.model.leave(role, consumer)
        self.check()

    def recover(self, role: str, consumer: str, known: Sequence[Delivery]) -> None:
        """Hand back what a consumer owns without knowing."""
        ids = [delivery.entry_id for delivery in known]
        arrived = [(0, entry_id) for entry_id in ids]
        result = self._whole(lambda broker: broker.consumer.recover(role, consumer, arrived))
        self._same("recover", result, self.model.recover(role, consumer, ids))

    def claim(self, key: str, pause: str, name: str) -> bool:
        """Claim what a pause keeps for a message; return whether it got it."""
        result = self._played.claim(key, pause, name)
        granted: bool = self._same("claim", result is not None, self.model.claim(key, pause, name))
        self.seen["claim granted" if granted else "claim refused"] += 1
        return granted

    def cancel(self, question: Question, *, forget: bool) -> bool:
        """Cancel, and forget if asked."""
        result = self._whole(lambda broker: broker.producer.cancel(question, forget=forget))
        done: bool = self._same("cancel", result, self.model.cancel(question, forget=forget))
        return done

    def sweep(self, sweeper: str) -> Half | None:
        """Give back what lost its lease; where poison is found, its burial is the other half."""
        standing = self._step(
            lambda broker: broker.maintenance.rescuer.sweep(), Standing(), sweeper
        )
        may = self.model.may_sweep(sweeper)
        wait_ms, swept, spent = standing.replies[0][0]
        assert bool(swept) is may, f"expected {sweeper} to sweep: {may}"
        if not may:
            return None
        back, poison = self.model.sweep(sweeper)
        self._on_duty(sweeper, int(wait_ms))
        self._in_order_found(back)
        # It goes through the consumers of a role one after the other: any order is right.
        ids = [(role.decode(), entry[0].decode()) for role, entry, *_ in spent]
        owed = [(role, entry.id) for role, entry in poison]
        assert sorted(ids) == sorted(owed), f"poison: expected {owed}, found {ids}"
        poison.sort(key=lambda notice: ids.index((notice[0], notice[1].id)))
        self.seen["taken back"] += len(back)
        self.seen["poison buried"] += len(poison)
        self.check()
        notices = tuple(self._make_delivery(role, entry) for role, entry in poison)
        assert standing.ended is not bool(notices), f"expected {notices} to be buried"
        return None if standing.ended else Half("sweep", sweeper, standing, notices)

    def bury_poison(self, half: Half) -> Half | None:
        """Carry a sweep on by one burial."""
        standing = self._step(
            lambda broker: broker.maintenance.rescuer.sweep(), half.standing, half.process
        )
        first, *others = half.seen
        self.model.settle(first, Bury("poison", POISON, poison_notice=make_notice(first, POISON)))
        self.check()
        assert standing.ended is not bool(others)
        return None if standing.ended else Half("sweep", half.process, standing, tuple(others))

    def look(self, process: str) -> Half | None:
        """Let a timer see what is due; what it sends is the other half."""
        standing = self._step(
            lambda broker: broker.maintenance.scheduler.send_due(), Standing(), process
        )
        seen = self.model.look()
        self._same("look", standing.ended, not (seen[0] or seen[1]))
        return None if standing.ended else Half("due", process, standing, seen)

    def send_due(self, half: Half) -> None:
        """Let the timer send what it saw."""
        standing = self._step(
            lambda broker: broker.maintenance.scheduler.send_due(), half.standing, half.process
        )
        assert standing.ended
        before = len(self.model.open_names())
        self.model.send_due(*half.seen)
        self.seen["ended at the deadline"] += before - len(self.model.open_names())
        self.check()

    def due(self) -> None:
        """Do both halves with nobody in between."""
        half = self.look(PROCESSES[0])
        if half is not None:
            self.send_due(half)

    def check(self) -> None:
        """Compare everything that there is, and hold what there is to every promise."""
        found, owed = read_observed(self._played.database, self._names), read_expected(self.model)
        for kind, what in owed.items():
            assert found[kind] == what, f"{kind}: expected {what}, found {found[kind]}"
        self.seen["compared with the model"] += 1
        check_promises(found)
        self.seen["held to every promise"] += 1
        self._check_alarm(found)

    def check_nothing_left(self) -> None:
        """Hold what there is to the promise that memory is bounded, long after the last outcome."""
        self._played.tick()
        for key, item in self._played.database.items():
            kind = key.split(b":")[2]
            assert kind in (b"stream", *_OUTLASTING), f"{key!r} is left over"
            assert kind in _OUTLASTING or not len(item.value), f"{key!r} is not empty"

    def _whole(self, operation: Operation, process: str = PROCESSES[0]) -> Any:
        return self._played.whole(self._brokers[process], operation)

    def _step(self, operation: Operation, standing: Standing, process: str) -> Standing:
        return self._played.step(self._brokers[process], operation, standing)

    def _on_duty(self, sweeper: str, wait_ms: int) -> None:
        """Hold the next sweep to the next end of a lease; until then no other process sweeps."""
        duty = self._played.database[b"rd:{0}:duty"].value
        now, until = self.model.now, int(duty[b"until"])
        self._names[duty[b"sweeper"].decode()] = sweeper
        self.model.sweeper, self.model.on_duty_until = sweeper, until
        ends = self.model.lease_end()
        assert now + wait_ms <= ends, f"a lease ends at {ends}, the next sweep is in {wait_ms} ms"
        latest = now + wait_ms + self.rules.lease_ms // 16 + 1
        assert until <= latest, f"expected duty to end by {latest}, found {until}"

    def _in_order_found(self, back: Sequence[tuple[str, Entry]]) -> None:
        """Give what one sweep returned the order that it chose: any is right."""
        rows = read_observed(self._played.database, self._names)["stream"]
        for role, entries in self.model.streams.items():
            known = {row[:2]: place for place, row in enumerate(rows[role])}
            moved = [entry for each, entry in back if each == role]
            moved.sort(key=lambda entry: known.get((entry.name, entry.frame), 0))
            entries[len(entries) - len(moved) :] = moved

    def _check_alarm(self, found: Facts) -> None:
        """Whoever sleeps until something is due is woken when something is due before."""
        earliest = [min(found[kind].values(), default=_NEVER) for kind in ("deadlines", "delayed")]
        rung = found["alarms"]
        sooner = earliest[0] < self._before[0] or earliest[1] < self._before[1]
        assert not sooner or rung > self._before[2], "something is due earlier, and no alarm rang"
        self._before = (earliest[0], earliest[1], rung)

    def _same(self, what: str, found: Any, owed: Any) -> Any:
        assert found == owed, f"{what}: expected {owed}, found {found}"
        self.check()
        return found

    def _compare_deliveries(
        self, role: str, found: Sequence[Delivery], entries: Sequence[Entry]
    ) -> None:
        """Compare what was delivered; new entries get the ids that Redis gave them."""
        for delivery, entry in zip(found, entries, strict=False):
            entry.id = entry.id or delivery.entry_id
        expected = [_fields(self._make_delivery(role, entry)) for entry in entries]
        assert [*map(_fields, found)] == expected, f"delivered: expected {expected}, found {found}"

    def _make_delivery(self, role: str, entry: Entry) -> Delivery:
        message = self.model.messages[entry.name]
        return Delivery(
            entry_id=entry.id,
            role=role,
            shard=0,
            consumer=entry.owner,
            count=1,
            question=message.question,
            frame=entry.frame,
            remaining_seconds=((entry.due or message.deadline) - self.model.now) / 1000,
            failures=entry.failures,
            result_list=message.result_list,
            merged=entry.merged,
            starts=len(entry.deaths) + 1,
            deaths=tuple(Death(worker, at / 1000) for worker, at in entry.deaths),
            gathered=b"" if entry.gathered is None else to_json(entry.gathered),
            branch=path_of(entry.frame),
        )


def _broker(rules: Rules) -> RedisBroker:
    return RedisBroker(
        cast("Redis", Client()),  # it has the few commands that the broker uses here
        lease_seconds=rules.lease_ms / 1000,
        quota=rules.quota,
        longest_queue=rules.longest_queue,
        retry_after_seconds=rules.retry_after_seconds,
        attempts=rules.attempts,
        backoff_seconds=0.0,
        make_notice=make_notice,
    )


def _fields(delivery: Delivery) -> tuple[Any, ...]:
    return (
        delivery.entry_id, delivery.role, delivery.consumer, delivery.count, delivery.question,
        delivery.whole(), round(delivery.remaining_seconds * 1000), delivery.failures,
        delivery.result_list, delivery.merged, delivery.starts, delivery.deaths,
        from_json(delivery.gathered or b"null"),
    )  # fmt: skip
