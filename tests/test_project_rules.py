"""The rules of the project that no linter knows."""

import ast
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from broker.transport.connect import Outage
from gateway.connections.registry import RareLog

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = set(PROJECT["tool"]["importlinter"]["root_packages"])
NO_PACKAGES = {"docs", "examples", "benchmarks", "refdesk", "tests"}
CLIENT_PAGE = ROOT / "docs" / "internal" / "client_documents.md"
QUOTED = re.compile(r"`([^`]+)`")
VAGUE = {"utils", "helpers", "common", "base", "types", "misc", "util", "helper"}


def list_tracked(pattern: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def test_every_top_level_package_is_known_to_the_direction_contract() -> None:
    on_disk = {path.relative_to(ROOT).parts[0] for path in list_tracked("*.py")}

    assert on_disk - NO_PACKAGES == PACKAGES


def test_no_installed_dependency_brings_a_package_of_our_name() -> None:
    owners = packages_distributions()

    foreign = {
        name: owner
        for name in PACKAGES
        if (owner := [it for it in owners.get(name, []) if it != "refdesk"])
    }

    assert foreign == {}


def test_no_module_has_a_vague_name() -> None:
    modules = [path.relative_to(ROOT).with_suffix("") for path in list_tracked("*.py")]

    vague = [module for module in modules if VAGUE & set(module.parts)]

    assert vague == []


@pytest.mark.parametrize("pattern", ["*.py", "*.md", "*.toml", "Makefile", "*.txt", "*.lua"])
def test_the_project_names_no_path_of_a_machine(pattern: str) -> None:
    # Put together here, so that this file does not name them itself.
    paths = ["/" + "work/", "/" + "root/", ".." + "/shared"]

    named = [
        str(path.relative_to(ROOT))
        for path in list_tracked(pattern)
        if any(machine in path.read_text(errors="replace") for machine in paths)
    ]

    assert named == []


def test_every_test_that_a_page_names_exists() -> None:
    named = {
        name
        for page in list_tracked("docs/*.md")
        for name in re.findall(r"`(test_[a-z0-9_]+)`", page.read_text())
    }
    there = {
        name
        for file in list_tracked("tests/*.py")
        for name in (file.stem, *re.findall(r"def (test_\w+)", file.read_text()))
    }

    assert named
    assert named - there == set()


def test_every_file_that_the_page_of_the_clients_documents_names_exists() -> None:
    named = set(re.findall(r"`([\w.]+/[\w./]*|\w+\.(?:md|toml))`", CLIENT_PAGE.read_text()))

    assert "agents/agent.py" in named
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_every_name_of_the_client_has_a_name_that_is_defined_here_or_a_reason() -> None:
    rows = read_rows(CLIENT_PAGE.read_text().partition("## Their names")[2].partition("\n## ")[0])

    assert len(rows) > 100
    for _, theirs, ours, where in rows[1:]:
        if not ours:
            assert " " in where, f"expected why there is no {theirs}, found {where!r}"
            continue
        names = set(QUOTED.findall(theirs if ours == "the same" else ours))
        defined = set[str]().union(*map(list_defined, QUOTED.findall(where)))
        assert names, f"expected names instead of {theirs}, found {ours!r}"
        assert names - defined == set(), f"expected names that {where} defines"


def list_defined(place: str) -> set[str]:
    """The names and texts of Python modules, the words of any other file."""
    path = ROOT / place
    if path.is_dir():
        return set[str]().union(
            *(list_defined(f"{place}{item.name}") for item in path.glob("*.py"))
        )
    if path.suffix != ".py":
        return set(re.findall(r"\w+", path.read_text()))
    result = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ClassDef(name=str(name)) | ast.FunctionDef(name=str(name)):
                result.add(name)
            case ast.AsyncFunctionDef(name=str(name)) | ast.arg(arg=str(name)):
                result.add(name)
            case ast.Name(id=str(name), ctx=ast.Store()) | ast.Constant(value=str(name)):
                result.add(name)
    return result


def test_the_page_of_the_clients_documents_counts_its_lines() -> None:
    rows = read_rows(CLIENT_PAGE.read_text())
    states = Counter((row[0][0], row[2]) for row in rows if re.fullmatch(r"[A-Z]-\d+", row[0]))
    parts = [row for row in rows if re.match(r"[A-Z]: ", row[0])]

    for part, lines, *counts in parts:
        results = [states[part[0], state] for state in ("works", "otherwise", "not done")]
        assert [int(lines), *map(int, counts)] == [sum(results), *results], part
    total = next(row for row in rows if row[0] == "all")
    assert [int(item) for item in total[1:]] == [
        sum(column)
        for column in zip(*([int(item) for item in row[1:]] for row in parts), strict=True)
    ]


def read_rows(text: str) -> list[list[str]]:
    """The cells of all tables of a page, without the lines below their heads."""
    lines = (line for line in text.splitlines() if line.startswith("| "))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_event_that_is_logged_is_explained_to_who_runs_it() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    logged = {
        event: str(path.relative_to(ROOT))
        for path in list_tracked("*.py")
        if path.relative_to(ROOT).parts[0] in PACKAGES
        for event in events_logged(path.read_text())
    }

    assert {"platform_call_retried", "delivery_abandoned", "shards_unreachable"} <= set(logged)
    assert {event: path for event, path in logged.items() if f"`{event}`" not in page} == {}


def events_logged(source: str) -> Iterator[str]:
    """The names that a module gives to a logger, or to an outage or a rare line to log."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args and _logs(ast.unparse(node.func)):
            for part in ast.walk(node.args[0]):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def _logs(called: str) -> bool:
    return called in {Outage.__name__, RareLog.__name__} or bool(
        re.fullmatch(
            r"(log|structlog\.get_logger\(.+\))\.(debug|info|warning|error|exception)", called
        )
    )
