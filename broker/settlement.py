"""Packs settlements into the keys and arguments of one script call per shard.

`broker.settle_script` defines their order. Each question has a fallback reply (`last_resort`),
which is sent if the deadline is missed or an entry becomes a dead letter. The two variants differ
in a few fields, so they are stored as three lines: the shared beginning, the rest for the deadline,
and the rest for a dead letter. If both are equal, they are stored as one line.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from broker.errors import UnwritableError
from broker.journal_events import JournalEvent, note_fields
from broker.keys import QuestionKeys, question_keys, results_key, shard_keys, stream_key
from broker.settle_script import (
    FORWARD,
    KINDS,
    SETTLE,
    SendForm,
    pack_base,
    pack_branch,
    pack_bury,
    pack_closing_keys,
    pack_demand,
    pack_finish,
    pack_forgotten_keys,
    pack_forward,
    pack_frames_key,
    pack_header,
    pack_join_keys,
    pack_letters,
    pack_memory_key,
    pack_memory_write,
    pack_open_keys,
    pack_retry,
    pack_return_result,
    pack_scatter,
    pack_scatter_keys,
    pack_send,
    pack_streams,
)
from broker.transport.scripts import Argument
from broker.values import (
    LONG_FRAME,
    BaseFrame,
    Bury,
    ConsumerDemand,
    Delivery,
    Fields,
    Finish,
    Forward,
    FrameSend,
    JournalEntry,
    Retry,
    ReturnResult,
    ScatterBranches,
    Settlement,
)
from envelope.encoding import brief, to_json
from envelope.memory_access import Append, Delete, Increment, MemoryWrite, SetFields

LEAST_SAVING = 2
"""A delta is used only if it is at least this many times shorter than its base frame."""
STARTS = 3
"""The number of times that an entry whose handler kills the process is started before it is
buried.
"""


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """The limits of the broker; see `RedisBroker` for each."""

    ttl_ms: int
    dead_letters: int
    attempts: int
    backoff_ms: int
    longest_backoff_ms: int
    dead_letter_ttl_ms: int = 7 * 86_400_000


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """The keys and arguments of one script call."""

    keys: list[str]
    args: list[Argument]

    @classmethod
    def on_streams(cls, shard: int, roles: Collection[str], limits: BrokerLimits) -> "ScriptCall":
        """Start a script call that may send to these roles."""
        head = pack_streams(ttl=str(limits.ttl_ms), roles=len(roles))
        return cls([stream_key(role, shard) for role in roles], [*head, *roles])

    @classmethod
    def on_shard(cls, shard: int, roles: Collection[str], limits: BrokerLimits) -> "ScriptCall":
        """Start a script call that may also close questions."""
        call = cls.on_streams(shard, roles, limits)
        call.keys.extend(shard_keys(shard).all)
        call.args.extend(
            pack_letters(cap=str(limits.dead_letters), letters_ttl=str(limits.dead_letter_ttl_ms))
        )
        return call


class SettleBatch:
    """Collects the settlements of one shard and packs them into one script call."""

    def __init__(
        self,
        shard: int,
        limits: BrokerLimits,
        *,
        jitter: Callable[[], float],
        wants: Sequence[ConsumerDemand] = (),
    ) -> None:
        self._shard = shard
        self._wants = wants
        self._places: dict[str, int] = {}
        for want in wants:
            self._places[want.role] = self._places.get(want.role, 0) + want.slots
        self._limits = limits
        self._closes = False
        self._jitter = jitter
        self._roles: dict[str, None] = {}
        self._keys: list[str] = []
        self._args: list[Argument] = []
        self.script = FORWARD

    def add(
        self, delivery: Delivery, settlement: Settlement, forgets: Sequence[tuple[str, str, str]]
    ) -> None:
        """Add a settlement; `forgets` contains the record, journal, and result list of each erased
        message.

        Raises `UnwritableError`, and adds nothing, for a value that JSON cannot represent.
        """
        first_key = len(self._keys)
        try:
            self._add(delivery, settlement, forgets)
        except ValueError as error:
            del self._keys[first_key:]
            raise UnwritableError(
                f"expected values that JSON can express: {brief(str(error))}"
            ) from error

    def _add(
        self, delivery: Delivery, settlement: Settlement, forgets: Sequence[tuple[str, str, str]]
    ) -> None:
        names = delivery.keys
        if names is None:
            names = delivery.keys = question_keys(delivery.question, self._shard)
        if isinstance(settlement, Retry) and self._is_last(delivery, settlement):
            settlement = Bury("attempts_exhausted", settlement.reason, journal=settlement.journal)
        self._roles[delivery.role] = None
        first_key = len(self._keys)
        journal = list_journal_fields(delivery, settlement)
        arguments = [*journal, *self._pack(delivery, names, settlement, forgets)]
        kind = type(settlement)
        if kind is not Forward:
            self.script = SETTLE
        self._args += pack_header(
            kind=KINDS[kind].name,
            key_count=len(self._keys) - first_key,
            argument_count=len(arguments),
            role=delivery.role,
            entry_id=delivery.entry_id,
            consumer=delivery.consumer,
            delivery_count=delivery.count,
            question=names.name,
            journal_fields=len(journal),
            branch=delivery.branch,
        )
        self._args += arguments

    def _pack(
        self,
        delivery: Delivery,
        names: QuestionKeys,
        settlement: Settlement,
        forgets: Sequence[tuple[str, str, str]],
    ) -> Iterable[Argument]:
        """Return the arguments of a settlement's kind, and add its keys."""
        match settlement:
            case Forward():
                return self._pack_forward(delivery, names, settlement)
            case ScatterBranches():
                return self._pack_scatter(names, settlement)
            case ReturnResult():
                return self._pack_result(names, settlement)
            case Retry():
                return self._pack_retry(delivery, names, settlement)
            case Finish():
                return self._pack_finish(delivery, names, settlement, forgets)
            case Bury():
                return self._pack_bury(delivery, names, settlement)

    def call(self, known: Iterable[str]) -> ScriptCall:
        """Return the script call; a batch that may start a waiting message declares all `known`
        roles.
        """
        self._roles.update(dict.fromkeys(want.role for want in self._wants))
        roles = {**self._roles, **dict.fromkeys(known)} if self._closes else self._roles
        begin = ScriptCall.on_streams if self.script is FORWARD else ScriptCall.on_shard
        start = begin(self._shard, roles, self._limits)
        demands: list[Argument] = [len(self._wants)]
        for want in self._wants:
            demands += pack_demand(role=want.role, consumer=want.consumer, slots=want.slots)
        return ScriptCall(start.keys + self._keys, start.args + demands + self._args)

    def _is_last(self, delivery: Delivery, retry: Retry) -> bool:
        # Retries after a given time are limited by the deadline only; other retries are counted.
        return retry.seconds is None and delivery.failures + 1 >= self._limits.attempts

    def _pack_forward(
        self, delivery: Delivery, names: QuestionKeys, forward: Forward
    ) -> list[Argument]:
        self._add_open_keys(delivery, names)
        sends, resort = forward.sends, forward.last_resort
        packed: list[Argument] = [
            *pack_forward(
                last_resort=_encode_resort(forward),
                last_resort_outcome="" if resort is None else outcome_of(resort),
                sends=len(sends),
            )
        ]
        for send in sends:
            self._roles[send.role] = None
            if len(sends) == 1 and self._places.get(send.role, 0) > 0:
                self._places[send.role] -= 1
                packed += self._pack_for_consumer(send, delivery, names)
            else:
                packed += pack_send(role=send.role, form="whole", frame=send.whole())
        return packed

    def _pack_for_consumer(
        self, send: FrameSend, delivery: Delivery, names: QuestionKeys
    ) -> Iterable[Argument]:
        form, frame = frame_for_consumer(send, delivery)
        head = pack_send(role=send.role, form=form, frame=frame)
        if form == "whole" or send.kept is None:
            return head
        if form == "kept":
            self._keys += pack_frames_key(frames=names.frames)
        return (*head, *pack_base(base=send.kept.name))

    def _pack_retry(
        self, delivery: Delivery, names: QuestionKeys, retry: Retry
    ) -> Iterable[Argument]:
        self._add_open_keys(delivery, names)
        failures = delivery.failures + (1 if retry.seconds is None else 0)
        return pack_retry(
            frame=retry.frame,
            role=delivery.role,
            entry_id=delivery.entry_id,
            failures=failures,
            delay_ms=self._delay_ms(failures, retry),
        )

    def _delay_ms(self, failures: int, retry: Retry) -> int:
        if retry.seconds is not None:
            return int(retry.seconds * 1000)
        longest = min(
            self._limits.longest_backoff_ms, self._limits.backoff_ms * 2 ** min(failures, 20)
        )
        return int(longest * self._jitter())

    def _pack_finish(
        self,
        delivery: Delivery,
        names: QuestionKeys,
        finish: Finish,
        forgets: Sequence[tuple[str, str, str]],
    ) -> list[Argument]:
        self._add_closing_keys(delivery, names)
        packed: list[Argument] = [
            *pack_finish(
                outcome=str(finish.outcome),
                reply=to_json(finish.reply),
                forget=finish.forget,
                memory_writes=len(finish.remember),
            )
        ]
        for write in finish.remember:
            self._keys += pack_memory_key(key=write.key)
            packed += encode_memory_write(write)
        if finish.forget:
            packed.append(len(forgets))
            for record, journal, results in forgets:
                self._keys += pack_forgotten_keys(record=record, journal=journal, results=results)
        return packed

    def _pack_bury(self, delivery: Delivery, names: QuestionKeys, bury: Bury) -> Iterable[Argument]:
        self._add_closing_keys(delivery, names)
        notice = bury.poison_notice
        head = pack_bury(
            frame=delivery.whole(),
            role=delivery.role,
            reason=bury.reason,
            error=bury.error,
            attempts=delivery.failures + max(len(bury.deaths), min(delivery.starts, STARTS)),
            worker=bury.deaths[-1].worker if bury.deaths else delivery.consumer,
            queued_ms=delivery.entry_id.split("-")[0],
            deaths=" ".join(f"{death.worker}@{death.at * 1000:.0f}" for death in bury.deaths),
            result=_encode_lost_branch(delivery, bury),
            sends=0 if notice is None else 1,
        )
        if notice is None:
            return head
        self._roles[notice.role] = None
        return (*head, *pack_send(role=notice.role, form="whole", frame=notice.whole()))

    def _pack_scatter(self, names: QuestionKeys, scatter: ScatterBranches) -> list[Argument]:
        self._keys += pack_scatter_keys(
            record=names.record,
            journal=names.journal,
            frames=names.frames,
            order=names.order,
            conversation=names.conversation,
        )
        watch = scatter.watch
        self._roles.update(
            dict.fromkeys((scatter.gather.role, *(b.role for b in scatter.branches)))
        )
        packed: list[Argument] = [
            *pack_scatter(
                join=scatter.join,
                role=scatter.gather.role,
                frame=scatter.gather.whole(),
                need=scatter.need,
                at_once=scatter.at_once,
                duration_ms=int(scatter.seconds * 1000),
                watch="" if watch is None else watch.path,
                watch_frame=b"" if watch is None else watch.whole(),
                branches=len(scatter.branches),
            )
        ]
        for branch in scatter.branches:
            packed += pack_branch(path=branch.path, role=branch.role, frame=branch.whole())
        return packed

    def _pack_result(self, names: QuestionKeys, returned: ReturnResult) -> Iterable[Argument]:
        self._keys += pack_join_keys(
            record=names.record, journal=names.journal, frames=names.frames
        )
        self._roles.update(dict.fromkeys(returned.roles))
        return pack_return_result(
            result=to_json(returned.result), is_good=1 if returned.is_good else 0
        )

    def _add_open_keys(self, delivery: Delivery, names: QuestionKeys) -> None:
        self._keys += pack_open_keys(record=names.record, journal=names.journal)
        if delivery.branch:
            self._keys += pack_frames_key(frames=names.frames)

    def _add_closing_keys(self, delivery: Delivery, names: QuestionKeys) -> None:
        self._closes = True
        results = delivery.result_list
        self._keys += pack_closing_keys(
            record=names.record,
            journal=names.journal,
            order=names.order,
            conversation=names.conversation,
            tombstone=names.tombstone,
            frames=names.frames,
            results=results_key(results, self._shard) if results else names.record,
        )


def frame_for_consumer(send: FrameSend, delivery: Delivery) -> tuple[SendForm, Argument]:
    """Return the format and the bytes of a frame that a consumer will probably take in this call.

    A part contains only the changes to a base frame in Redis, whose name is in `send.kept`. The
    part is read only if the consumer dies and another one takes over. The benchmark `conversation`
    measures how much this saves.
    """
    if send.frame or send.decoded is None:
        return "whole", send.frame
    kept = delivery.base_frame
    part = send.decoded.delta_from(kept.decoded) if kept is not None else None
    if kept is not None and part is not None and len(part) * LEAST_SAVING < kept.size:
        send.kept = kept
        return "part", part
    frame = send.decoded.encode()
    if len(frame) < LONG_FRAME:
        return "whole", frame
    send.kept = BaseFrame(
        name=f"{delivery.role}:{delivery.entry_id}", decoded=send.decoded, size=len(frame)
    )
    return "kept", frame


def outcome_of(reply: Fields) -> str:
    """Return the outcome of a reply, or `failed` if it has none."""
    outcome = reply.get("outcome")
    return outcome if isinstance(outcome, str) else "failed"


def list_journal_fields(delivery: Delivery, settlement: Settlement) -> list[Argument]:
    """Return the fields of the journal entry that a settlement adds."""
    fields: list[Argument] = []
    notes = settlement.journal
    if isinstance(settlement, (Retry, Bury)):
        notes = (*notes, *_own_notes(delivery, settlement))
    for index, note in enumerate(notes):
        kind, json = note_fields(index)
        fields += (kind, note.kind, json, note.encode())
    return fields


def encode_memory_write(write: MemoryWrite) -> Iterable[Argument]:
    """Return the arguments of a memory write."""
    ttl, keep = str(write.ttl_seconds) if not isinstance(write, Delete) else 0, 0
    values: list[Argument] = []
    match write:
        case Append():
            keep = write.keep
            values = [value.encode() for value in write.values]
        case SetFields():
            values = [part.encode() for field in write.fields.items() for part in field]
        case Increment():
            added = write.fields.items()
            values = [part for name, by in added for part in (name.encode(), repr(by))]
        case Delete():
            pass
    head = pack_memory_write(kind=write.kind, ttl_seconds=ttl, keep=keep, values=len(values))
    return (*head, *values)


def encode_last_resort(reply: Fields, dead_letter_changes: Fields) -> bytes:
    """Return the fallback reply in its stored format; `dead_letter_changes` apply if the question
    is buried.
    """
    if not dead_letter_changes:
        return to_json(reply)
    shared = {name: value for name, value in reply.items() if name not in dead_letter_changes}
    own = {name: reply[name] for name in dead_letter_changes if name in reply}
    rests = (_encode_rest(own, shared), _encode_rest(dead_letter_changes, shared))
    return b"\n".join((to_json(shared)[:-1], *rests))


def unwritable(settlement: Settlement, error: UnwritableError, notice: FrameSend | None) -> Bury:
    """Return the `Bury` that replaces a settlement that cannot be encoded.

    It keeps the journal events that can be encoded, such as model calls.
    """
    journal = [entry for entry in settlement.journal if _is_writable(entry)]
    return Bury("unencodable", str(error), poison_notice=notice, journal=journal)


def _encode_lost_branch(delivery: Delivery, bury: Bury) -> Argument:
    """Return the failure result of a buried branch as JSON, or '' if there is a notice."""
    if not delivery.branch or bury.poison_notice is not None:
        return ""
    return to_json({"status": "failed", "reason": bury.reason})


def _encode_resort(forward: Forward) -> Argument:
    resort = forward.last_resort
    return "" if resort is None else encode_last_resort(resort, forward.dead_letter_changes)


def _own_notes(delivery: Delivery, settlement: Settlement) -> Sequence[JournalEvent]:
    match settlement:
        case Retry(reason=reason):
            retried: Fields = {"role": delivery.role, "reason": reason, **_name_branch(delivery)}
            return (JournalEntry("retried", retried),)
        case Bury(reason=reason, error=error):
            fields: Fields = {"role": delivery.role, "reason": reason, "error": error}
            return (JournalEntry("dead_lettered", fields | _name_branch(delivery)),)
        case _:
            return ()


def _name_branch(delivery: Delivery) -> Fields:
    return {"branch": delivery.branch} if delivery.branch else {}


def _encode_rest(fields: Fields, shared: Fields) -> bytes:
    """Return the fields that follow the shared ones, including the end of the object."""
    return b"," + to_json(fields)[1:] if fields and shared else to_json(fields)[1:]


def _is_writable(entry: JournalEvent) -> bool:
    try:
        entry.encode()
    except ValueError:
        return False
    return True
