"""The names that leave a process are slugs of standard words: logs, metrics, journals, the API."""

import ast
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path

import pytest

from broker.journal_events import JOURNAL_KINDS
from envelope.conversation import ClarificationReason
from envelope.outcome import Outcome
from envelope.role import Role
from manager.flow import Counter, StageEvent
from manager.flows import FLOWS
from tests.test_project_rules import PACKAGES, ROOT, events_logged, list_tracked

SLUG = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
PRIVATE_WORDS = frozenset(
    {
        "told", "tell", "said", "say", "heard", "hear", "wrote", "did", "known", "beside",
        "elsewhere", "spot", "buried", "bury", "suspect", "quarantine", "door", "doors", "place",
        "places", "house", "mend", "thumb", "thumbs", "waits", "rested", "whisper", "introduce",
        "remembered", "behind", "unwritable", "sayable", "spent",
    }
)  # fmt: skip
"""Words that only readers of this code would understand, or that have no fixed meaning."""
PRIVATE_PHRASES = ("given_up", "put_off", "set_back", "in_all", "fell_back", "reached_again")
METRIC_CLASSES = frozenset(
    {"Counter", "Gauge", "Histogram", "CounterMetricFamily", "GaugeMetricFamily"}
)
SLUG_FIELDS = frozenset({"reason", "call", "code", "operation", "status", "notice"})
"""Fields of a log line that a program compares, where their value is a constant."""
Finder = Callable[[ast.Call], Iterator[str]]


def is_standard(name: str) -> bool:
    """Whether a name is a slug without private words."""
    return (
        SLUG.fullmatch(name) is not None
        and not PRIVATE_WORDS.intersection(name.split("_"))
        and not any(phrase in name for phrase in PRIVATE_PHRASES)
    )


@cache
def calls() -> tuple[tuple[Path, ast.Call], ...]:
    """Return every call in the product."""
    return tuple(
        (path, node)
        for path in list_tracked("*.py")
        if path.relative_to(ROOT).parts[0] in PACKAGES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    )


def name_of(call: ast.Call) -> str:
    """Return the last part of the name that is called."""
    return ast.unparse(call.func).rpartition(".")[2]


def constants_in(node: ast.AST | None) -> Iterator[str]:
    """Yield the texts in an expression: both of a conditional one, all parts of an f-string."""
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def argument(call: ast.Call, position: int, keyword: str = "") -> ast.expr | None:
    """Return an argument by position or keyword."""
    for one in call.keywords:
        if keyword and one.arg == keyword:
            return one.value
    return call.args[position] if position < len(call.args) else None


def find_log_fields(call: ast.Call) -> Iterator[str]:
    if ast.unparse(call.func).startswith("log."):
        yield from (one.arg for one in call.keywords if one.arg is not None)
        for one in call.keywords:
            if one.arg in SLUG_FIELDS and isinstance(one.value, ast.Constant):
                yield str(one.value.value) if isinstance(one.value.value, str) else "number"


def find_metrics(call: ast.Call) -> Iterator[str]:
    """Names begin with the name of the product, which separates them from `collections.Counter`."""
    names = list(constants_in(argument(call, 0)))
    if name_of(call) in METRIC_CLASSES and names and names[0].startswith("refdesk_"):
        yield from (name for name in names if name != "refdesk_")
        yield from constants_in(argument(call, 2, "labels"))
    if name_of(call) == "counter":
        yield names[0]
        for label in call.args[2:]:
            yield from constants_in(label)


def find_label_values(call: ast.Call) -> Iterator[str]:
    if name_of(call) in {"count_failure", "count_hop", "count_fallback"}:
        yield from constants_in(argument(call, 1, "reason"))
    if ast.unparse(call.func).endswith("tally.add"):
        yield from constants_in(argument(call, 0))


def find_journal_kinds(call: ast.Call) -> Iterator[str]:
    if name_of(call) in {"JournalEntry", "EncodedEvent"}:
        yield from constants_in(argument(call, 0, "kind"))


def find_dead_letter_reasons(call: ast.Call) -> Iterator[str]:
    if name_of(call) == "Bury":
        yield from constants_in(argument(call, 0, "reason"))


def find_error_codes(call: ast.Call) -> Iterator[str]:
    if name_of(call) == "Refusal":
        yield from constants_in(argument(call, 1, "code"))
    elif name_of(call).endswith("Error"):
        yield from constants_in(argument(call, 99, "code"))
    if name_of(call) == "WebhookRefusedError":
        yield from constants_in(argument(call, 1, "reason"))


def find_stream_events(call: ast.Call) -> Iterator[str]:
    if name_of(call) == "Event" and len(call.args) == 3:
        yield from constants_in(argument(call, 1, "name"))


def find_platform_calls(call: ast.Call) -> Iterator[str]:
    if name_of(call) == "retry":
        yield from constants_in(argument(call, 99, "call_name"))


def find_operations(call: ast.Call) -> Iterator[str]:
    if name_of(call) in {"Backoff", "record_failure"} and "outage" in ast.unparse(call):
        yield from constants_in(argument(call, 0, "operation"))


FINDERS: dict[Finder, str] = {
    find_log_fields: "role",
    find_metrics: "refdesk_failures",
    find_label_values: "unknown_role",
    find_journal_kinds: "agent_run",
    find_dead_letter_reasons: "poison",
    find_error_codes: "message_not_finished",
    find_stream_events: "waiting",
    find_platform_calls: "edit_post",
    find_operations: "take",
}
"""Each finder with a name that it finds in the product: one that finds nothing checks nothing."""


@pytest.mark.parametrize(
    ("find", "known"), FINDERS.items(), ids=lambda one: getattr(one, "__name__", one)
)
def test_what_a_process_shows_has_names_of_standard_words(find: Finder, known: str) -> None:
    found = {name: str(path.relative_to(ROOT)) for path, call in calls() for name in find(call)}

    # A prefix is completed by an f-string; the dashboards' test holds the whole names.
    assert known in found or known.removeprefix("refdesk_") in found
    assert {name: path for name, path in found.items() if not is_standard(name.strip("_"))} == {}


def test_log_events_are_slugs_of_standard_words() -> None:
    found = {
        event: str(path.relative_to(ROOT))
        for path in list_tracked("*.py")
        if path.relative_to(ROOT).parts[0] in PACKAGES
        for event in events_logged(path.read_text())
    }

    assert {event: path for event, path in found.items() if not is_standard(event)} == {}


def test_the_kinds_of_journal_events_are_those_that_are_written() -> None:
    of_python = {kind for _, call in calls() for kind in find_journal_kinds(call)}
    of_lua = {
        kind
        for path in list_tracked("broker/lua/*.lua")
        for kind in re.findall(r"'k', '([^']+)', 'j'", path.read_text())
    }

    assert of_python | of_lua == JOURNAL_KINDS


def test_the_kinds_of_journal_events_are_slugs_of_standard_words() -> None:
    assert {kind for kind in JOURNAL_KINDS if not is_standard(kind)} == set()


@pytest.mark.parametrize(
    "names", [Role, StageEvent, Counter, Outcome, ClarificationReason], ids=str
)
def test_what_the_flow_writes_into_a_journal_is_a_slug(names: type[StrEnum]) -> None:
    assert {name.value for name in names if not is_standard(name.value)} == set()


def test_a_row_of_the_flow_is_named_by_its_stage_and_its_event() -> None:
    names = {row.name for flow in FLOWS.values() for row in flow.rows}

    assert {name for name in names if not all(map(is_standard, name.split(".")))} == set()


@pytest.mark.parametrize(
    ("name", "standard"),
    [
        ("lease_renewal_failed", True),
        ("connections_refused", True),
        ("entry_buried", False),
        ("on_the_spot", False),
        ("poor: several places compete", False),
        ("put_off", False),
        ("HopFailed", False),
        ("", False),
    ],
)
def test_the_rule_distinguishes_slugs_from_private_words_and_sentences(
    name: str, standard: bool
) -> None:
    assert is_standard(name) is standard
