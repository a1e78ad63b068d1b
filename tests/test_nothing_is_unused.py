"""What the program declares is used: settings are read, metrics move, documented names exist.

A static search: it proves that some code mentions a name outside of its declaration, not that the
code is right.
"""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path

import pytest

from config.settings import Settings
from envelope.conversation import ClarificationReason
from envelope.outcome import Outcome
from llm.vendors.catalogue import vendors_by_name
from manager.flow import Counter

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["importlinter"]["root_packages"]
METRICS = {"Counter", "Gauge", "Histogram", "counter"}
REPLIES = Path("manager/replies.py")
OLD_EVENTS = {"inline_decision_failed"}
"""Of journals that earlier releases wrote: they are still shown."""


@cache
def list_sources() -> Mapping[Path, str]:
    listed = subprocess.run(
        ["git", "ls-files", *(f"{name}/*.py" for name in PACKAGES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [Path(line) for line in listed.stdout.splitlines()]
    return {path: (ROOT / path).read_text() for path in paths if (ROOT / path).exists()}


@cache
def find_names(without: Path | None = None) -> frozenset[str]:
    """The names that some module reads as an attribute, or holds as a text."""
    return frozenset(
        name
        for path, source in list_sources().items()
        if path != without
        for found in re.findall(r"""\.(\w+)|["'](\w+)["']""", source)
        for name in found
        if name
    )


def read_column(page: str, heading: str, column: int) -> set[str]:
    """Return the names in backticks of a column of the table whose first line is `heading`."""
    text = (ROOT / "docs" / page).read_text()
    rows = text[text.index(heading) :].split("\n\n")[0].splitlines()[2:]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[column])}


def test_every_setting_is_read() -> None:
    by_vendor = {
        f"{vendor}_{part}" for vendor in vendors_by_name() for part in ("api_key", "base_url")
    }

    unread = set(Settings.model_fields) - find_names() - by_vendor

    assert unread == set()


def test_every_setting_is_once_on_the_page_of_what_was_seen() -> None:
    page = (ROOT / "docs" / "internal" / "measurements" / "settings.md").read_text()
    named = re.findall(
        r"`([A-Z0-9_]+)`", "\n".join(re.findall(r"^\| (`.+?`) \|", page, re.MULTILINE))
    )

    assert sorted(named) == sorted(name.upper() for name in Settings.model_fields)


def list_metrics(tree: ast.Module) -> Iterator[str]:
    """The attributes of a module that hold a metric."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            [target, *_] = map(ast.unparse, node.targets)
            if ast.unparse(node.value.func) in METRICS and target.startswith("self."):
                yield target


def test_every_metric_moves() -> None:
    found, still = [], []
    for path, source in list_sources().items():
        if "from prometheus_client import" in source:
            made = [*list_metrics(ast.parse(source))]
            found += made
            still += [(path, name) for name in made if not re.search(rf"{name}\b(?! =)", source)]

    assert {"self._scores", "self._feedback"} <= set(found)
    assert still == []


def test_every_documented_event_is_written() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    named = set(re.findall(r"^\| `([a-z]+(?:_[a-z]+)+)` \|", page, re.MULTILINE))

    assert len(named) > 50
    assert named - find_names() == OLD_EVENTS


def test_every_documented_error_code_is_sent() -> None:
    codes = read_column("http.md", "| Status | `code` | Meaning |", 2)

    # The framework's own statuses are written as `http_` and the number.
    assert {code for code in codes - find_names() if not code.startswith("http_")} == set()


@cache
def find_given(kind: str) -> frozenset[str]:
    """The members of an enumeration that some code gives to something.

    A comparison, the key of a table and the element of a set ask for a value and give none.
    """
    given: set[str] = set()
    for source in list_sources().values():
        if f"import {kind}" not in source and f" {kind}," not in source:
            continue
        nodes = [*ast.walk(ast.parse(source))]
        asked = {id(part) for node in nodes for part in list_asked(node)}
        given |= {
            node.attr for node in nodes if isinstance(node, ast.Attribute) and id(node) not in asked
        }
    return frozenset(given)


def list_asked(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            yield from ast.walk(node)
        case ast.Dict(keys=keys):
            yield from (key for key in keys if key is not None)
        case ast.Set(elts=elements):
            yield from elements


@pytest.mark.parametrize("kind", [ClarificationReason, Outcome])
def test_every_end_of_a_question_is_reached(kind: type[Enum]) -> None:
    given = find_given(kind.__name__)

    # What the broker itself ends, it writes as a text.
    texts = find_names(without=Path("envelope/outcome.py"))
    lost = {item for item in kind if item.name not in given}
    assert {item.value for item in lost} <= (texts if kind is Outcome else set())


def test_every_limit_with_a_text_ends_something() -> None:
    source = list_sources()[REPLIES]
    tables = source[source.index("_OUT_OF_TIME") : source.index("_FIXED_REFUSALS")]
    worded = set(re.findall(r'"(\w+_limit)"', tables))
    counted = {f"{counter.value}_limit" for counter in Counter}

    assert {"process_count_limit", "round_limit"} <= worded
    assert worded - counted - find_names(without=REPLIES) == set()
