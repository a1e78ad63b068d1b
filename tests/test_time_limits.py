import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.time_limits import POSTPONE_SECONDS, TimeLimit

SUITE = Path(__file__).parent / "gateway" / "http" / "interrupted_tests.py"
PLACES = ("set-up", "shared set-up", "test", "worker", "waiting", "teardown", "group")


def run_interrupted_suite() -> dict[str, set[str]]:
    """Return the outcomes of the suite by test."""
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "0",
        "-rA",
        "--tb=no",
        "-p",
        "no:cacheprovider",
    )
    environment = {name: text for name, text in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        [*command, str(SUITE)], capture_output=True, text=True, env=environment, check=False
    )
    outcomes: dict[str, set[str]] = {}
    for outcome, name in re.findall(r"^(\w+) \S+::[a-z_]+\[(.+?)\]", done.stdout, re.MULTILINE):
        outcomes.setdefault(name, set()).add(outcome)
    return outcomes


@pytest.mark.slow
def test_a_test_finds_nothing_of_an_interrupted_one() -> None:
    outcomes = run_interrupted_suite()

    for place in PLACES:
        assert outcomes[f"{place}, interrupted"] & {"FAILED", "ERROR"}, place
        assert outcomes[f"{place}, next"] == {"PASSED"}, place


def limit_of(
    item: pytest.Item, *, slowness: float, elapsed: float, seconds: float = 60.0
) -> TimeLimit:
    moments = iter((0.0, elapsed))
    return TimeLimit(
        item,
        seconds,
        lambda _number, _frame: None,
        slowness=lambda: slowness,
        clock=lambda: next(moments),
    )


@pytest.mark.parametrize(
    ("slowness", "elapsed", "more_seconds"),
    [(1.0, 60.0, 0.0), (2.5, 60.0, 90.0), (2.5, 149.0, 1.0), (2.5, 151.0, -1.0)],
)
def test_a_test_has_more_time_on_a_slower_machine(
    request: pytest.FixtureRequest, slowness: float, elapsed: float, more_seconds: float
) -> None:
    limit = limit_of(request.node, slowness=slowness, elapsed=elapsed)

    assert limit.find_more_seconds(inspect.currentframe()) == more_seconds


def test_the_bookkeeping_of_fixtures_is_not_interrupted(
    request: pytest.FixtureRequest,
) -> None:
    limit = limit_of(request.node, slowness=1.0, elapsed=60.0)
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals["__name__"] != "_pytest.runner":
        frame = frame.f_back

    assert frame is not None
    assert limit.find_more_seconds(frame) == POSTPONE_SECONDS
