from dataclasses import replace
from typing import Any

import pytest

from memory.conversation import CLAIM_PAUSE
from tests.simulation import state_graph
from tests.simulation.expected_state import MANAGER, SEARCH
from tests.simulation.pause_moves import make_play
from tests.simulation.scenario import Scenario
from tests.simulation.scenarios import BRANCHED, CANCELLED, ORDERED, PAUSED, WATCHED
from tests.simulation.simulated_redis import Edit, SimulatedClock, simulate
from tests.simulation.state_graph import ENDLESS, Visited, visit

ONE_MANAGER = {"A": SEARCH, "M": MANAGER}
ORDERS, LARGE = 1000, 10_000
"""The least orders of a small graph, so that it is known to explore something; of a large one."""


def visit_scenario(scenario: Scenario, edit: Edit | None = None) -> Visited:
    clock = SimulatedClock()
    with simulate(clock):
        return visit(make_play(scenario, clock, edit))


def make_row(scenario: Scenario, least: int, seconds: int = 300) -> Any:
    """Return a scenario with the least number of its orders; the large ones are `long`."""
    mark = pytest.mark.long if least > LARGE else pytest.mark.slow
    return pytest.param(scenario, least, marks=[mark, pytest.mark.timeout(seconds)])


@pytest.mark.parametrize(
    ("scenario", "least"),
    [
        make_row(replace(ORDERED, times={"lapse": 1, "crash": 1}), ORDERS),
        make_row(replace(ORDERED, times={"lapse": 2}), 1_000_000),
        make_row(CANCELLED, 100_000),
        make_row(BRANCHED, 100_000),
        make_row(replace(WATCHED, times={}), ORDERS),
        make_row(WATCHED, 100_000),
        make_row(replace(PAUSED, times={"crash": 1}), LARGE),
        make_row(replace(PAUSED, times={"lapse": 1}), 100_000),
        make_row(replace(PAUSED, times={"crash": 1, "until_over": 1}), 100_000),
        make_row(replace(PAUSED, actors=ONE_MANAGER), 10_000_000, seconds=600),
        make_row(PAUSED, 1_000_000_000, seconds=1800),
    ],
)
def test_every_order_of_what_may_happen_keeps_every_promise(scenario: Scenario, least: int) -> None:
    ways = visit_scenario(scenario)

    assert ways.interleavings >= least
    assert ways.moves >= ways.states


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "actors", [ONE_MANAGER, pytest.param(PAUSED.actors, marks=pytest.mark.long)], ids=len
)
def test_omitted_parts_of_a_state_change_no_path_through_the_graph(
    monkeypatch: pytest.MonkeyPatch, actors: dict[str, str]
) -> None:
    scenario = replace(PAUSED, times={"until_over": 1}, actors=actors)
    reduced = visit_scenario(scenario)
    monkeypatch.setattr(state_graph, "find_horizon", lambda _play: ENDLESS)
    whole = visit_scenario(scenario)

    assert reduced.states < whole.states
    assert (reduced.interleavings, reduced.longest) == (whole.interleavings, whole.longest)


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("or by ~= '' and by ~= ARGV[2]", ""),
        ("redis.call('HSET', KEYS[1], 'by', ARGV[2])", ""),
    ],
    ids=["claimed_twice", "claim_not_stored"],
)
@pytest.mark.parametrize("times", [{}, {"crash": 1, "lapse": 1, "until_over": 1}], ids=str)
def test_a_broken_claim_of_a_pause_is_noticed(
    line: str, broken: str, times: dict[str, int]
) -> None:
    assert line in CLAIM_PAUSE
    scenario = replace(PAUSED, times=times)

    with pytest.raises(AssertionError, match=r"claim: expected|kept pauses: expected"):
        visit_scenario(scenario, lambda text: text.replace(line, broken))


def test_interleavings_are_counted_along_every_way() -> None:
    ways = Visited([[1, 2], [3], [3], [4, 5], [], []])

    assert ways.interleavings == 4
    assert ways.longest == 3
