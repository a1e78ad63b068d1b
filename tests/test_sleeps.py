"""Tests wait for conditions: only `tests/support/waiting.py` polls."""

import ast
from collections.abc import Iterator

import pytest

from tests.test_project_rules import ROOT, list_tracked

WAITING = "tests/support/waiting.py"
EXCEPTIONS = {
    "tests/faults/fault_injector.py": "a process is stopped for longer than its lease",
    "tests/faults/load.py": "a person takes a random time to cancel",
    "tests/faults/proxy.py": "a connection is slow",
    "tests/faults/scripted_agents.py": "an agent or a model works for this long",
    "tests/faults/cluster.py": "two nodes share a slot for this long",
    "tests/faults/test_cluster_hangs.py": "a node hangs for this long",
    "tests/faults/test_redis_away.py": "a partition lasts this long",
    "tests/faults/day_of_a_desk.py": "Redis stands still for this long",
    "tests/faults/test_redis_half_open.py": "a server hangs for this long",
    "tests/gateway/http/test_restarts.py": "a client waits before it connects again",
    "tests/support/model_server.py": "a vendor pauses between two events",
}
"""Modules that sleep because the duration is the fault or the load. None of them waits so."""


def find_sleeps(source: str) -> Iterator[int]:
    """Yield the lines that name a function `sleep` of any module, or Playwright's."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr="sleep" | "wait_for_timeout"):
                yield node.lineno
            case ast.ImportFrom(names=names) if any(name.name == "sleep" for name in names):
                yield node.lineno


def find_sleepers() -> dict[str, list[int]]:
    found = {
        str(path.relative_to(ROOT)): list(find_sleeps(path.read_text("utf-8")))
        for path in list_tracked("tests/*.py")
    }
    return {path: lines for path, lines in found.items() if lines}


def test_no_test_sleeps_where_it_could_wait_for_a_condition() -> None:
    others = find_sleepers().keys() - EXCEPTIONS.keys() - {WAITING}

    assert others == set(), f"use `wait_until` of {WAITING}"


def test_every_exception_still_sleeps() -> None:
    assert EXCEPTIONS.keys() - find_sleepers().keys() == set()


@pytest.mark.parametrize(
    "source",
    ["import time\ntime.sleep(1)", "from asyncio import sleep as rest", "page.wait_for_timeout(1)"],
)
def test_a_sleep_is_found_under_every_name(source: str) -> None:
    assert list(find_sleeps(source))


def test_what_only_waits_is_no_sleep() -> None:
    assert not list(find_sleeps("sleep = 1\nawait event.wait()\nawait wait_until(look)"))
