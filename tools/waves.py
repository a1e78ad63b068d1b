"""Orders calls by their dependencies: the calls of one wave may run at the same time."""

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from tools.calls import ToolCall, ToolErrorType, ToolResult


@dataclass(frozen=True, slots=True)
class Waves:
    """Calls in the order in which they can run, and results of those that never can."""

    waves: tuple[tuple[ToolCall, ...], ...]
    refused: tuple[ToolResult, ...] = ()


def arrange_waves(calls: Sequence[ToolCall], *, done: frozenset[str] = frozenset()) -> Waves:
    """Return calls by wave; `done` are the ids of earlier calls that have results already.

    A call that depends on itself, on a call that does not exist, or on one that is refused, is
    refused with a reason. So are calls with the id of another one, and all calls of a cycle.
    """
    refused: dict[str, str] = {}
    known: dict[str, ToolCall] = {}
    doubled: list[ToolResult] = []
    for call in calls:
        if call.call_id in known or call.call_id in done:
            doubled.append(_refuse(call, "expected an id that no other call has"))
        else:
            known[call.call_id] = call
    while problems := _find_problems(known, done):
        refused |= problems
        for call_id in problems:
            del known[call_id]
    by_id = {call.call_id: call for call in calls}
    results = (*(_refuse(by_id[name], reason) for name, reason in refused.items()), *doubled)
    return Waves(tuple(_sort(known, done)), results)


def _find_problems(known: dict[str, ToolCall], done: frozenset[str]) -> dict[str, str]:
    problems = {
        name: f"expected ids of other calls in depends_on, found {missing[0][:80]!r}"
        for name, call in known.items()
        if (missing := [one for one in call.depends_on if one not in known and one not in done])
    }
    if problems:
        return problems
    try:
        TopologicalSorter(_list_needs(known, done)).prepare()
    except CycleError as error:
        cycle = error.args[1]
        shown = " -> ".join(str(name)[:80] for name in cycle)
        return dict.fromkeys(cycle, f"expected calls that wait for no cycle, found {shown}")
    return {}


def _sort(known: dict[str, ToolCall], done: frozenset[str]) -> list[tuple[ToolCall, ...]]:
    sorter = TopologicalSorter(_list_needs(known, done))
    sorter.prepare()
    waves = []
    while sorter.is_active():
        ready = set(sorter.get_ready())
        waves.append(tuple(call for name, call in known.items() if name in ready))
        sorter.done(*ready)
    return waves


def _list_needs(known: dict[str, ToolCall], done: frozenset[str]) -> dict[str, set[str]]:
    return {name: set(call.depends_on) - done for name, call in known.items()}


def _refuse(call: ToolCall, reason: str) -> ToolResult:
    return ToolResult(
        call_id=call.call_id,
        tool=call.tool,
        success=False,
        error_type=ToolErrorType.VALIDATION,
        error=reason,
    )
