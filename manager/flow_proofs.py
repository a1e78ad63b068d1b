"""Proves what every flow must hold, from its rows alone; a test runs it over all of them.

The trunk are the stages that a message passes from its start; a branch, those from the stage at
which a scatter begins it. A scatter leads its own trunk or branch on to the stage that gathers.
"""

from collections.abc import Callable, Iterator

from envelope.role import Role
from manager.flow import Final, Flow, Next, PauseFor, Return, Row, Scatter, Stage
from manager.stage_event import GATHER_EVENTS, RESUME_EVENTS, StageEvent

DEEPEST = 3
"""How deep branches may scatter again."""
Edges = Callable[[Row], tuple[Stage, ...]]


def find_flow_problems(flow: Flow) -> list[str]:
    """Return a sentence for each condition that the flow breaks; none if it is sound."""
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


def _find_unanswered(flow: Flow) -> Iterator[str]:
    """Every stage answers each of its events, failure among them, and no other."""
    answered = {(row.after, row.did) for row in flow.rows}
    possible = {(stage, event) for stage in flow.stages.values() for event in stage.events}
    for stage, event in possible - answered:
        yield f"{stage}.{event} has no row"
    for stage, event in answered - possible:
        yield f"{stage}.{event} cannot happen"
    for stage in flow.stages.values():
        if StageEvent.FAILED not in stage.events:
            yield f"{stage} does not know failure"


def _find_unreached(flow: Flow) -> Iterator[str]:
    reached = find_reached(flow, flow.start).union(*_list_branches(flow))
    for stage in flow.stages.values():
        if stage not in reached:
            yield f"{stage} is never reached"


def _find_uncounted_cycles(flow: Flow) -> Iterator[str]:
    """A row at its limit is taken without being counted, so it must not close a cycle either."""

    def skip_counted(row: Row) -> tuple[Stage, ...]:
        return row.targets if row.counts is None else row.targets_at_limit

    for stage in flow.stages.values():
        following = _follow(flow, stage, skip_counted)
        if any(stage in find_reached(flow, each, skip_counted) for each in following):
            yield f"{stage} is on a cycle that no counter ends"


def _find_endless(flow: Flow) -> Iterator[str]:
    """Every stage of the trunk can lead to an end, every stage of a branch to a return."""
    ending = {
        row.after for row in flow.rows if isinstance(row.go_to, Final) or _may_return(row.go_to)
    }
    for stage in flow.stages.values():
        if not ending & find_reached(flow, stage):
            yield f"{stage} leads to no end"


def _find_wrong_ends(flow: Flow) -> Iterator[str]:
    """No branch ends the message, the trunk does not return, and they share no stage."""
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
    """Every scatter leads to a stage that gathers, and that one does not scatter after failure."""
    for row in flow.rows:
        for scatter in row.scatters:
            known = scatter.gather.events - {StageEvent.NEEDS_INPUT}
            if scatter.gather.role is not Role.MANAGER or known != GATHER_EVENTS:
                yield f"{row.name} scatters, and {scatter.gather} does not gather"
        if row.after.events >= GATHER_EVENTS and row.did is StageEvent.FAILED and row.scatters:
            yield f"{row.name} scatters again although no branch can begin"


def _find_wrong_pauses(flow: Flow) -> Iterator[str]:
    """Every pause has a stage where its reply goes on, and only the trunk asks the user."""
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
        sent = {each for each in (row.go_to, row.at_limit) if isinstance(each, Stage)}
        for stage in sent & resumed:
            yield f"{row.name} leads to {stage} without a pause"


def _list_pauses(row: Row) -> list[PauseFor]:
    return [each for each in (row.go_to, row.at_limit) if isinstance(each, PauseFor)]


def _find_too_deep(flow: Flow) -> Iterator[str]:
    depth, level = 0, _list_scatters(flow, find_reached(flow, flow.start))
    while level and depth <= DEEPEST:
        depth += 1
        inner = [find_reached(flow, stage) for scatter in level for stage in scatter.begins]
        level = [scatter for stages in inner for scatter in _list_scatters(flow, stages)]
    if depth > DEEPEST:
        yield f"branches scatter more than {DEEPEST} deep"


def find_reached(
    flow: Flow, start: Stage, edges: Edges = lambda row: row.targets
) -> frozenset[Stage]:
    """Return the stages that can follow `start`, and itself."""
    reached, frontier = {start}, [start]
    while frontier:
        fresh = _follow(flow, frontier.pop(), edges) - reached
        reached |= fresh
        frontier.extend(fresh)
    return frozenset(reached)


def _follow(flow: Flow, stage: Stage, edges: Edges) -> set[Stage]:
    return {target for row in flow.rows if row.after is stage for target in edges(row)}


def _list_scatters(flow: Flow, stages: frozenset[Stage]) -> list[Scatter]:
    return [scatter for row in flow.rows if row.after in stages for scatter in row.scatters]


def _list_branches(flow: Flow) -> list[frozenset[Stage]]:
    """Return the stages of the branches of each scatter."""
    scatters = [scatter for row in flow.rows for scatter in row.scatters]
    return [find_reached(flow, stage) for scatter in scatters for stage in scatter.begins]
