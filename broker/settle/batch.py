"""Writes settlements as keys and arguments of one script call per shard."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from broker.encodable import LONG_FRAME, BaseFrame
from broker.errors import UnwritableError
from broker.journal_events import JournalEvent, note_fields
from broker.keys import CACHED, QuestionKeys, question_keys, results_key, shard_keys, stream_key
from broker.port import (
    Bury,
    ConsumerDemand,
    Delivery,
    Fields,
    Finish,
    Forward,
    FrameSend,
    JournalEntry,
    Retry,
    Settlement,
)
from broker.transport.scripts import Argument
from envelope.encoding import brief, to_json, to_json_and_texts
from envelope.memory_write import Append, Delete, Increment, MemoryWrite, SetFields

SHORT = 64
"""Texts of fewer characters are none that `ScriptCall.fold` should set aside."""
LEAST_SAVING = 2
"""A part is so many times shorter than the frame that it is based on."""
KINDS: dict[type, str] = {Forward: "forward", Retry: "retry", Finish: "finish", Bury: "bury"}
STARTS = 3
"""A handler that kills its process is started so often, then its entry is buried."""


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """What bounds the broker; see `RedisBroker` for each."""

    ttl_ms: int
    dead_letters: int
    attempts: int
    backoff_ms: int
    longest_backoff_ms: int
    dead_letter_ttl_ms: int = 7 * 86_400_000


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """Keys and arguments of one script call; `lists` follow the arguments when they are folded."""

    keys: list[str]
    args: list[Argument]
    lists: Sequence[list[Argument]] = ()

    def fold(self) -> list[Argument]:
        """Return the arguments for scripts that `unfold` them: short ones as JSON, then the texts.

        Either side spends less on one text than on dozens of short ones.
        """
        short, texts = to_json_and_texts([*self.args, *self.lists])
        return [short, *texts]

    @classmethod
    def on_shard(cls, shard: int, roles: Iterable[str], limits: BrokerLimits) -> "ScriptCall":
        """Begin as every script that settles or closes expects it."""
        names = tuple(roles)
        told: list[Argument] = [
            str(limits.ttl_ms),
            str(limits.dead_letters),
            str(limits.dead_letter_ttl_ms),
            len(names),
            *names,
        ]
        return cls([*_keys(shard, names)], told)


@lru_cache(CACHED)
def _keys(shard: int, roles: tuple[str, ...]) -> tuple[str, ...]:
    return (*shard_keys(shard).all, *(stream_key(role, shard) for role in roles))


class SettleBatch:
    """Gathers the settlements of one shard."""

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
        self._places = Counter({want.role: want.slots for want in wants})
        self._limits = limits
        self._closes = False
        self._jitter = jitter
        self._roles: dict[str, None] = {}
        self._keys: list[str] = []
        self._lists: list[list[Argument]] = []

    def add(
        self, delivery: Delivery, settlement: Settlement, forgets: Sequence[tuple[str, str, str]]
    ) -> None:
        """Add one; `forgets` are record, journal and result list of what a finish forgets.

        Raises `UnwritableError`, and adds nothing, for what cannot be said.
        """
        first_key = len(self._keys)
        try:
            self._add(delivery, settlement, forgets)
        except ValueError as error:
            del self._keys[first_key:]
            raise UnwritableError(f"expected what JSON can say: {brief(str(error))}") from error

    def _add(
        self, delivery: Delivery, settlement: Settlement, forgets: Sequence[tuple[str, str, str]]
    ) -> None:
        names = delivery.keys
        if names is None:
            names = delivery.keys = question_keys(delivery.question, self._shard)
        if isinstance(settlement, Retry) and self._spent(delivery, settlement):
            settlement = Bury("attempts_exhausted", settlement.reason, journal=settlement.journal)
        self._roles[delivery.role] = None
        first_key = len(self._keys)
        self._keys += (names.record, names.journal)
        # The number of keys stands in the second place once it is known.
        args: list[Argument] = [
            KINDS[type(settlement)], 0, delivery.role, delivery.entry_id, delivery.consumer,
            delivery.count, names.name, *_notes(delivery, settlement),
        ]  # fmt: skip
        match settlement:
            case Forward():
                self._add_forward(args, delivery, names, settlement)
            case Retry():
                self._add_retry(args, delivery, settlement)
            case Finish():
                self._add_finish(args, delivery, names, settlement, forgets)
            case Bury():
                self._add_bury(args, delivery, names, settlement)
        args[1] = len(self._keys) - first_key
        self._lists.append(args)

    def call(self, known: Iterable[str]) -> ScriptCall:
        """Return the whole call; a batch that may release a message declares all `known` roles."""
        self._roles.update(dict.fromkeys(want.role for want in self._wants))
        roles = {**self._roles, **dict.fromkeys(known)} if self._closes else self._roles
        start = ScriptCall.on_shard(self._shard, roles, self._limits)
        taking: list[Argument] = [len(self._wants)]
        for want in self._wants:
            taking += (want.role, want.consumer, want.slots)
        return ScriptCall(start.keys + self._keys, start.args + taking, self._lists)

    def _spent(self, delivery: Delivery, retry: Retry) -> bool:
        # A wait that was asked for is bounded by the deadline; only failures are counted.
        return retry.seconds is None and delivery.failures + 1 >= self._limits.attempts

    def _add_forward(
        self, args: list[Argument], delivery: Delivery, names: QuestionKeys, forward: Forward
    ) -> None:
        sends, resort = forward.sends, forward.last_resort
        args += ("", "") if resort is None else (to_json(resort), outcome_of(resort))
        args.append(len(sends))
        for send in sends:
            self._roles[send.role] = None
            args.append(send.role)
            if len(sends) == 1 and self._places[send.role] > 0:
                self._places[send.role] -= 1
                form = frame_for_consumer(send, delivery)
            else:
                form = ("whole", send.whole())
            args += form
            if form[0] == "kept":
                self._keys.append(names.frames)

    def _add_retry(self, args: list[Argument], delivery: Delivery, retry: Retry) -> None:
        failures = delivery.failures + (1 if retry.seconds is None else 0)
        wait = self._delay(failures, retry)
        args += (retry.frame, delivery.role, delivery.entry_id, failures, wait)

    def _delay(self, failures: int, retry: Retry) -> int:
        if retry.seconds is not None:
            return int(retry.seconds * 1000)
        longest = min(
            self._limits.longest_backoff_ms, self._limits.backoff_ms * 2 ** min(failures, 20)
        )
        return int(longest * self._jitter())

    def _add_finish(
        self,
        args: list[Argument],
        delivery: Delivery,
        names: QuestionKeys,
        finish: Finish,
        forgets: Sequence[tuple[str, str, str]],
    ) -> None:
        self._close(delivery, names)
        args += (str(finish.outcome), to_json(finish.reply), finish.forget)
        args.append(len(finish.remember))
        for write in finish.remember:
            self._keys.append(write.key)
            args += _memory(write)
        if finish.forget:
            args.append(len(forgets))
            self._keys += [key for group in forgets for key in group]

    def _add_bury(
        self, args: list[Argument], delivery: Delivery, names: QuestionKeys, bury: Bury
    ) -> None:
        self._close(delivery, names)
        args += (
            delivery.whole(),
            delivery.role,
            bury.reason,
            bury.error,
            delivery.failures + max(len(bury.deaths), min(delivery.starts, STARTS)),
            bury.deaths[-1].worker if bury.deaths else delivery.consumer,
            delivery.entry_id.split("-")[0],
            " ".join(f"{death.worker}@{death.at * 1000:.0f}" for death in bury.deaths),
        )
        tell = bury.poison_notice
        args.append(0 if tell is None else 1)
        if tell is not None:
            self._roles[tell.role] = None
            args += (tell.role, "whole", tell.whole())

    def _close(self, delivery: Delivery, names: QuestionKeys) -> None:
        """Add the keys of a settlement that may close its question."""
        self._closes = True
        # A key of the slot stands in where there is no result list: the script looks at the record.
        results = delivery.result_list
        self._keys += names.closing[2:]
        self._keys.append(results_key(results, self._shard) if results else names.record)


def frame_for_consumer(send: FrameSend, delivery: Delivery) -> tuple[Argument, ...]:
    """Return how a frame travels that is likely to be taken at once: whole, kept, or as a part.

    A part says what changed since a frame that is kept: nobody reads it unless its taker dies.
    """
    if send.frame or send.decoded is None:
        return "whole", send.frame
    kept = delivery.base_frame
    part = send.decoded.delta_from(kept.decoded) if kept is not None else None
    if kept is not None and part is not None and len(part) * LEAST_SAVING < kept.size:
        send.kept = kept
        return "part", part, kept.name
    frame = send.decoded.encode()
    if len(frame) < LONG_FRAME:
        return "whole", frame
    send.kept = BaseFrame(f"{delivery.role}:{delivery.entry_id}", send.decoded, len(frame))
    return "kept", frame, send.kept.name


def unwritable(settlement: Settlement, error: UnwritableError, tell: FrameSend | None) -> Bury:
    """Return what is written in the place of a settlement that cannot be, which nobody would hear.

    What it tells of its run, such as model calls, stays as far as it can be said.
    """
    journal = [entry for entry in settlement.journal if _is_sayable(entry)]
    return Bury("unencodable", str(error), tell, journal)


def _is_sayable(entry: JournalEvent) -> bool:
    try:
        entry.encode()
    except ValueError:
        return False
    return True


def outcome_of(reply: Fields) -> str:
    """Return the outcome that a reply names, else `failed`."""
    outcome = reply.get("outcome")
    return outcome if isinstance(outcome, str) else "failed"


def _notes(delivery: Delivery, settlement: Settlement) -> list[Argument]:
    """Return what the journal is told in one entry: how much that is, then its fields."""
    told: list[Argument] = [0]
    notes = settlement.journal
    if not isinstance(settlement, (Forward, Finish)):
        notes = (*notes, *_own_notes(delivery, settlement))
    for place, note in enumerate(notes):
        kind, fields = note_fields(place)
        told += (kind, note.kind, fields, note.encode())
    told[0] = len(told) - 1
    return told


def _own_notes(delivery: Delivery, settlement: Settlement) -> Sequence[JournalEvent]:
    match settlement:
        case Retry(reason=reason):
            return (JournalEntry("retried", {"role": delivery.role, "reason": reason}),)
        case Bury(reason=reason, error=error):
            fields: Fields = {"role": delivery.role, "reason": reason, "error": error}
            return (JournalEntry("dead_lettered", fields),)
        case _:
            return ()


def _memory(write: MemoryWrite) -> list[Argument]:
    match write:
        case Append():
            values: list[Argument] = [value.encode() for value in write.values]
            return [write.kind, str(write.ttl_seconds), write.keep, len(values), *values]
        case SetFields():
            values = [_short(part) for field in write.fields.items() for part in field]
            return [write.kind, str(write.ttl_seconds), 0, len(values), *values]
        case Increment():
            added = write.fields.items()
            values = [part for name, by in added for part in (_short(name), repr(by))]
            return [write.kind, str(write.ttl_seconds), 0, len(values), *values]
        case Delete():
            return [write.kind, 0, 0, 0]


def _short(text: str) -> Argument:
    """Return a text as it is cheapest: what any JSON says as it stands goes in with the rest."""
    return text if len(text) < SHORT and text.isascii() else text.encode()
