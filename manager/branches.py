"""Starts the branches of a scatter, ends each branch with its result, and merges the results."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

import structlog
from pydantic import JsonValue

from agents.roster import SPECS
from broker.keys import stream_key
from broker.values import WATCH, BranchSend, Fields, FrameSend
from envelope.conversation import Turn
from envelope.encoding import brief
from envelope.envelope import Envelope
from envelope.payload import SYSTEM_ATTRIBUTES
from envelope.role import Role
from envelope.specialists import ErrorSeverity
from envelope.swarm import BY_WORKER, TOPIC_CHANGE
from manager.evidence_checks import note_join, note_shortened
from manager.flow import Counter, Flow, Return, Scatter, Stage, StageEvent
from manager.flows.stages import WORKED
from manager.result_limits import limit_result
from manager.state import BranchItem, BranchResult, ScatteredBranch, State, read_results
from manager.usage_totals import add_usages

log = structlog.get_logger("manager")
MOST_BRANCHES = 256
"""Maximum number of branches of one scatter; further branches are rejected."""
_COMPLETED, _FAILED, _RUNNING, _MISSING = "completed", "failed", "running", "missing"
_NEEDS_INPUT = "needs_input"
_ENDED = frozenset({_COMPLETED, _NEEDS_INPUT, _MISSING})
_COUNTED = (State.model_usage, State.exhausted_budget, State.evidence_log)
_NOT_INHERITED = frozenset({"stage", "attempt", "counters"})


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches that can start now, those that wait for others, and those that were rejected."""

    begin: tuple[BranchItem, ...]
    waiting: tuple[BranchItem, ...]
    refused: tuple[ScatteredBranch, ...]


NONE = Branches((), (), ())


def select_branches(items: Sequence[BranchItem], completed: Iterable[str] = ()) -> Branches:
    """Return the items that can start, given the keys of the completed ones.

    An item waits for its dependencies. It is rejected if a dependency failed or does not exist, if
    the dependencies are cyclic, if its key is a duplicate, or if there are more than
    `MOST_BRANCHES`.
    """
    refused: list[ScatteredBranch] = []
    known: dict[str, BranchItem] = {}
    for item in items:
        reason = "duplicate_key" if item.key in known else "too_many_branches"
        if item.key in known or len(known) >= MOST_BRANCHES:
            refused.append(_refuse(item, reason))
        else:
            known[item.key] = item
    done = set(completed)
    while lost := [
        item for item in known.values() if not known.keys() | done >= {*item.depends_on}
    ]:
        for item in lost:
            refused.append(_refuse(item, "dependency_failed"))
            del known[item.key]
    ready = [item for item in known.values() if done.issuperset(item.depends_on)]
    waiting = [item for item in known.values() if not done.issuperset(item.depends_on)]
    if not ready:
        refused += [_refuse(item, "cyclic_dependency") for item in waiting]
        waiting = []
    ready.sort(key=lambda item: -item.priority)
    return Branches(tuple(ready), tuple(waiting), tuple(refused))


def select_next_branches(state: State) -> Branches:
    """Return the waiting branches that can start now."""
    return select_branches(state.waiting_branches, _list_completed(state.branches))


def make_branches(
    envelope: Envelope, flow: Flow, scatter: Scatter, chosen: Branches, *, shard: int, is_wave: bool
) -> tuple[Envelope, str, list[BranchSend]]:
    """Return the envelope that waits for the branches, the name of the join, and the messages that
    start the branches.

    A further wave is added to the previous group of branches, and their results are reported
    together.
    """
    state = State(envelope.payload)
    made = state.branches_made
    stem = f"{envelope.branch}/" if envelope.branch else ""
    inherited = state.written(find_visible(flow, scatter.branch).union(scatter.handed_over))
    role = scatter.branch.role.value
    running: list[ScatteredBranch] = []
    sends: list[BranchSend] = []
    for number, item in enumerate(chosen.begin, made + 1):
        path = f"{stem}{role[0]}{number}"
        running.append(ScatteredBranch.make(path, item.key, _RUNNING))
        begun = inherited.changed(**item.adds).changed(stage=scatter.branch.name, attempt=0)
        sends.append(_make_send(envelope, role, path, begun, shard))
    before = state.branches if is_wave else ()
    waiting = state.changed(
        branches=[*before, *running, *chosen.refused],
        branches_made=made + len(sends),
        waiting_branches=chosen.waiting,
    )
    return envelope.replace(payload=waiting.json), f"{envelope.branch}#{made}", sends


def make_watch(envelope: Envelope, scatter: Scatter, shard: int) -> BranchSend | None:
    """Return the branch that reads waiting messages, if the scatter has one.

    The history of that branch is the conversation so far, followed by the running question.
    """
    if scatter.watch is None:
        return None
    state = State(envelope.payload)
    running = Turn(
        speaker="user",
        text=state.text,
        meant=state.canonical_question or None,
        language=state.language or None,
        groups=envelope.groups or None,
    )
    watching = State(state.copy(State.history_summary, State.people, State.preferences)).changed(
        stage=scatter.watch.name, attempt=0, history=[*state.history, running]
    )
    return _make_send(envelope, scatter.watch.role.value, _name_watch(envelope), watching, shard)


def describe_plan(
    sends: Sequence[BranchSend], chosen: Branches, completed: Sequence[str] = ()
) -> Fields:
    """Return the journal fields of the branches that start: their paths, and their labels if they
    have any.

    `completed` contains the titles of the planned tasks that earlier branches completed.
    """
    paths: list[JsonValue] = [send.path for send in sends]
    labels: list[JsonValue] = [item.label for item in chosen.begin]
    done: list[JsonValue] = [*completed]
    described: Fields = {"branches": paths, "plan": labels} if any(labels) else {"branches": paths}
    return {**described, "completed": done} if done else described


def note_refused(state: State, refused: Sequence[ScatteredBranch]) -> State:
    """Return the state with the rejected branches added."""
    return state.changed(branches=[*state.branches, *refused])


def gather_results(envelope: Envelope, *, may_ask: bool) -> tuple[Envelope, StageEvent]:
    """Return the envelope with the merged results of its branches, and the event of the stage.

    Results are merged in the order of the plan, by the merge rules of the catalogue; missing ones
    are marked as such. If `may_ask` is true, a branch that needs user input takes precedence. Hops
    and model calls are summed; the processing time is the time of the slowest branch.
    """
    results = read_results(envelope.gathered)
    state = _apply_watch(envelope, results)
    branches: list[ScatteredBranch] = []
    returned: list[BranchResult] = []
    joined: dict[str, str] = {}
    for branch in state.branches:
        if branch.status != _RUNNING:
            branches.append(branch)
            continue
        result = results.get(branch.branch)
        ended = _end_branch(branch, result)
        branches.append(ended)
        if result is None:
            continue
        returned.append(result)
        if _has_joined(ended, result):
            joined[branch.branch] = branch.key
        state = _merge_result(state, branch, result)
    hops = sum(result.hops for result in returned)
    state = state.changed(branches=branches, branch_hops=state.branch_hops + hops)
    state = note_join(state, envelope.branch, joined)
    gathered = envelope.replace(
        payload=state.json,
        gathered=None,
        process_count=envelope.process_count + hops,
        total_processing_time=envelope.total_processing_time
        + max((result.seconds for result in returned), default=0.0),
    )
    return gathered, _find_event(state, may_ask=may_ask)


def make_result(
    envelope: Envelope, action: Return, event: StageEvent, reason: str, *, is_late: bool
) -> tuple[Fields, bool]:
    """Return the result of a branch, and whether it is a success.

    `reason` is the reason why the branch ended early, if it did. A branch that has no result when
    its time is over (`is_late`) counts as missing.
    """
    own = envelope.hop.reason if envelope.hop is not None else ""
    has_failed = event is StageEvent.FAILED
    # If a hop failed at a limit, the reason of the failure takes precedence.
    why = own or reason if has_failed else reason or own
    is_good = action.is_good and not has_failed and not reason
    state = State(envelope.payload)
    if action.notes_failure and not is_good:
        state = state.added(errors=[describe_failed_work(envelope, why)])
        is_good = True
    result: Fields = {
        "status": _find_status(state, is_good=is_good, is_late=is_late),
        "writes": state.written(action.attributes).json,
        "hops": envelope.process_count,
        "seconds": round(envelope.total_processing_time, 4),
    }
    if why:
        result["reason"] = why
    if retries := state.counters.get(Counter.RETRY):
        result["attempts"] = retries + 1
    result |= state.copy(*_COUNTED)
    limited = limit_result(result, envelope.branch)
    return note_shortened(limited, envelope.branch), is_good


def describe_failed_work(envelope: Envelope, reason: str) -> Fields:
    """Return an entry of `errors` for a branch whose work failed."""
    named = State(envelope.payload).stage
    digest = zlib.crc32(f"{envelope.message_id}/{envelope.branch}/{named}".encode())
    # The date is that of the message, so that a redelivered failure has the same id.
    day = datetime.fromtimestamp(envelope.create_ts, UTC).date().isoformat()
    worker = envelope.hop.role if envelope.hop is not None else named
    error_id, severity = f"RD-{day}-{digest % 100_000:05d}", ErrorSeverity.HIGH.value
    log.warning(
        "specialist_failed", error_id=error_id, specialist=worker, severity=severity, phase=named
    )
    return {
        "error_id": error_id,
        "specialist": worker,
        "text": brief(reason or "the branch ended without a result"),
        "severity": severity,
        "phase": named,
    }


def make_gather_send(envelope: Envelope, scatter: Scatter, shard: int) -> FrameSend:
    """Return the message that continues at the gather stage with the results."""
    role = Role.MANAGER.value
    waits = envelope.replace(
        payload=State(envelope.payload).changed(stage=scatter.gather.name).json,
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

    Attributes that the branch returns are excluded, because otherwise its result would be merged
    with itself.
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
    """Return the roles to which the joins of a flow may send frames."""
    scatters = (scatter for row in flow.rows for scatter in row.scatters)
    return tuple(sorted({Role.MANAGER.value, *(scatter.branch.role.value for scatter in scatters)}))


def _make_send(envelope: Envelope, role: str, path: str, state: State, shard: int) -> BranchSend:
    """Return the message that starts a branch."""
    branch = envelope.with_branch(path, state.json).replace(
        gathered=None,
        sender_role=Role.MANAGER.value,
        target_role=role,
        target_list=stream_key(role, shard),
    )
    return BranchSend(role, decoded=branch, path=path)


def _end_branch(branch: ScatteredBranch, result: BranchResult | None) -> ScatteredBranch:
    """Return the entry of a branch that has ended. Without a result, the branch is marked as
    missing.
    """
    if result is None:
        return ScatteredBranch({**branch.json, "status": _MISSING})
    status = result.status if result.status in _ENDED else _FAILED
    more = result.copy_filled(BranchResult.reason, BranchResult.attempts, BranchResult.left_out)
    return ScatteredBranch({**branch.json, "status": status, **more})


def _has_joined(branch: ScatteredBranch, result: BranchResult) -> bool:
    """Return whether the result of a branch is evidence in the branch or trunk that started it.

    A worker that waits for user input returns its progress. A tool call that waits returns nothing.
    """
    if branch.status == _NEEDS_INPUT:
        return State.worker_outputs in State(result.writes)
    return branch.status == _COMPLETED and ScatteredBranch.reason not in branch


def _merge_result(state: State, branch: ScatteredBranch, result: BranchResult) -> State:
    """Return the state with the writes, the usage, and the evidence log of a branch added."""
    state = _add_usage(state.merged(result.writes), result, branch.key)
    if BranchResult.exhausted_budget in result:
        state = state.changed(exhausted_budget=result.exhausted_budget)
    return state.merged(result.copy(BranchResult.evidence_log))


def _apply_watch(envelope: Envelope, results: Mapping[str, BranchResult]) -> State:
    """Return the state, with `TOPIC_CHANGE` if a message about a different topic ended the work."""
    state, watched = State(envelope.payload), results.get(_name_watch(envelope))
    if watched is None:
        return state
    return _add_usage(state, watched, WATCH).changed(termination_reason=TOPIC_CHANGE)


def _name_watch(envelope: Envelope) -> str:
    return f"{envelope.branch}/{WATCH}" if envelope.branch else WATCH


def _find_status(state: State, *, is_good: bool, is_late: bool) -> str:
    if not is_good:
        return _MISSING if is_late else _FAILED
    return _NEEDS_INPUT if state.needs_input else _COMPLETED


def _find_event(state: State, *, may_ask: bool) -> StageEvent:
    branches = state.branches
    if may_ask and any(branch.status == _NEEDS_INPUT for branch in branches):
        return StageEvent.NEEDS_INPUT
    if select_next_branches(state).begin:
        return StageEvent.MORE
    return StageEvent.GATHERED if _list_completed(branches) else StageEvent.FAILED


def _list_completed(branches: Iterable[ScatteredBranch]) -> list[str]:
    return [branch.key for branch in branches if branch.status == _COMPLETED]


def _refuse(item: BranchItem, reason: str) -> ScatteredBranch:
    return ScatteredBranch.make("", item.key, _FAILED, reason=reason)


def _add_usage(state: State, result: BranchResult, key: str) -> State:
    """Return the state with the model usage of a branch added; the usage of a worker is also
    recorded per worker.
    """
    if BranchResult.model_usage not in result:
        return state
    usage, before = result.model_usage, state.model_usage
    total = add_usages(before.json if before is not None else {}, usage)
    if state.stage == WORKED.name:
        total = add_usages(total, {BY_WORKER: {key: usage}})
    return state.changed(model_usage=total)
