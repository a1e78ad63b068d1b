"""The settlement script, and the order of its keys and arguments.

Each `pack_...` function defines one group of keys or arguments. Its parameters define the order,
names, and types, and it returns the values as they are sent. `broker.settlement` calls these
functions with keywords, and `render_header` writes the Lua that reads each group from the same
parameters, so that the two sides cannot differ. To add an argument, add a parameter.

The groups are functions, not named tuples: named tuples would take 2 us more per settlement, which
is 3 % of the processor time of a hop (`python -m benchmarks --only refdesk`).
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from inspect import signature
from typing import Literal

from broker.transport.scripts import Argument, LuaScript
from broker.values import Bury, Finish, Forward, Retry, ReturnResult, ScatterBranches

Packed = tuple[Argument, ...]
PackedKeys = tuple[str, ...]
Group = Callable[..., Packed | PackedKeys]

SendForm = Literal["whole", "part", "kept"]
"""The format of a frame: a whole frame, the changes to a base frame, or a whole frame that Redis
stores as a base.
"""


def names_of(group: Group) -> tuple[str, ...]:
    """Return the names of a group, in the order in which they are sent."""
    return tuple(signature(group).parameters)


def pack_demand(role: str, consumer: str, slots: int) -> Packed:
    """Return the demand of a consumer that takes up to `slots` entries of a role in the same
    call.
    """
    return role, consumer, slots


def pack_header(
    kind: str,
    key_count: int,
    argument_count: int,
    role: str,
    entry_id: str,
    consumer: str,
    delivery_count: int,
    question: str,
    journal_fields: int,
    branch: str,
) -> Packed:
    """Return the header of a settlement.

    `argument_count` arguments follow: `journal_fields` fields of its journal entry, then those of
    its kind. `branch` is the path of the entry's branch, or ''; the keys of a branch include those
    of `pack_frames_key`.
    """
    return (
        kind, key_count, argument_count, role, entry_id, consumer, delivery_count, question,
        journal_fields, branch,
    )  # fmt: skip


def pack_forward(last_resort: Argument, last_resort_outcome: str, sends: int) -> Packed:
    """Return a fallback reply as JSON with its outcome, or '' and ''; `sends` sends follow."""
    return last_resort, last_resort_outcome, sends


def pack_send(role: str, form: SendForm, frame: Argument) -> Packed:
    """Return a frame for a role.

    With the form `part` or `kept`, a base must follow (`pack_base`); `kept` also needs a frames key
    (`pack_frames_key`).
    """
    return role, form, frame


def pack_base(base: str) -> Packed:
    """Return the name of a partial frame's base, or the name under which to store a base."""
    return (base,)


def pack_frames_key(frames: str) -> PackedKeys:
    """Return the hash that stores the base frames of a question."""
    return (frames,)


def pack_scatter(
    join: str,
    role: str,
    frame: Argument,
    need: int,
    at_once: int,
    duration_ms: int,
    watch: str,
    watch_frame: Argument,
    branches: int,
) -> Packed:
    """Return a join that sends `frame` with the results to `role`. It is followed by `branches`
    branches.

    It ends after `need` successes, when every branch has returned, or after `duration_ms`. `watch`
    is the path of a branch that receives waiting messages with `watch_frame`, or ''.
    """
    return join, role, frame, need, at_once, duration_ms, watch, watch_frame, branches


def pack_branch(path: str, role: str, frame: Argument) -> Packed:
    """Return a branch and its first frame."""
    return path, role, frame


def pack_return_result(result: Argument, is_good: int) -> Packed:
    """Return the result of a branch as JSON; `is_good` is 1 for a success, otherwise 0."""
    return result, is_good


def pack_retry(frame: Argument, role: str, entry_id: str, failures: int, delay_ms: int) -> Packed:
    """Return a frame that is sent to its role again after `delay_ms`."""
    return frame, role, entry_id, failures, delay_ms


def pack_finish(outcome: str, reply: Argument, forget: str, memory_writes: int) -> Packed:
    """Return the reply as JSON; `memory_writes` memory writes follow.

    With `forget`, the number of messages to erase and the keys of each follow.
    """
    return outcome, reply, forget, memory_writes


def pack_memory_write(kind: str, ttl_seconds: Argument, keep: int, values: int) -> Packed:
    """Return a write to the memory of a conversation; `values` values follow."""
    return kind, ttl_seconds, keep, values


def pack_memory_key(key: str) -> PackedKeys:
    """Return the key that a memory write changes."""
    return (key,)


def pack_forgotten_keys(record: str, journal: str, results: str) -> PackedKeys:
    """Return the keys of a message whose text a finish deletes."""
    return record, journal, results


def pack_bury(
    frame: Argument,
    role: str,
    reason: str,
    error: str,
    attempts: int,
    worker: str,
    queued_ms: str,
    deaths: str,
    result: Argument,
    sends: int,
) -> Packed:
    """Return a frame to bury. It is followed by `sends` (0 or 1) notices.

    If there is no notice, `result` is the result of the frame's branch, or ''.
    """
    return frame, role, reason, error, attempts, worker, queued_ms, deaths, result, sends


def pack_open_keys(record: str, journal: str) -> PackedKeys:
    """Return the keys of a settlement after which its question stays open."""
    return record, journal


def pack_join_keys(record: str, journal: str, frames: str) -> PackedKeys:
    """Return the keys of a settlement that ends a branch."""
    return record, journal, frames


def pack_scatter_keys(
    record: str, journal: str, frames: str, order: str, conversation: str
) -> PackedKeys:
    """Return the keys of a settlement that begins branches."""
    return record, journal, frames, order, conversation


def pack_closing_keys(
    record: str,
    journal: str,
    order: str,
    conversation: str,
    tombstone: str,
    frames: str,
    results: str,
) -> PackedKeys:
    """Return the keys of a settlement that may close its question.

    `results` repeats the record if the question has no result list.
    """
    return record, journal, order, conversation, tombstone, frames, results


RECORD_FIELDS = {
    "outcome": "o",
    "deadline": "d",
    "result_list": "l",
    "accepted_at": "at",
    "tenant": "t",
    "last_resort": "lr",
    "last_resort_outcome": "lo",
    "keep_ms": "k",
}
"""The record fields that a settlement reads, in this order, with their Redis names."""
OPEN_FIELDS = 3
"""The number of record fields that are read if the question stays open."""


@dataclass(frozen=True, slots=True)
class SettlementKind:
    """One kind of settlement: its name, and the groups of its arguments and keys.

    `readers` is the Lua code that reads what follows its arguments.
    """

    name: str
    arguments: Group
    keys: Group
    readers: tuple[str, ...] = ()

    @property
    def record_fields(self) -> tuple[str, ...]:
        """The Redis names of the record fields that the script reads."""
        fields = tuple(RECORD_FIELDS.values())
        return fields if self.keys is pack_closing_keys else fields[:OPEN_FIELDS]


def _values(arguments: Group | None = None, keys: Group | None = None) -> str:
    """Return a Lua table that reads the groups in order."""
    read = [f"{name} = arg()" for name in names_of(arguments)] if arguments is not None else []
    read += [f"{name} = key()" for name in names_of(keys)] if keys is not None else []
    return f"{{ {', '.join(read)} }}"


def _function(name: str, values: str) -> str:
    return f"local function {name}()\n  return {values}\nend"


def _render_send_reader() -> str:
    """Return the Lua reader of a send; the format of the frame determines which groups follow."""
    return "\n".join((
        "local function read_send()",
        f"  local send = {_values(pack_send)}",
        "  if send.form ~= 'whole' then",
        *(f"    send.{name} = arg()" for name in names_of(pack_base)),
        "  end",
        "  if send.form == 'kept' then",
        *(f"    send.{name} = key()" for name in names_of(pack_frames_key)),
        "  end",
        "  return send",
        "end",
    ))  # fmt: skip


_READ_SEND = _render_send_reader()
_READ_BRANCH = _function("read_branch", _values(pack_branch))
_READ_MEMORY = (
    _function("read_memory_write", _values(pack_memory_write, pack_memory_key)),
    _function("read_forgotten", _values(keys=pack_forgotten_keys)),
)
KINDS = {
    Forward: SettlementKind("forward", pack_forward, pack_open_keys, (_READ_SEND,)),
    ScatterBranches: SettlementKind("scatter", pack_scatter, pack_scatter_keys, (_READ_BRANCH,)),
    ReturnResult: SettlementKind("return_result", pack_return_result, pack_join_keys),
    Retry: SettlementKind("retry", pack_retry, pack_open_keys),
    Finish: SettlementKind("finish", pack_finish, pack_closing_keys, _READ_MEMORY),
    Bury: SettlementKind("bury", pack_bury, pack_closing_keys, (_READ_SEND,)),
}
"""The kinds of settlements, by settlement class."""


def render_header(kinds: Collection[SettlementKind]) -> str:
    """Return the Lua header of the script: record fields, and the readers of these kinds."""
    return "\n".join((
        "-- Generated by broker/settle_script.py.",
        f"local RECORD = {_places(RECORD_FIELDS)}",
        _table("RECORD_FIELDS", ((kind.name, _texts(kind.record_fields)) for kind in kinds)),
        _table("read_keys", ((kind.name, _question_reader(kind.keys)) for kind in kinds)),
        _table("read_arguments", ((kind.name, _reader(kind.arguments)) for kind in kinds)),
        _function("read_header", _values(pack_header)),
        _function("read_demand", _values(pack_demand)),
        *dict.fromkeys(reader for kind in kinds for reader in kind.readers),
        "",
    ))  # fmt: skip


def _places(names: Iterable[str]) -> str:
    pairs = (f"{name} = {index}" for index, name in enumerate(names, 1))
    return f"{{ {', '.join(pairs)} }}"


def _texts(names: Iterable[str]) -> str:
    return f"{{ {', '.join(repr(name) for name in names)} }}"


def _reader(arguments: Group) -> str:
    return f"function() return {_values(arguments)} end"


def _question_reader(keys: Group) -> str:
    read = ", ".join(f"{name} = key()" for name in names_of(keys))
    return f"function(name) return {{ name = name, {read} }} end"


def _table(name: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = (f"  {kind} = {value}," for kind, value in rows)
    return "\n".join((f"local {name} = {{", *lines, "}"))


SETTLE = LuaScript(
    "settle",
    needs=["closing", "branches", "forward", "other_settlements"],
    header=render_header(KINDS.values()),
)
"""Handles settlements of all kinds."""
FORWARD = LuaScript("settle", needs=["forward"], header=render_header([KINDS[Forward]]))
"""Handles batches that contain only `Forward`, as most do.

Redis runs all definitions of a script in each call. Without the definitions for the other kinds, a
call takes 23 % fewer instructions (counted with callgrind).
"""


def pack_streams(ttl: str, roles: int) -> Packed:
    """Return the first arguments of every script that sends; the names of the roles follow.

    `ttl` is how long a closed question is kept, in milliseconds.
    """
    return ttl, roles


def pack_letters(cap: str, letters_ttl: str) -> Packed:
    """Return the next arguments of scripts that close questions: the maximum number of dead
    letters, and their TTL.

    `letters_ttl` is in milliseconds.
    """
    return cap, letters_ttl
