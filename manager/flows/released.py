"""Keeps the flows of the last release, so that open messages are finished with the rows with which
they started.

`python -m deploy.generate.flows` writes `released.json` for each release. A flow whose rows have
changed since then gets a new version, and both versions are supported until the next release.
Released rows keep their targets; events that were added later use the rows of the current flow.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from typing import Any

from envelope.conversation import ClarificationReason
from envelope.role import Role
from manager import classify
from manager.flow import (
    GATHER_EVENTS,
    RESUME_EVENTS,
    Counter,
    Ending,
    Final,
    Flow,
    Join,
    Next,
    PauseFor,
    Return,
    Row,
    Scatter,
    Stage,
    StageEvent,
    Target,
    make_gather_stage,
    make_resume_stage,
)

Table = dict[str, Any]
"""A flow as JSON: version, hop limit, stages by name, and rows."""


def make_flow(name: str, rows: Iterable[Row], *, most_hops: int | None = None) -> Flow:
    """Return a flow with the released version if its rows are unchanged, otherwise with the next
    version.
    """
    return number_flow(Flow(name, 1, rows, most_hops=most_hops), read_released())


def number_flow(flow: Flow, released: Mapping[str, Table]) -> Flow:
    """Set the version of the flow and return the flow; see `make_flow`."""
    if (table := released.get(flow.name)) is not None:
        flow.version = table["version"]
        flow.version += describe_flow(flow) != table
    return flow


def restore_flows(flows: Iterable[Flow], released: Mapping[str, Table]) -> dict[str, Flow]:
    """Return the released version of each flow that has changed since the release, by
    identifier.
    """
    restored = [
        _restore(flow, released[flow.name])
        for flow in flows
        if flow.name in released and flow.version != released[flow.name]["version"]
    ]
    return {flow.identifier: flow for flow in restored}


@lru_cache(1)
def read_released() -> dict[str, Table]:
    """Return the flows of the last release, by name."""
    tables: dict[str, Table] = json.loads(
        files("manager.flows").joinpath("released.json").read_bytes()
    )
    return tables


def describe_flow(flow: Flow) -> Table:
    """Return a flow as JSON."""
    return {
        "version": flow.version,
        "most_hops": flow.most_hops,
        "stages": {
            stage.name: [stage.role.value, _name_kind(stage)] for stage in flow.stages.values()
        },
        "rows": [
            [
                row.after.name,
                row.did.value,
                _describe(row.go_to),
                None if row.counts is None else row.counts.value,
                None if row.at_limit is None else _describe(row.at_limit),
                None if row.reason is None else row.reason.value,
                row.is_fallback,
            ]
            for row in flow.rows
        ],
    }


def _name_kind(stage: Stage) -> str:
    """Return the name of the classifier of a stage, or "gather" or "resume"."""
    if stage.events >= GATHER_EVENTS:
        return "gather"
    return "resume" if stage.events >= RESUME_EVENTS else stage.classify.__name__


def _describe(target: Target) -> object:
    match target:
        case Stage():
            return target.name
        case Final():
            return {"final": target.ending.name}
        case Scatter():
            return {
                "scatter": target.branch.name,
                "gather": target.gather.name,
                "plan": f"{target.plan.__module__}.{target.plan.__name__}",
                "join": asdict(target.join),
                "handed_over": list(target.handed_over),
                "watch": None if target.watch is None else target.watch.name,
            }
        case Return():
            return {
                "return": list(target.attributes),
                "notes_failure": target.notes_failure,
                "is_good": target.is_good,
            }
        case PauseFor():
            return {"pause": target.kind, "resume": target.resume.name}
        case Next():
            return {
                "next": [stage.name for stage in target.stages],
                "done": _describe(target.done),
            }


def _restore(now: Flow, table: Table) -> Flow:
    """Return a released flow, with rows of the current flow for events that were added later."""
    stages = dict(now.stages)
    for name, (role, kind) in table["stages"].items():
        if name not in stages:
            events = frozenset(StageEvent(row[1]) for row in table["rows"] if row[0] == name)
            stages[name] = _make_stage(name, _find_role(role), kind, events)
    rows = [
        Row(
            stages[after],
            StageEvent(did),
            _read_target(go_to, stages),
            None if counts is None else Counter(counts),
            None if at_limit is None else _read_target(at_limit, stages),
            None if reason is None else ClarificationReason(reason),
            is_fallback,
        )
        for after, did, go_to, counts, at_limit, reason, is_fallback in table["rows"]
        if did in stages[after].events
    ]
    rows += _list_further(rows, now)
    return Flow(now.name, table["version"], rows, most_hops=table["most_hops"])


def _list_further(rows: list[Row], now: Flow) -> list[Row]:
    """Return the rows of the current flow that are missing from the stages, and the rows of the
    stages that they reach.
    """
    known, further = {(row.after, row.did) for row in rows}, list[Row]()
    stages = set(Flow(now.name, now.version, rows).stages.values())
    while fresh := [
        row for row in now.rows if row.after in stages and (row.after, row.did) not in known
    ]:
        further += fresh
        known |= {(row.after, row.did) for row in fresh}
        stages |= set(Flow(now.name, now.version, fresh).stages.values())
    return further


def _find_role(role: str) -> Role:
    """Return the role of a stage. If no agent has that role any longer, the manager handles the
    stage.
    """
    return Role(role) if role in set(Role) else Role.MANAGER


def _make_stage(name: str, role: Role, kind: str, events: frozenset[StageEvent]) -> Stage:
    if kind == "gather":
        return make_gather_stage(name, may_ask=StageEvent.NEEDS_INPUT in events)
    if kind == "resume":
        return make_resume_stage(name)
    return Stage(name, role, events, getattr(classify, kind))


def _read_target(value: Any, stages: Mapping[str, Stage]) -> Target:
    match value:
        case str():
            return stages[value]
        case {"final": ending}:
            return Final(Ending[ending])
        case {"scatter": branch, "gather": gather, "plan": plan, "watch": watch}:
            module, _, function = plan.rpartition(".")
            return Scatter(
                stages[branch],
                stages[gather],
                getattr(import_module(module), function),
                Join(**value["join"]),
                tuple(value["handed_over"]),
                None if watch is None else stages[watch],
            )
        case {"return": attributes, "notes_failure": notes_failure, "is_good": is_good}:
            return Return(tuple(attributes), notes_failure, is_good)
        case {"pause": kind, "resume": resume}:
            return PauseFor(kind, stages[resume])
        case {"next": names, "done": done}:
            last = _read_target(done, stages)
            if isinstance(last, Stage | Return):
                return Next(tuple(stages[name] for name in names), last)
    raise ValueError(f"expected the target of a released row, found {value!r}")
