"""Reads entries of streams into deliveries, journal entries and dead letters."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic_core import from_json

from broker.journal_events import JOURNAL_SCHEMA_VERSION, SCHEMA_VERSION_FIELD, upgrade_event
from broker.keys import question_of
from broker.values import (
    LONG_FRAME,
    Accepted,
    BaseFrame,
    Bury,
    Busy,
    BusyReason,
    ConsumerDemand,
    DeadLetter,
    Death,
    Delivery,
    Duplicate,
    Fields,
    Forward,
    FrameSend,
    JournalEntry,
    Settlement,
    Submission,
)
from envelope.encoding import to_json
from envelope.question import Question

Entry = tuple[bytes, list[bytes] | dict[bytes, bytes]]

Known = tuple[bytes, tuple[int, bytes]]
"""An entry that a settlement in this call added: the index of the settlement (from 1), and the
deadline of the entry (ms).
"""

SUBMITTED_FRAME = "submitted"
"""The name of the base frame of a submission; other base frames are named after entries."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """An entry that cannot be decoded; `name` is the name of its question if it can be read.

    A stale entry lacks its base frame. It is an error only if its question is still open.
    """

    role: str
    shard: int
    entry_id: str
    consumer: str
    count: int
    name: str
    frame: bytes
    error: str
    question: Question | None = None
    stale: bool = False


@dataclass(frozen=True, slots=True)
class FrameDelta:
    """A delivery whose frame contains only the changes to `base`, a frame stored in Redis."""

    delivery: Delivery
    name: str
    base: str


Read = Delivery | FrameDelta | Malformed


def fields_of(raw: list[bytes] | dict[bytes, bytes] | None) -> Mapping[bytes, bytes]:
    """Return the fields of an entry, which the client returns as a list or a dictionary."""
    if raw is None:
        return {}
    if isinstance(raw, dict):
        return raw
    return dict(zip(raw[::2], raw[1::2], strict=True))


def delivery_of(
    entry: Entry, *, role: str, shard: int, consumer: str, count: int, now_ms: float
) -> Read:
    """Decode a delivered entry; an invalid entry is returned as `Malformed`."""
    entry_id = entry[0].decode()
    fields = fields_of(entry[1])
    question: Question | None = None
    try:
        name = fields[b"q"].decode()
        question = question_of(name)
        base = fields.get(b"b")
        delivery = Delivery(
            entry_id=entry_id,
            role=role,
            shard=shard,
            consumer=consumer,
            count=count,
            question=question,
            frame=fields[b"f" if base is None else b"p"],
            remaining_seconds=(float(fields[b"d"]) - now_ms) / 1000,
            failures=int(fields[b"n"]),
            result_list=fields[b"l"].decode(),
            merged=_merge_messages(fields) if len(fields) > 5 else (),
            starts=count + int(fields.get(b"c", 0)),
            deaths=_deaths(fields[b"h"]) if b"h" in fields else (),
            gathered=fields.get(b"g", b""),
        )
        return delivery if base is None else FrameDelta(delivery, name, base.decode())
    except (KeyError, ValueError) as error:
        missing = isinstance(error, KeyError)
        return Malformed(
            role=role,
            shard=shard,
            entry_id=entry_id,
            consumer=consumer,
            count=count,
            name=fields.get(b"q", b"").decode(errors="replace") if question is not None else "",
            frame=fields.get(b"f", b""),
            error=f"expected a field {error}" if missing else str(error).splitlines()[0],
            question=question,
        )


def read_prefetched(
    entry: Entry | Known,
    *,
    want: ConsumerDemand,
    batch: Sequence[tuple[Delivery, Settlement]],
    now_ms: float,
) -> Read:
    """Decode an entry that was taken, and possibly added, by the call that settled `batch`."""
    content = entry[1]
    if isinstance(content, dict) or not isinstance(content[0], int):
        complete = cast("Entry", entry)
        shard = batch[0][0].shard
        return delivery_of(
            complete, role=want.role, shard=shard, consumer=want.consumer, count=1, now_ms=now_ms
        )
    index, deadline_ms = content
    source, settlement = batch[index - 1]
    send = _find_send(settlement)
    return Delivery(
        entry_id=entry[0].decode(),
        role=want.role,
        shard=source.shard,
        consumer=want.consumer,
        count=1,
        question=source.question,
        frame=send.frame,
        remaining_seconds=(float(deadline_ms) - now_ms) / 1000,
        result_list=source.result_list,
        decoded=send.decoded,
        base_frame=send.kept,
        keys=source.keys,
    )


def base_frame_name(submission: Submission) -> str:
    """Return the name under which Redis stores a submitted frame, or '' if it does not store it."""
    is_kept = submission.decoded is not None and len(submission.frame) >= LONG_FRAME
    return SUBMITTED_FRAME if is_kept else ""


def read_delivered(
    taken: Sequence[Any], *, submission: Submission, shard: int, consumer: str
) -> Read:
    """Decode the entry taken by a submission, which is its own message or an earlier one."""
    entry_id, fields, now_ms, prefetched = taken
    if fields is not None:
        return delivery_of(
            (entry_id, fields),
            role=submission.role,
            shard=shard,
            consumer=consumer,
            count=1,
            now_ms=float(now_ms),
        )
    return Delivery(
        entry_id=entry_id.decode(),
        role=submission.role,
        shard=shard,
        consumer=consumer,
        count=1,
        question=submission.question,
        frame=submission.frame,
        remaining_seconds=submission.deadline_seconds,
        result_list=submission.result_list,
        decoded=submission.decoded,
        base_frame=_make_base_frame(submission),
        prefetched=prefetched,
    )


def encode_accepted(fields: Fields) -> bytes:
    """Return the first event of a journal as JSON, with the version of the journal's schema."""
    return to_json({SCHEMA_VERSION_FIELD: JOURNAL_SCHEMA_VERSION, **fields})


def journal_entries_of(entries: Iterable[Entry]) -> list[JournalEntry]:
    """Return the events in these entries of a journal, in the current version of its schema.

    Events that were written together share id and time.
    """
    return [note for entry in entries for note in _notes_of(entry)]


def submission_result(
    kind: bytes, value: bytes | int, wait_ms: Any = b""
) -> Accepted | Duplicate | Busy:
    """Return the result of a submission from the script's reply."""
    text = value if isinstance(value, bytes) else b""
    match kind:
        case b"accepted":
            return Accepted(waiting=int(value))
        case b"merged":
            return Accepted(merged_into=question_of(text.decode()).message_id)
        case b"duplicate":
            return Duplicate(json_fields(text) if text else None)
        case _:
            return Busy(float(wait_ms) / 1000, _reason(text))


def dead_letter_of(
    entry: Entry, shard: int, frame: bytes | None, error: bytes | None
) -> DeadLetter:
    """Return one dead letter; its id begins with its shard."""
    fields = fields_of(entry[1])
    entry_id = entry[0].decode()
    name = fields[b"q"].decode()
    return DeadLetter(
        id=f"{shard}-{entry_id}",
        role=fields[b"role"].decode(),
        shard=shard,
        question=question_of(name) if name else None,
        reason=fields[b"reason"].decode(),
        error=(error or b"").decode(errors="replace"),
        attempts=int(fields[b"attempts"]),
        worker=fields[b"worker"].decode(),
        at=seconds_of(entry_id),
        frame=frame or b"",
        accepted_at=float(fields.get(b"accepted", 0)) / 1e6,
        queued_at=float(fields.get(b"queued", 0)) / 1000,
        deaths=_deaths(fields.get(b"deaths", b"")),
    )


def json_fields(text: bytes) -> Fields:
    """Parse a JSON object."""
    value: Fields = from_json(text)
    return value


def seconds_of(entry_id: str) -> float:
    """Return the time at which an entry was added, in Unix seconds."""
    return int(entry_id.split("-")[0]) / 1000


def _make_base_frame(submission: Submission) -> BaseFrame | None:
    name = base_frame_name(submission)
    if submission.decoded is None or not name:
        return None
    return BaseFrame(name, submission.decoded, len(submission.frame))


def _find_send(settlement: Settlement) -> FrameSend:
    if isinstance(settlement, Forward):
        return settlement.sends[0]
    if isinstance(settlement, Bury) and settlement.poison_notice is not None:
        return settlement.poison_notice
    raise TypeError(f"expected a settlement that sends, found {type(settlement).__name__}")


def _notes_of(entry: Entry) -> Iterable[JournalEntry]:
    entry_id = entry[0].decode()
    at = seconds_of(entry_id)
    values = list(fields_of(entry[1]).values())
    for kind, json in zip(values[::2], values[1::2], strict=True):
        name, fields = upgrade_event(kind.decode(), json_fields(json))
        yield JournalEntry(name, fields, id=entry_id, at=at)


def _reason(text: bytes) -> BusyReason:
    return cast("BusyReason", text.decode())


def _deaths(text: bytes) -> tuple[Death, ...]:
    """Read `worker@ms worker@ms`."""
    pairs = (death.rpartition("@") for death in text.decode(errors="replace").split())
    return tuple(Death(worker, float(at) / 1000) for worker, _, at in pairs)


def _merge_messages(fields: Mapping[bytes, bytes]) -> tuple[bytes, ...]:
    return tuple(_iterate_joined_frames(fields))


def _iterate_joined_frames(fields: Mapping[bytes, bytes]) -> Iterable[bytes]:
    number = 1
    while (frame := fields.get(b"m%d" % number)) is not None:
        yield frame
        number += 1
