"""Returns what a fake Redis holds and what the model says it should hold, in one shape.

A key that no promise accounts for, or one that should die and cannot, is an error here.
"""

from collections.abc import Mapping
from typing import Any

from fakeredis.model import StreamEntryKey, XStream
from pydantic_core import from_json

from broker.keys import GROUP
from envelope.envelope import apply_delta
from tests.simulation.expected_state import ROLES, Entry, Message, conversation_of
from tests.simulation.model import Model

Facts = dict[str, Any]

_MORTAL = frozenset(
    (
        "record", "journal", "order", "conversation", "asked", "tombstone", "named", "results",
        "notices", "alarms", "duty", "pace", "frames", "dead", "letters", "files",
    )
)  # fmt: skip
_UNCOMPARED = frozenset(("named", "notices", "duty", "pace", "files"))
"""Indexes and hints: what they promise is checked by what they lead to."""
_BEGINNING = StreamEntryKey(0, 0)


def read_expected(model: Model) -> Facts:
    """Return what the model says."""
    opened = [model.messages[name] for name in model.open_names()]
    tenants = [message.question.tenant for message in opened]
    return {
        "stream": {
            role: [
                (
                    entry.name, _frame(model, entry), entry.failures, entry.merged,
                    entry.due or model.messages[entry.name].deadline,
                    model.messages[entry.name].result_list,
                    entry.owner, entry.since, entry.deaths, entry.gathered,
                )
                for entry in model.streams[role]
            ]
            for role in ROLES
        },
        "record": {name: _record(message) for name, message in model.messages.items()},
        "journal": {
            name: (tuple(message.journal), message.reply)
            for name, message in model.messages.items()
            if not message.forgotten
        },
        "order": dict(model.order),
        "conversation": {
            name: (
                waiting.role, waiting.frame, waiting.at, tuple(waiting.merged),
                model.messages[name].deadline, model.messages[name].result_list,
            )
            for name, waiting in model.waiting.items()
        },
        "watch": {
            name: (*message.watch, message.result_list)
            for name, message in model.messages.items() if message.watch is not None
        },
        "delayed": dict(model.delayed),
        "parked": dict(model.parked),
        "deadlines": {
            name: model.messages[name].deadline for name in model.open_names()
        },
        "open": {tenant: tenants.count(tenant) for tenant in set(tenants)},
        "dead": [
            (letter.name, letter.frame, letter.role, letter.reason)
            for letter in model.dead
        ],
        "results": {name: replies for name, replies in model.results.items() if replies},
        "memory": {key.rpartition(":")[2]: values for key, values in model.memory.items()},
        "kept pauses": {
            key.rpartition(":")[2]: (kept.pause, kept.by)
            for key, kept in model.kept.items() if kept.until >= model.now
        },
        "tombstone": {
            conversation: us for conversation, (us, until) in model.tombstones.items()
            if until > model.now
        },
        "asked": _by_conversation(model),
        "frames": {name for name in model.open_names() if _keeps_frames(model.messages[name])},
        "branches": {
            name: branches.open for name in model.open_names()
            if (branches := model.messages[name].branches).open
        },
        "joins": {
            (name, join): (
                state.role, state.frame, state.need, state.left, state.good, state.due,
                state.results, list(state.waiting),
            )
            for name in model.open_names()
            for join, state in model.messages[name].branches.joins.items()
        },
    }  # fmt: skip


def read_observed(database: Any, names: Mapping[str, str]) -> Facts:
    """Return what Redis holds; `names` maps a sweeper to one of our processes."""
    facts: Facts = {kind: {} for kind in _READERS}
    facts["dead"], facts["alarms"], facts["names"] = [], 0, names
    facts["kept pauses"], facts["watch"] = {}, {}
    results = [
        (*key.decode().removeprefix("rd:{0}:").partition(":"), item)
        for key, item in database.items()
    ]
    kept = {name: _hash(item.value) for kind, _, name, item in results if kind == "frames"}
    facts["frames"], facts["kept"] = set(kept), kept
    facts["branches"] = {
        name: held for name, fields in kept.items() if (held := read_branches(fields))
    }
    facts["joins"] = {
        (name, join): state
        for name, fields in kept.items()
        for join, state in read_joins(fields).items()
    }
    facts["letters"] = {
        field: value
        for kind, _, _, item in results if kind == "letters"
        for field, value in _hash(item.value).items()
    }  # fmt: skip
    for kind, _, name, item in results:
        if kind in _MORTAL:
            assert item.expireat is not None, f"{kind} of {name!r} has no time to live"
        if kind not in _UNCOMPARED and kind not in ("frames", "letters"):
            _READERS[kind](facts, name, item.value)
    return facts


def _keeps_frames(message: Message) -> bool:
    branches = message.branches
    return message.keeps_a_frame or bool(branches.open or branches.joins)


def _record(message: Message) -> tuple[Any, ...]:
    resort = message.resort if message.is_open else None
    return (
        message.at_us, message.deadline, message.question.tenant, message.result_list,
        message.outcome, resort,
    )  # fmt: skip


def _by_conversation(model: Model) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name in model.messages:
        grouped.setdefault(conversation_of(name), []).append(name)
    return {conversation: sorted(names) for conversation, names in grouped.items()}


def _entries(stream: XStream) -> list[tuple[StreamEntryKey, dict[str, bytes]]]:
    results = []
    for key in stream.stream_read(_BEGINNING, None):
        raw: Any = stream.format_record(key)[1]
        fields = {name.decode(): value for name, value in zip(raw[::2], raw[1::2], strict=True)}
        results.append((key, fields))
    return results


def _read_stream(facts: Facts, role: str, stream: XStream) -> None:
    group = stream.group_get(GROUP.encode())
    assert group is not None
    pending = dict(group.pel)
    entries = []
    for key, fields in _entries(stream):
        held = pending.pop(key, None)
        entries.append(
            (
                fields["q"].decode(), _whole(facts, fields), int(fields["n"]), _merge(fields),
                int(fields["d"]), fields["l"].decode(),
                *(("", 0) if held is None else (_owner(facts, held), held.time_read)),
                _deaths(facts, fields), from_json(fields["g"]) if "g" in fields else None,
            )
        )  # fmt: skip
    assert not pending, f"pending without an entry: {pending}"
    if role in ROLES:
        facts["stream"][role] = entries


def _frame(model: Model, entry: Entry) -> bytes | None:
    return None if entry.part and not model.messages[entry.name].is_open else entry.frame


def _whole(facts: Facts, fields: dict[str, bytes]) -> bytes | None:
    """Return the frame of an entry, or None where what it is based on is gone."""
    if "f" in fields:
        return fields["f"]
    base = facts["kept"].get(fields["q"].decode(), {}).get(fields["b"].decode())
    return None if base is None else apply_delta(base, fields["p"])


def _merge(fields: dict[str, bytes]) -> tuple[bytes, ...]:
    return tuple(value for name, value in fields.items() if name.startswith("m"))


def _owner(facts: Facts, held: Any) -> str:
    consumer: str = held.consumer_name.decode()
    owner: str = facts["names"].get(consumer, consumer)
    assert held.times_delivered == 1, f"{owner} was delivered it {held.times_delivered} times"
    return owner


def _deaths(facts: Facts, fields: dict[str, bytes]) -> tuple[tuple[str, int], ...]:
    """Return who died holding an entry, and when each was last seen (ms)."""
    deaths = [death.rpartition("@") for death in fields.get("h", b"").decode().split()]
    assert int(fields.get("c", 0)) == len(deaths), "as many starts as deaths"
    return tuple((facts["names"].get(worker, worker), int(at)) for worker, _, at in deaths)


def _read_record(facts: Facts, name: str, value: Any) -> None:
    fields = _hash(value)
    outcome = fields.get("o", b"").decode()
    facts["record"][name] = (
        int(fields["at"]), int(fields["d"]), fields["t"].decode(), fields["l"].decode(), outcome,
        None if outcome else from_json(fields["lr"]),
    )  # fmt: skip


def _read_journal(facts: Facts, name: str, stream: XStream) -> None:
    values = [value for _, fields in _entries(stream) for value in fields.values()]
    kinds = tuple(kind.decode() for kind in values[::2])
    reply = from_json(values[-1]) if kinds[-1] == "finished" else None
    facts["journal"][name] = (kinds, reply)


def _read_waiting(facts: Facts, _conversation: str, value: Any) -> None:
    fields = _hash(value)
    for field in [field for field in fields if field.endswith(":watch")]:
        due, chat, frame = fields.pop(field).split(b"\n", 2)
        facts["watch"][field.rpartition(":")[0]] = (int(due), frame, chat.decode())
    for name in {field.rsplit(":", 1)[0] for field in fields}:
        merged = int(fields.pop(f"{name}:merged"))
        facts["conversation"][name] = (
            fields.pop(f"{name}:stream").decode().rpartition(":")[2],
            fields.pop(f"{name}:frame"),
            int(fields.pop(f"{name}:at")),
            tuple(fields.pop(f"{name}:m{number}") for number in range(1, merged + 1)),
            int(fields.pop(f"{name}:deadline")),
            fields.pop(f"{name}:list").decode(),
        )
    assert not fields, f"left over of messages that wait: {fields}"


def _read_dead(facts: Facts, _name: str, stream: XStream) -> None:
    entries = _entries(stream)
    ids = {f"{key.ts}-{key.seq}" for key, _ in entries}
    worded = {field for identifier in ids for field in (identifier, f"{identifier}:error")}
    assert set(facts["letters"]) == worded, "as many words as letters"
    for key, fields in entries:
        facts["dead"].append(
            (
                fields["q"].decode(), facts["letters"][f"{key.ts}-{key.seq}"],
                fields["role"].decode(),
                fields["reason"].decode(),
            )
        )  # fmt: skip


def _read_results(facts: Facts, name: str, stream: XStream) -> None:
    replies = [(fields["q"].decode(), fields["o"].decode()) for _, fields in _entries(stream)]
    if replies:
        facts["results"][name] = replies


def _read_scores(kind: str) -> Any:
    def read(facts: Facts, _name: str, value: Any) -> None:
        facts[kind] = {member.decode(): int(score) for member, score in value.items()}

    return read


def _read_list(kind: str) -> Any:
    def read(facts: Facts, name: str, value: Any) -> None:
        facts[kind][name] = [part.decode() for part in value]

    return read


def _read_members(kind: str) -> Any:
    def read(facts: Facts, name: str, value: Any) -> None:
        facts[kind][name] = sorted(member.decode() for member in value)

    return read


def _read_open(facts: Facts, _name: str, value: Any) -> None:
    facts["open"] = {tenant: int(count) for tenant, count in _hash(value).items()}


def _read_parked(facts: Facts, _name: str, value: Any) -> None:
    facts["parked"] = _hash(value)


def _read_kept(facts: Facts, name: str, value: Any) -> None:
    fields = _hash(value)
    facts["kept pauses"][name] = (fields["id"].decode(), fields["by"].decode())


def _read_tombstone(facts: Facts, name: str, value: bytes) -> None:
    facts["tombstone"][name] = int(value)


def _read_alarms(facts: Facts, _name: str, stream: XStream) -> None:
    facts["alarms"] = stream.entries_added


def _hash(value: Any) -> dict[str, bytes]:
    return {key.decode(): value[key] for key in value}


_READERS = {
    "stream": _read_stream,
    "record": _read_record,
    "journal": _read_journal,
    "order": _read_list("order"),
    "conversation": _read_waiting,
    "delayed": _read_scores("delayed"),
    "parked": _read_parked,
    "deadlines": _read_scores("deadlines"),
    "open": _read_open,
    "dead": _read_dead,
    "results": _read_results,
    "memory": _read_list("memory"),
    "kept": _read_kept,
    "tombstone": _read_tombstone,
    "alarms": _read_alarms,
    "asked": _read_members("asked"),
}


Fields = Mapping[str, bytes]


def read_branches(fields: Fields) -> dict[str, str]:
    """Return the join of each open branch, by path."""
    return {
        name[2:]: value.decode().split(" ")[0]
        for name, value in fields.items()
        if name.startswith("b:")
    }


def read_joins(fields: Fields) -> dict[str, tuple[Any, ...]]:
    """Return everything that is kept of each join, by its name."""
    return {name[2:]: _read(fields, name[2:]) for name in fields if name.startswith("n:")}


def _read(fields: Fields, name: str) -> tuple[Any, ...]:
    role, need, left, good, due, following = fields[f"n:{name}"].decode().split(" ")
    paths = from_json(fields[f"p:{name}"])
    results = {path: from_json(fields[f"r:{path}"]) for path in paths if f"r:{path}" in fields}
    waiting = []
    for place in range(1, len(paths) + 1):
        waits = fields.get(f"w:{name}:{place}")
        if waits is not None:
            assert place >= int(following), f"{name} keeps a branch that has begun"
            path, of, frame = waits.split(b"\n", 2)
            waiting.append((path.decode(), of.decode(), frame))
    for path in paths:
        until = fields.get(f"b:{path}", b"").decode()
        assert until in ("", f"{name} {due}"), f"{path} has another join: {until}"
    return (
        role, fields[f"f:{name}"], int(need), int(left), int(good), int(due), results, waiting,
    )  # fmt: skip
