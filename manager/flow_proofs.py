"""Checks the invariants of flows from their rows, and renders flows as documentation.

The checks are run by a test. The trunk consists of the stages that a message passes through from
its start. A branch consists of the stage at which a scatter starts it, and the stages that follow.
After a scatter, the trunk or branch that contains it continues at the gather stage.
"""

from collections.abc import Callable, Iterable, Iterator

from envelope.role import Role
from manager.flow import (
    GATHER_EVENTS,
    RESUME_EVENTS,
    Final,
    Flow,
    Next,
    PauseFor,
    Return,
    Row,
    Scatter,
    Stage,
    StageEvent,
    Target,
)

DEEPEST = 3
"""Maximum nesting depth of branches."""
Edges = Callable[[Row], tuple[Stage, ...]]
HEADER = """# The flows of the assistant

Generated from `manager/flows/` by `python -m deploy.generate.pages`; do not edit.

Each row names a stage, the event of its hop, and the next role. A row with a counter leads to the
target *at its limit* after the manager has taken it as often as the settings allow; if that target
is a refusal and the message has a scored answer by then, Refdesk sends that answer instead.
[ways.md](../ways.md) explains which flow a question takes.
"""


def find_flow_problems(flow: Flow) -> list[str]:
    """Return a description of each violated invariant."""
    return [
        *_find_unanswered(flow),
        *_find_unreached(flow),
        *_find_uncounted_cycles(flow),
        *_find_endless(flow),
        *_find_wrong_ends(flow),
        *_find_wrong_joins(flow),
        *_find_wrong_pauses(flow),
        *_find_too_deep(flow),
    ]


def find_reached(
    flow: Flow, start: Stage, edges: Edges = lambda row: row.targets
) -> frozenset[Stage]:
    """Return `start` and all stages that can follow it."""
    reached, frontier = {start}, [start]
    while frontier:
        fresh = _follow(flow, frontier.pop(), edges) - reached
        reached |= fresh
        frontier.extend(fresh)
    return frozenset(reached)


def draw(flows: Iterable[Flow]) -> str:
    """Return the documentation page: a Mermaid diagram and the table of each flow."""
    parts = [HEADER]
    for flow in flows:
        parts += [f"## `{flow.name}`, version {flow.version}", "", *_diagram(flow), ""]
        parts += [*_table(flow), ""]
    return "\n".join(parts)


def _find_unanswered(flow: Flow) -> Iterator[str]:
    """Check that every stage has a row for each of its events, including failure, and no others."""
    answered = {(row.after, row.did) for row in flow.rows}
    possible = {(stage, event) for stage in flow.stages.values() for event in stage.events}
    for stage, event in possible - answered:
        yield f"{stage}.{event} has no row"
    for stage, event in answered - possible:
        yield f"{stage}.{event} cannot happen"
    for stage in flow.stages.values():
        if StageEvent.FAILED not in stage.events:
            yield f"{stage} has no row for failure"


def _find_unreached(flow: Flow) -> Iterator[str]:
    reached = find_reached(flow, flow.start).union(*_list_branches(flow))
    for stage in flow.stages.values():
        if stage not in reached:
            yield f"{stage} is never reached"


def _find_uncounted_cycles(flow: Flow) -> Iterator[str]:
    """Check that every cycle has a counter. Rows at their limit are not counted, so that these rows
    must not form a cycle.
    """

    def skip_counted(row: Row) -> tuple[Stage, ...]:
        return row.targets if row.counts is None else row.targets_at_limit

    for stage in flow.stages.values():
        following = _follow(flow, stage, skip_counted)
        if any(stage in find_reached(flow, start, skip_counted) for start in following):
            yield f"{stage} is on a cycle that no counter ends"


def _find_endless(flow: Flow) -> Iterator[str]:
    """Check that the end of the message or of the branch can be reached from every stage."""
    ending = {
        row.after for row in flow.rows if isinstance(row.go_to, Final) or _may_return(row.go_to)
    }
    for stage in flow.stages.values():
        if not ending & find_reached(flow, stage):
            yield f"{stage} never leads to an end"


def _find_wrong_ends(flow: Flow) -> Iterator[str]:
    """Check that branches do not end the message, that the trunk does not return, and that they
    share no stages.
    """
    trunk = find_reached(flow, flow.start)
    branches = frozenset[Stage]().union(*_list_branches(flow))
    for stage in trunk & branches:
        yield f"{stage} is in the trunk and in a branch"
    for row in flow.rows:
        ends = (row.go_to, row.at_limit)
        if row.after in branches and any(isinstance(end, Final) for end in ends):
            yield f"{row.name} ends the message in a branch"
        if row.after in trunk and any(map(_may_return, ends)):
            yield f"{row.name} returns outside of a branch"


def _may_return(target: object) -> bool:
    return isinstance(target.done if isinstance(target, Next) else target, Return)


def _find_wrong_joins(flow: Flow) -> Iterator[str]:
    """Check that every scatter leads to a gather stage, which does not scatter again after a
    failure.
    """
    for row in flow.rows:
        for scatter in row.scatters:
            known = scatter.gather.events - {StageEvent.NEEDS_INPUT}
            if scatter.gather.role is not Role.MANAGER or known != GATHER_EVENTS:
                yield f"{row.name} scatters, and {scatter.gather} does not gather"
        if row.after.events >= GATHER_EVENTS and row.did is StageEvent.FAILED and row.scatters:
            yield f"{row.name} scatters again although no branch can begin"


def _find_wrong_pauses(flow: Flow) -> Iterator[str]:
    """Check that every pause has a resume stage, and that only the trunk pauses."""
    branches = frozenset[Stage]().union(*_list_branches(flow))
    resumed = {pause.resume for row in flow.rows for pause in _list_pauses(row)}
    for row in flow.rows:
        for pause in _list_pauses(row):
            if pause.resume.role is not Role.MANAGER or pause.resume.events != RESUME_EVENTS:
                yield f"{row.name} pauses, and {pause.resume} does not resume"
            if row.after in branches:
                yield f"{row.name} pauses in a branch"
            if row.after.events >= GATHER_EVENTS and row.did is StageEvent.FAILED:
                yield f"{row.name} pauses although no branch can begin"
        sent = {target for target in (row.go_to, row.at_limit) if isinstance(target, Stage)}
        for stage in sent & resumed:
            yield f"{row.name} leads to {stage} without a pause"


def _list_pauses(row: Row) -> list[PauseFor]:
    return [target for target in (row.go_to, row.at_limit) if isinstance(target, PauseFor)]


def _find_too_deep(flow: Flow) -> Iterator[str]:
    depth, level = 0, _list_scatters(flow, find_reached(flow, flow.start))
    while level and depth <= DEEPEST:
        depth += 1
        inner = [find_reached(flow, stage) for scatter in level for stage in scatter.begins]
        level = [scatter for stages in inner for scatter in _list_scatters(flow, stages)]
    if depth > DEEPEST:
        yield f"branches are nested more than {DEEPEST} deep"


def _follow(flow: Flow, stage: Stage, edges: Edges) -> set[Stage]:
    return {target for row in flow.rows if row.after is stage for target in edges(row)}


def _list_scatters(flow: Flow, stages: frozenset[Stage]) -> list[Scatter]:
    return [scatter for row in flow.rows if row.after in stages for scatter in row.scatters]


def _list_branches(flow: Flow) -> list[frozenset[Stage]]:
    """Return the stages of each branch of the flow."""
    scatters = [scatter for row in flow.rows for scatter in row.scatters]
    return [find_reached(flow, stage) for scatter in scatters for stage in scatter.begins]


def _diagram(flow: Flow) -> list[str]:
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> start"]
    lines += [
        f"    {row.after.name} --> {_node(row.go_to)}: {row.did.description.replace(':', ',')}"
        for row in flow.rows
    ]
    return [*lines, "```"]


def _table(flow: Flow) -> list[str]:
    head = ["| stage | event of the hop | journal | next role | counter | at its limit | reason |"]
    return [*head, "|---|---|---|---|---|---|---|", *(_line(row) for row in flow.rows)]


def _line(row: Row) -> str:
    cells = (
        row.after.name,
        row.did.description,
        f"`{row.did.value}`",
        _target(row.go_to),
        row.counts.value if row.counts is not None else "",
        _target(row.at_limit) if row.at_limit is not None else "",
        row.reason.value if row.reason is not None else "",
    )
    return "| " + " | ".join(cells) + " |"


def _node(target: Target) -> str:
    if isinstance(target, Scatter):
        return target.branch.name
    if isinstance(target, PauseFor):
        return target.resume.name
    if isinstance(target, Next):
        return target.stages[0].name
    return target.name if isinstance(target, Stage) else "[*]"


def _target(target: Target) -> str:
    if isinstance(target, Scatter):
        return f"{target.branch} for each branch, then {target.gather}"
    if isinstance(target, Final):
        return f"final: {target.ending.value}"
    if isinstance(target, PauseFor):
        return f"pause for {target.kind}, then {target.resume}"
    if isinstance(target, Next):
        names = ", ".join(stage.name for stage in target.stages)
        return f"the next of the sequence ({names}), then {target.done}"
    return target.name if isinstance(target, Stage) else "the branch returns"
