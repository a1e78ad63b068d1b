"""Begins the branches of a scatter, ends a branch with its result, and merges the results."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache

import structlog
from pydantic import JsonValue

from agents.roster import SPECS
from broker.journal_events import JournalEvent
from broker.keys import stream_key
from broker.values import WATCH, BranchSend, Fields, FrameSend, ReturnResult
from envelope.conversation import Turn
from envelope.encoding import brief, to_json
from envelope.envelope import Envelope
from envelope.payload import MERGE_RULES, SYSTEM_ATTRIBUTES, merge_writes
from envelope.role import Role
from envelope.specialists import ErrorSeverity
from envelope.swarm import BY_WORKER, TOPIC_CHANGE
from manager.evidence_checks import note_cut, note_join
from manager.flow import BranchItem, Counter, Flow, Return, Scatter, Stage, StageEvent, Writes
from manager.flows.stages import WORKED
from manager.machine import read_counters, write_payload

log = structlog.get_logger("manager")
MOST_BRANCHES = 256
"""The most branches of one scatter; more of them are refused."""
_COMPLETED, _FAILED, _RUNNING, _MISSING = "completed", "failed", "running", "missing"
_NEEDS_INPUT = "needs_input"
_COUNTED = ("model_usage", "exhausted_budget", "evidence_log")
_SEEN_BY_WATCH = ("history_summary", "people", "preferences")
_NOT_INHERITED = frozenset({"stage", "attempt", "counters"})


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches that begin now, those that wait for them, and those that cannot begin."""

    begin: tuple[BranchItem, ...]
    waiting: tuple[BranchItem, ...]
    refused: tuple[dict[str, JsonValue], ...]


NONE = Branches((), (), ())


def select_branches(items: Sequence[BranchItem], completed: Iterable[str] = ()) -> Branches:
    """Return which items can begin after those with the keys in `completed`.

    An item waits for the items that it depends on. It is refused if one of them failed or does not
    exist, if they depend on each other in a circle, if its key is taken, or if there are too many.
    """
    refused: list[dict[str, JsonValue]] = []
    known: dict[str, BranchItem] = {}
    for item in items:
        reason = "duplicate_key" if item.key in known else "too_many_branches"
        if item.key in known or len(known) >= MOST_BRANCHES:
            refused.append(_describe_failure(item.key, reason))
        else:
            known[item.key] = item
    done = set(completed)
    while lost := [one for one in known.values() if not known.keys() | done >= {*one.depends_on}]:
        for item in lost:
            refused.append(_describe_failure(item.key, "dependency_failed"))
            del known[item.key]
    ready = [item for item in known.values() if done.issuperset(item.depends_on)]
    waiting = [item for item in known.values() if not done.issuperset(item.depends_on)]
    if not ready:
        refused += [_describe_failure(item.key, "cyclic_dependency") for item in waiting]
        waiting = []
    ready.sort(key=lambda item: -item.priority)
    return Branches(tuple(ready), tuple(waiting), tuple(refused))


def select_next_branches(envelope: Envelope) -> Branches:
    """Return which of the branches that wait can begin now."""
    waiting = envelope.payload.get("waiting_branches")
    items = [_parse_item(each) for each in (waiting if isinstance(waiting, list) else ())]
    return select_branches(items, _list_completed(_list_branches(envelope)))


def make_branches(
    envelope: Envelope, flow: Flow, scatter: Scatter, chosen: Branches, *, shard: int, is_wave: bool
) -> tuple[Envelope, str, list[BranchSend]]:
    """Return the envelope that waits for the branches, the name of their join, and their frames.

    A wave continues the scatter before it: the results of both are reported together.
    """
    made = envelope.payload.get("branches_made")
    made = made if isinstance(made, int) else 0
    stem = f"{envelope.branch}/" if envelope.branch else ""
    visible = find_visible(flow, scatter.branch).union(scatter.handed_over)
    inherited = {name: envelope.payload[name] for name in visible if name in envelope.payload}
    role = scatter.branch.role.value
    running: list[Fields] = []
    sends: list[BranchSend] = []
    for number, item in enumerate(chosen.begin, made + 1):
        path = f"{stem}{role[0]}{number}"
        running.append({"branch": path, "key": item.key, "status": _RUNNING})
        payload = write_payload(
            inherited, {**item.adds, "stage": scatter.branch.name, "attempt": 0}
        )
        branch = envelope.with_branch(path, payload).replace(
            gathered=None,
            sender_role=Role.MANAGER.value,
            target_role=role,
            target_list=stream_key(role, shard),
        )
        sends.append(BranchSend(role, decoded=branch, path=path))
    before: list[Fields] = _list_branches(envelope) if is_wave else []
    changes: dict[str, JsonValue] = {
        "branches": [*before, *running, *chosen.refused],
        "branches_made": made + len(sends),
        "waiting_branches": [_encode_item(item) for item in chosen.waiting],
    }
    parent = envelope.replace(payload=write_payload(envelope.payload, changes))
    return parent, f"{envelope.branch}#{made}", sends


def make_watch(envelope: Envelope, scatter: Scatter, shard: int) -> BranchSend | None:
    """Return the branch that reads waiting messages, if the scatter has one. It reads them as the
    next turn after the conversation so far and the running question.
    """
    if scatter.watch is None:
        return None
    before, role = envelope.payload, scatter.watch.role.value
    running = Turn(
        speaker="user",
        text=str(before.get("text") or ""),
        meant=str(before.get("canonical_question") or "") or None,
        language=str(before.get("language") or "") or None,
        groups=envelope.groups or None,
    )
    known: Writes = {name: before[name] for name in _SEEN_BY_WATCH if name in before}
    turns = before.get("history")
    changes: dict[str, JsonValue] = {
        "stage": scatter.watch.name,
        "attempt": 0,
        "history": [
            *(turns if isinstance(turns, list) else []),
            running.model_dump(mode="json", exclude_none=True),
        ],
    }
    path = _name_watch(envelope)
    watch = envelope.with_branch(path, write_payload(known, changes)).replace(
        gathered=None,
        sender_role=Role.MANAGER.value,
        target_role=role,
        target_list=stream_key(role, shard),
    )
    return BranchSend(role, decoded=watch, path=path)


def describe_plan(
    sends: Sequence[BranchSend], chosen: Branches, completed: Sequence[str] = ()
) -> Fields:
    """Return the branches that begin, for the journal, with their labels if they have some.

    `completed` are the parts of the same plan that earlier branches have completed.
    """
    paths: list[JsonValue] = [send.path for send in sends]
    labels: list[JsonValue] = [item.label for item in chosen.begin]
    done: list[JsonValue] = [*completed]
    described: Fields = {"branches": paths, "plan": labels} if any(labels) else {"branches": paths}
    return {**described, "completed": done} if done else described


def note_refused(envelope: Envelope, refused: Sequence[dict[str, JsonValue]]) -> Envelope:
    """Return the envelope with branches none of which can begin."""
    changes: dict[str, JsonValue] = {"branches": [*_list_branches(envelope), *refused]}
    return envelope.replace(payload=write_payload(envelope.payload, changes))


def gather_results(envelope: Envelope, *, may_ask: bool) -> tuple[Envelope, StageEvent]:
    """Return the envelope with the results of its branches, and the event of the stage.

    Results are merged in the order of the plan, by the rules of the catalogue. Missing ones are
    named. With `may_ask`, a branch that needs something from the user takes precedence. Hops and
    model calls are added up; the time is that of the slowest branch.
    """
    found = envelope.gathered if envelope.gathered is not None else {}
    payload, branches = _take_look(envelope, found), _list_branches(envelope)
    hops, seconds = 0, 0.0
    joined: dict[str, str] = {}
    for branch in branches:
        if branch.get("status") != _RUNNING:
            continue
        result = found.get(str(branch["branch"]))
        if not isinstance(result, dict):
            branch |= {"status": _MISSING}
            continue
        known = (_COMPLETED, _NEEDS_INPUT, _MISSING)
        status = result["status"] if result.get("status") in known else _FAILED
        branch |= {"status": status, **_pick(result, "reason", "attempts")}
        writes = result.get("writes")
        # A worker that waits for the user returns its progress; a call that waits returns nothing.
        waits = status == _NEEDS_INPUT and isinstance(writes, dict) and "worker_outputs" in writes
        worked = status == _COMPLETED and "reason" not in branch
        if worked or waits:
            joined[str(branch["branch"])] = str(branch["key"])
        if isinstance(writes, dict):
            payload = merge_writes(payload, writes, MERGE_RULES)
        hops += int(_number(result.get("hops")))
        seconds = max(seconds, _number(result.get("seconds")))
        payload = _add_usage(payload, result.get("model_usage"), str(branch["key"]))
        if "exhausted_budget" in result:
            payload["exhausted_budget"] = result["exhausted_budget"]
        if "evidence_log" in result:
            payload = merge_writes(payload, {"evidence_log": result["evidence_log"]}, MERGE_RULES)
    payload["branches"] = list(branches)
    payload["branch_hops"] = int(_number(payload.get("branch_hops"))) + hops
    payload = note_join(payload, envelope.branch, joined)
    gathered = envelope.replace(
        payload=payload,
        gathered=None,
        process_count=envelope.process_count + hops,
        total_processing_time=envelope.total_processing_time + seconds,
    )
    return gathered, _find_event(gathered, branches, may_ask=may_ask)


def _take_look(envelope: Envelope, found: Fields) -> dict[str, JsonValue]:
    """Return the payload, with a note if a message about another topic ended the work."""
    payload, looked = dict(envelope.payload), found.get(_name_watch(envelope))
    if not isinstance(looked, dict):
        return payload
    payload = _add_usage(payload, looked.get("model_usage"), WATCH)
    return {**payload, "termination_reason": TOPIC_CHANGE}


def _name_watch(envelope: Envelope) -> str:
    return f"{envelope.branch}/{WATCH}" if envelope.branch else WATCH


def make_return(
    envelope: Envelope,
    flow: Flow,
    action: Return,
    event: StageEvent,
    reason: str,
    journal: Sequence[JournalEvent],
    *,
    is_late: bool,
) -> ReturnResult:
    """Return the settlement that ends a branch with its result; `reason`: why it ended early.

    A branch that ends without a result when its time is over (`is_late`) is missing.
    """
    own = envelope.hop.reason if envelope.hop is not None else ""
    has_failed = event is StageEvent.FAILED
    # A failure at a limit keeps the reason of the failure.
    why = own or reason if has_failed else reason or own
    is_good = action.is_good and not has_failed and not reason
    payload = envelope.payload
    if action.notes_failure and not is_good:
        payload = merge_writes(payload, describe_failed_work(envelope, why), MERGE_RULES)
        is_good = True
    result: Fields = {
        "status": _find_status(payload, is_good=is_good, is_late=is_late),
        "writes": {name: payload[name] for name in action.attributes if name in payload},
        "hops": envelope.process_count,
        "seconds": round(envelope.total_processing_time, 4),
    }
    if why:
        result["reason"] = why
    if retries := read_counters(payload).get(Counter.RETRY):
        result["attempts"] = retries + 1
    result |= {name: payload[name] for name in _COUNTED if name in payload}
    bounded = note_cut(bound_result(result), envelope.branch)
    return ReturnResult(bounded, is_good, list_join_roles(flow), journal)


def describe_failed_work(envelope: Envelope, reason: str) -> Fields:
    """Return the entry of `errors` about the work that failed in a branch."""
    named = str(envelope.payload.get("stage") or "")
    digest = zlib.crc32(f"{envelope.message_id}/{envelope.branch}/{named}".encode())
    # A redelivered failure has the same id: its date is that of the message.
    day = datetime.fromtimestamp(envelope.create_ts, UTC).date().isoformat()
    worker = envelope.hop.role if envelope.hop is not None else named
    error_id, severity = f"RD-{day}-{digest % 100_000:05d}", ErrorSeverity.HIGH.value
    log.warning(
        "specialist_failed", error_id=error_id, specialist=worker, severity=severity, phase=named
    )
    error: Fields = {
        "error_id": error_id,
        "specialist": worker,
        "text": brief(reason or "it ended without a result"),
        "severity": severity,
        "phase": named,
    }
    return {"errors": [error]}


def make_gather_send(envelope: Envelope, scatter: Scatter, shard: int) -> FrameSend:
    """Return the frame that goes on with the results."""
    role = Role.MANAGER.value
    changes: dict[str, JsonValue] = {"stage": scatter.gather.name}
    waits = envelope.replace(
        payload=write_payload(envelope.payload, changes),
        hop=None,
        gathered=None,
        retries=0,
        sender_role=role,
        target_role=role,
        target_list=stream_key(role, shard),
    )
    return FrameSend(role, decoded=waits)


@lru_cache(64)
def find_visible(flow: Flow, branch: Stage) -> frozenset[str]:
    """Return the attributes that a branch inherits: those that its roles read.

    It does not inherit what it returns: otherwise its result would be merged with itself.
    """
    stages = flow.find_branch_stages(branch)
    roles = {stage.role for stage in stages} - {Role.MANAGER}
    returned = {
        name
        for row in flow.rows
        if row.after in stages
        for target in (row.go_to, row.at_limit)
        if isinstance(target, Return)
        for name in target.attributes
    }
    read = frozenset[str]().union(*(SPECS[role.value].reads for role in roles))
    return read - returned - _NOT_INHERITED - SYSTEM_ATTRIBUTES


@lru_cache(64)
def list_join_roles(flow: Flow) -> tuple[str, ...]:
    """Return the roles to which the joins of a flow may send."""
    scatters = (scatter for row in flow.rows for scatter in row.scatters)
    return tuple(sorted({Role.MANAGER.value, *(each.branch.role.value for each in scatters)}))


def _find_status(payload: Writes, *, is_good: bool, is_late: bool) -> str:
    if not is_good:
        return _MISSING if is_late else _FAILED
    return _NEEDS_INPUT if payload.get("needs_input") else _COMPLETED


def _find_event(envelope: Envelope, branches: Sequence[Fields], *, may_ask: bool) -> StageEvent:
    if may_ask and any(each.get("status") == _NEEDS_INPUT for each in branches):
        return StageEvent.NEEDS_INPUT
    if select_next_branches(envelope).begin:
        return StageEvent.MORE
    return StageEvent.GATHERED if _list_completed(branches) else StageEvent.FAILED


def _list_branches(envelope: Envelope) -> list[Fields]:
    found = envelope.payload.get("branches")
    return [{**each} for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _list_completed(branches: Sequence[Fields]) -> list[str]:
    return [str(each["key"]) for each in branches if each.get("status") == _COMPLETED]


def _describe_failure(key: str, reason: str) -> dict[str, JsonValue]:
    return {"branch": "", "key": key, "status": _FAILED, "reason": reason}


def _pick(result: Fields, *names: str) -> Fields:
    return {name: result[name] for name in names if result.get(name)}


def _encode_item(item: BranchItem) -> Fields:
    return {
        "key": item.key,
        "adds": dict(item.adds),
        "depends_on": list(item.depends_on),
        "priority": item.priority,
        "label": item.label,
    }


def _parse_item(found: JsonValue) -> BranchItem:
    fields: Writes = found if isinstance(found, dict) else {}
    adds, depends_on = fields.get("adds"), fields.get("depends_on")
    return BranchItem(
        str(fields.get("key")),
        adds if isinstance(adds, dict) else {},
        tuple(str(key) for key in (depends_on if isinstance(depends_on, list) else ())),
        int(_number(fields.get("priority"))),
        str(fields.get("label") or ""),
    )


def _add_usage(payload: dict[str, JsonValue], usage: JsonValue, key: str) -> dict[str, JsonValue]:
    """Return the payload with the usage of a branch; that of a worker is also recorded for the
    worker.
    """
    if not isinstance(usage, dict):
        return payload
    before = payload.get("model_usage")
    total = add_usages(before if isinstance(before, dict) else {}, usage)
    if payload.get("stage") == WORKED.name:
        total = add_usages(total, {BY_WORKER: {key: usage}})
    return {**payload, "model_usage": total}


def _number(value: JsonValue) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


LARGEST_RESULT = 32_000
"""The most bytes that a branch returns."""
_HEAD, _TAIL = 0.60, 0.35
_COUNTS = ("hops", "seconds", "model_usage", "exhausted_budget")
_SHORTEST = 200
"""Texts of fewer characters are never cut."""


def bound_result(result: Fields, largest: int = LARGEST_RESULT) -> Fields:
    """Return a result of at most `largest` bytes as JSON.

    Texts are cut to the same length each, by halves, until the result is small enough. A result
    that is too large even then, such as a list of a million numbers, becomes a failure.
    """
    size = len(to_json(result))
    if size <= largest:
        return result
    longest = largest
    while longest > _SHORTEST:
        longest //= 2
        cut = {name: _cut(value, longest) for name, value in result.items()}
        if len(to_json(cut)) <= largest:
            return {**cut, "cut": True}
    counted: Fields = {name: result[name] for name in _COUNTS if name in result}
    reason = f"expected a result of at most {largest} bytes, found {size}"
    return {"status": "failed", "writes": {}, "reason": reason, **counted}


def cut_text(text: str, longest: int) -> str:
    """Return a text of about `longest` characters: its first 60 % and its last 35 %."""
    if len(text) <= longest:
        return text
    head, tail = int(longest * _HEAD), int(longest * _TAIL)
    return f"{text[:head]} [... {len(text) - head - tail} characters ...] {text[-tail:]}"


def _cut(value: JsonValue, longest: int) -> JsonValue:
    if isinstance(value, str):
        return cut_text(value, longest)
    if isinstance(value, list):
        return [_cut(item, longest) for item in value]
    if isinstance(value, dict):
        return {name: _cut(item, longest) for name, item in value.items()}
    return value


_PRICES = frozenset({"cost_usd", "saved_usd"})


def add_usages(
    before: Mapping[str, JsonValue], more: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the sum of two values of the attribute `model_usage`.

    A price is unknown (None) if one of the two is. The parts by agent are added up, too.
    """
    total = dict(before)
    for name, value in more.items():
        if isinstance(value, dict):
            total[name] = _add_agents(total.get(name), value)
            continue
        known = total.get(name, "0" if name in _PRICES else 0)
        total[name] = _add_prices(known, value) if name in _PRICES else _add_counts(known, value)
    return total


def _add_agents(before: JsonValue, more: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    total = dict(before) if isinstance(before, dict) else {}
    for name, value in more.items():
        known = total.get(name)
        if isinstance(value, dict):
            total[name] = add_usages(known if isinstance(known, dict) else {}, value)
    return total


def _add_prices(one: JsonValue, other: JsonValue) -> str | None:
    return None if one is None or other is None else str(Decimal(str(one)) + Decimal(str(other)))


def _add_counts(one: JsonValue, other: JsonValue) -> JsonValue:
    return one + other if isinstance(one, int) and isinstance(other, int) else other
