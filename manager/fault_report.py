"""Checks the work behind an answer; a fault is journaled and named."""

from collections.abc import Callable, Mapping, Sequence

from pydantic import JsonValue

from broker.values import Fields
from manager.evidence import record_hop, record_join
from manager.evidence_checks import check_evidence
from manager.fault_checks import FoundFault
from manager.flow import Stage
from manager.stage_event import StageEvent

OnFault = Callable[[str], None]
"""Receives the kind of each fault that a question ends with."""
_MOST_SHOWN = 20
_LOG = "evidence_log"


def ignore_fault(_kind: str) -> None:
    """Count nothing."""


def note_cut(result: Fields, branch: str) -> Fields:
    """Return the result of a branch with a record of intended cuts, if there were any."""
    log, writes = result.get(_LOG), result.get("writes")
    if not result.get("cut") or not isinstance(log, list) or not isinstance(writes, dict):
        return result
    return {**result, _LOG: [*log, record_hop("return", "manager", branch, {}, writes)]}


def note_join(
    payload: Mapping[str, JsonValue], branch: str, joined: Mapping[str, str]
) -> dict[str, JsonValue]:
    """Return the payload with a record of the branches that ended well, by path with their keys."""
    log = payload.get(_LOG)
    if not joined or not isinstance(log, list):
        return dict(payload)
    return {**payload, _LOG: [*log, record_join(str(payload.get("stage")), branch, joined)]}


def is_checked(stage: Stage, target: str, branch: str) -> bool:
    """Return whether the work is checked before this target: at the end, and at joins of branches.

    The end checks joins of the trunk too; the payload of a branch ends with the branch.
    """
    return target == "final" or (branch != "" and StageEvent.GATHERED in stage.events)


def list_faults(payload: Mapping[str, JsonValue], branch: str = "") -> list[JsonValue]:
    """Return the faults of a question so far in a branch, "" the trunk; at most twenty."""
    if not payload.get(_LOG):
        return []
    return [_describe(fault) for fault in check_evidence(payload, branch)[:_MOST_SHOWN]]


def report_faults(
    reply: Mapping[str, JsonValue],
    faults: Sequence[JsonValue],
    on_fault: OnFault = ignore_fault,
) -> dict[str, JsonValue]:
    """Return the reply with the faults of the work behind it, which `on_fault` counts by kind."""
    if not faults:
        return dict(reply)
    for kind in sorted({str(one["kind"]) for one in faults if isinstance(one, dict)}):
        on_fault(kind)
    return {**reply, "faults": [*faults]}


def _describe(fault: FoundFault) -> Fields:
    return {name: str(value) for name, value in fault.model_dump(mode="json").items() if value}
