"""Walks a journal along the flow table, and reports every step that the table does not have."""

from collections.abc import Iterator, Sequence

from broker.values import Fields, JournalEntry
from envelope.outcome import Outcome
from envelope.role import Role
from manager.flow import Final, FlowError, Row, StageEvent
from manager.flows.search import SEARCH_FLOW
from manager.flows.stages import START

FLOW = SEARCH_FLOW
FINAL = "final"
Problem = tuple[str, str]


def problems(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Yield kind and sentence of every illegal or repeated step of one journal."""
    walk = _JournalChecker()
    for entry in entries:
        yield from walk.step(entry)


def reply_of(entries: Sequence[JournalEntry]) -> Fields:
    """Return the reply that a journal ends with."""
    return entries[-1].fields


def is_closed_by_manager(entries: Sequence[JournalEntry]) -> bool:
    """Whether the end was decided, and not given by the deadline or the client."""
    return any(entry.kind == "routed" and entry.fields["target"] == FINAL for entry in entries)


class _JournalChecker:
    """Where a question stands, as far as its journal was read."""

    def __init__(self) -> None:
        self._stage = ""
        self._hop_done = False
        self._ended = False

    def step(self, entry: JournalEntry) -> Iterator[Problem]:
        if self._ended:
            yield "doubled", f"went on after its end with {entry.kind}"
        match entry.kind:
            case "accepted":
                if self._stage:
                    yield "doubled", "was accepted again"
                self._stage, self._hop_done = START.name, True
            case "routed":
                yield from self._check_routed(entry.fields)
            case "agent_run" | "dead_lettered" | "retried":
                yield from self._hop(entry)
            case "finished":
                yield from self._check_finished(entry.fields)
            case "memory_failed":
                yield "lost", "was not remembered"

    def _check_routed(self, fields: Fields) -> Iterator[Problem]:
        after, target = str(fields["stage"]), str(fields["target"])
        if after != self._stage or not self._hop_done:
            yield "doubled", f"was routed after {after} while it was at {self._stage or 'no stage'}"
        try:
            row = FLOW.row(FLOW.stage(after), StageEvent(str(fields["event"])))
        except (FlowError, ValueError):
            yield "illegal", f"was routed by no row of the table: {fields['row']}"
            return
        if target not in _targets(row, limited=bool(fields.get("termination_reason"))):
            yield "illegal", f"went from {row.name!r} to {target}"
        self._stage, self._hop_done = target, False

    def _hop(self, entry: JournalEntry) -> Iterator[Problem]:
        role = str(entry.fields["role"])
        of_manager = role == Role.MANAGER.value
        if role != self._stage and not of_manager:
            yield "doubled", f"{entry.kind} by {role} while it was at {self._stage}"
        if self._hop_done and not of_manager:
            yield "doubled", f"{entry.kind} by {role} twice"
        self._hop_done = self._hop_done or entry.kind != "retried"

    def _check_finished(self, fields: Fields) -> Iterator[Problem]:
        self._ended = True
        outcome = fields.get("outcome")
        if outcome not in set(Outcome):
            yield "illegal", f"ended with the outcome {outcome!r}"
        elif self._stage != FINAL and outcome != Outcome.SUPERSEDED and not _last_resort(fields):
            yield "illegal", f"ended as {outcome} at {self._stage}, where nobody decided it"


def _last_resort(reply: Fields) -> bool:
    return reply.get("termination_reason") in {"deadline", "dead_letter"}


def _targets(row: Row, *, limited: bool) -> set[str]:
    ways = [row.go_to] if row.at_limit is None else [row.go_to, row.at_limit]
    targets = {FINAL if isinstance(way, Final) else way.name for way in ways}
    return {*targets, FINAL} if limited else targets
