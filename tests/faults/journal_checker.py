"""Walks a journal along the flow table, and reports every step that the table does not have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from broker.values import WATCH, Fields, JournalEntry
from envelope.outcome import Outcome
from envelope.role import Role
from manager.flow import Flow, FlowError, Next, Return, Row, Scatter, Stage, StageEvent, Target
from manager.flows.search_flow import SEARCH_FLOW
from manager.flows.stages import PLAN, START
from manager.flows.swarm import SWARM_FLOW
from tests.support.branching_flow import ACT, BRANCHING_FLOW
from tests.support.pausing_flow import PAUSING_FLOW, RESUME

FINAL, RETURN = "final", "return"
Problem = tuple[str, str]


def problems(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Yield kind and sentence of every illegal or repeated step of one journal."""
    yield from check_journal(entries, _find_flow(entries))


def check_journal(entries: Sequence[JournalEntry], flow: Flow) -> Iterator[Problem]:
    """Yield kind and sentence of every step that this flow does not have."""
    walk = _JournalChecker(flow)
    for entry in entries:
        yield from walk.step(entry)


def _find_flow(entries: Sequence[JournalEntry]) -> Flow:
    """Return the flow of a journal: one that pauses, the swarm, one with branches, or search."""
    routed = [entry.fields for entry in entries if entry.kind == "routed"]
    if any(fields["stage"] == RESUME.name or fields["event"] == "needs_input" for fields in routed):
        return PAUSING_FLOW
    targets = {fields["target"] for fields in routed}
    if PLAN.name in targets:
        return SWARM_FLOW
    return BRANCHING_FLOW if ACT.name in targets else SEARCH_FLOW


def reply_of(entries: Sequence[JournalEntry]) -> Fields:
    """Return the reply that a journal ends with."""
    return entries[-1].fields


def is_closed_by_manager(entries: Sequence[JournalEntry]) -> bool:
    """Whether the end was decided, and not given by the deadline or the client."""
    return any(entry.kind == "routed" and entry.fields["target"] == FINAL for entry in entries)


@dataclass(slots=True)
class _Place:
    """Where the trunk or a branch stands, as far as the journal was read.

    `branches` are those whose results it waits for; `is_done`: its present hop has ended.
    """

    stage: str = ""
    is_done: bool = False
    branches: tuple[str, ...] = ()
    has_returned: bool = False


@dataclass(slots=True)
class _JournalChecker:
    """Follows the tree of a question: its trunk is the path ''."""

    flow: Flow
    _places: dict[str, _Place] = field(default_factory=lambda: {"": _Place()})
    _ended: bool = False
    _watches: bool = False
    _is_left: bool = False

    def step(self, entry: JournalEntry) -> Iterator[Problem]:
        if self._ended:
            yield "doubled", f"went on after its end with {entry.kind}"
        path = str(entry.fields.get("branch", ""))
        place = self._places.get(path)
        if self._watches and path == WATCH:
            yield from self._check_look(entry)
            return
        if place is None:
            yield "doubled", f"{entry.kind} in the branch {path}, which is not open"
            return
        yield from self._follow(path, place, entry)

    def _follow(self, path: str, place: _Place, entry: JournalEntry) -> Iterator[Problem]:
        match entry.kind:
            case "accepted":
                if place.stage:
                    yield "doubled", "was accepted again"
                place.stage, place.is_done = START.name, True
            case "routed":
                yield from self._check_routed(path, place, entry.fields)
            case "agent_run" | "dead_lettered" | "retried":
                yield from self._hop(place, entry)
            case "finished":
                yield from self._check_finished(place, entry.fields)
            case "memory_failed":
                yield "lost", "was not remembered"

    def _check_routed(self, path: str, place: _Place, fields: Fields) -> Iterator[Problem]:
        after, target = str(fields["stage"]), str(fields["target"])
        if fields.get("resumed") and place.stage == START.name:
            place.stage = after
        if after != place.stage or not place.is_done or place.has_returned:
            at = place.stage or "no stage"
            yield "doubled", f"was routed after {after} while it was at {at} {path}"
        try:
            row = self.flow.row(self.flow.stage(after), StageEvent(str(fields["event"])))
        except (FlowError, ValueError):
            yield "illegal", f"was routed by no row of the table: {fields['row']}"
            return
        limited = bool(fields.get("termination_reason"))
        if target not in _targets(row, limited=limited, in_branch=path != ""):
            yield "illegal", f"went from {row.name!r} to {target}"
        yield from self._check_gathered(place)
        place.stage, place.is_done = target, False
        if target == RETURN:
            place.has_returned = True
        begun = fields.get("branches")
        if isinstance(begun, list):
            yield from self._begin(place, [str(each) for each in begun], row)

    def _check_look(self, entry: JournalEntry) -> Iterator[Problem]:
        """Check a step that looks at a message that waits; several looks may be on their way."""
        if entry.kind != "routed":
            return
        try:
            stage = self.flow.stage(str(entry.fields["stage"]))
            row = self.flow.row(stage, StageEvent(str(entry.fields["event"])))
        except (FlowError, ValueError):
            yield "illegal", f"was routed by no row of the table: {entry.fields['row']}"
            return
        limited = bool(entry.fields.get("termination_reason"))
        if entry.fields["target"] not in _targets(row, limited=limited, in_branch=True):
            yield "illegal", f"went from {row.name!r} to {entry.fields['target']}"
        self._is_left |= row.did is StageEvent.OTHER_TOPIC

    def _begin(self, place: _Place, paths: Sequence[str], row: Row) -> Iterator[Problem]:
        """Open the branches of a scatter; the trunk has no hop where it waits for them."""
        stage = row.scatters[0].branch.name if row.scatters else ""
        self._watches |= any(scatter.watch is not None for scatter in row.scatters)
        for path in paths:
            if path in self._places:
                yield "doubled", f"began the branch {path} twice"
            self._places[path] = _Place(stage)
        place.branches, place.is_done = tuple(paths), True

    def _check_gathered(self, place: _Place) -> Iterator[Problem]:
        """Close the branches of a join that goes on: this flow waits for all of them, unless a
        message about something else ended the work.
        """
        for path in place.branches:
            if not self._places.pop(path).has_returned and not self._is_left:
                yield "lost", f"went on without the result of the branch {path}"
        place.branches = ()

    def _hop(self, place: _Place, entry: JournalEntry) -> Iterator[Problem]:
        role = str(entry.fields["role"])
        of_manager = role == Role.MANAGER.value
        stage = self.flow.stages.get(place.stage)
        if (stage is None or role != stage.role) and not of_manager:
            yield "doubled", f"{entry.kind} by {role} while it was at {place.stage}"
        if place.is_done and not of_manager:
            yield "doubled", f"{entry.kind} by {role} twice"
        place.is_done = place.is_done or entry.kind != "retried"

    def _check_finished(self, place: _Place, fields: Fields) -> Iterator[Problem]:
        self._ended = True
        outcome = fields.get("outcome")
        if outcome not in set(Outcome):
            yield "illegal", f"ended with the outcome {outcome!r}"
        elif place.stage != FINAL and outcome != Outcome.SUPERSEDED and not _last_resort(fields):
            yield "illegal", f"ended as {outcome} at {place.stage}, where nobody decided it"


def _last_resort(reply: Fields) -> bool:
    return reply.get("termination_reason") in {"deadline", "dead_letter"}


def _targets(row: Row, *, limited: bool, in_branch: bool) -> set[str]:
    ways = [row.go_to] if row.at_limit is None else [row.go_to, row.at_limit]
    targets = {_name_target(way) for way in ways if not isinstance(way, Next)}
    targets |= {stage.name for stage in row.targets}
    return {*targets, RETURN if in_branch else FINAL} if limited else targets


def _name_target(target: Target) -> str:
    if isinstance(target, Scatter):
        return target.gather.name
    if isinstance(target, Return):
        return RETURN
    return target.name if isinstance(target, Stage) else FINAL
