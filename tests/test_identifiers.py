"""Names that leave a process are stable slugs: log events, journal kinds, values of the flow."""

import ast
import re
from enum import StrEnum

import pytest

from broker.journal_events import JOURNAL_KINDS
from envelope.conversation import ClarificationReason
from envelope.outcome import Outcome
from envelope.role import Role
from manager.flow import Counter, StageEvent
from manager.flows import FLOWS
from tests.test_project_rules import PACKAGES, ROOT, events_logged, list_tracked

SLUG = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)


def find_others(names: set[str]) -> set[str]:
    """Return the names that are not slugs."""
    return {name for name in names if not SLUG.fullmatch(name)}


def find_journal_kinds() -> set[str]:
    """Return the kinds of journal events that Python code and Lua scripts write."""
    kinds = {
        kind
        for path in list_tracked("broker/lua/*.lua")
        for kind in re.findall(r"'k', '([^']+)', 'j'", path.read_text())
    }
    for path in list_tracked("*.py"):
        source = path.read_text()
        is_product = path.relative_to(ROOT).parts[0] in PACKAGES
        if not is_product or not any(name in source for name in ("JournalEntry", "EncodedEvent")):
            continue
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Call(
                    func=ast.Name(id="JournalEntry" | "EncodedEvent"),
                    args=[ast.Constant(value=str(kind)), *_],
                ):
                    kinds.add(kind)
    return kinds


def test_log_events_are_slugs() -> None:
    events = {
        event
        for path in list_tracked("*.py")
        if path.relative_to(ROOT).parts[0] in PACKAGES
        for event in events_logged(path.read_text())
    }

    assert find_others(events) == set()


def test_the_kinds_of_journal_events_are_slugs_and_those_that_are_written() -> None:
    assert find_journal_kinds() == JOURNAL_KINDS
    assert find_others({*JOURNAL_KINDS}) == set()


@pytest.mark.parametrize(
    "names", [Role, StageEvent, Counter, Outcome, ClarificationReason], ids=str
)
def test_journal_values_of_the_flow_are_slugs(names: type[StrEnum]) -> None:
    assert find_others({name.value for name in names}) == set()


def test_a_row_of_the_flow_is_named_by_its_stage_and_its_event() -> None:
    names = {part for flow in FLOWS.values() for row in flow.rows for part in row.name.split(".")}

    assert find_others(names) == set()
