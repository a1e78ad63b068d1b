"""Proves what every flow must hold, from its rows alone; a test runs it over all of them."""

from collections.abc import Callable, Iterator

from manager.flow import Final, Flow, Row, Stage, StageEvent

Edges = Callable[[Row], tuple[Stage, ...]]


def find_flow_problems(flow: Flow) -> list[str]:
    """Return a sentence for each condition that the flow breaks; none if it is sound."""
    return [
        *_find_unanswered(flow),
        *_find_unreached(flow),
        *_find_uncounted_cycles(flow),
        *_find_endless(flow),
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
    reached = find_reached(flow, flow.start)
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
    ending = {row.after for row in flow.rows if isinstance(row.go_to, Final)}
    for stage in flow.stages.values():
        if not ending & find_reached(flow, stage):
            yield f"{stage} leads to no end"


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
