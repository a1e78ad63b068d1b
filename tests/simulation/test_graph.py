from dataclasses import replace

import pytest

from memory.conversation import CLAIM_PAUSE
from tests.simulation import state_graph
from tests.simulation.clock import SimulatedClock, simulate
from tests.simulation.expected_state import MANAGER, SEARCH
from tests.simulation.pause_moves import make_play
from tests.simulation.scenario import Scenario
from tests.simulation.scenarios import BRANCHED, CANCELLED, ORDERED, PAUSED, WATCHED
from tests.simulation.simulated_redis import Edit
from tests.simulation.state_graph import Visited, visit
from tests.simulation.state_reduction import ENDLESS

ONE_MANAGER = {"A": SEARCH, "M": MANAGER}
ORDERS = 1000
"""The least orders of a small graph, so that it is known to explore something."""


def visit_scenario(scenario: Scenario, edit: Edit | None = None) -> Visited:
    clock = SimulatedClock()
    with simulate(clock):
        return visit(make_play(scenario, clock, edit))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("times", "interleavings"),
    [
        ({"lapse": 1, "crash": 1}, ORDERS),
        pytest.param({"lapse": 2}, 1_000_000, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_every_order_of_two_workers_a_manager_sweeper_and_timer_keeps_every_promise(
    times: dict[str, int], interleavings: int
) -> None:
    ways = visit_scenario(replace(ORDERED, times=times))

    assert ways.interleavings >= interleavings
    assert ways.moves >= ways.states


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_cancelled_message_keeps_every_promise_in_whatever_order_leases_are_lost() -> None:
    assert visit_scenario(CANCELLED).interleavings >= 100_000


@pytest.mark.long
@pytest.mark.timeout(300)
def test_branches_keep_every_promise_in_whatever_order_they_return_or_are_lost() -> None:
    assert visit_scenario(BRANCHED).interleavings >= 100_000


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("times", "interleavings"),
    [({}, ORDERS), pytest.param(WATCHED.times, 100_000, marks=pytest.mark.long)],
    ids=str,
)
def test_a_message_that_ends_the_work_of_another_keeps_every_promise_in_whatever_order(
    times: dict[str, int], interleavings: int
) -> None:
    assert visit_scenario(replace(WATCHED, times=times)).interleavings >= interleavings


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("times", "interleavings"),
    [
        ({"crash": 1}, 10_000),
        pytest.param({"lapse": 1}, 100_000, marks=pytest.mark.long),
        pytest.param({"crash": 1, "until_over": 1}, 100_000, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_pauses_keep_every_promise_in_whatever_order_replies_deaths_and_expiry_come(
    times: dict[str, int], interleavings: int
) -> None:
    assert visit_scenario(replace(PAUSED, times=times)).interleavings >= interleavings


@pytest.mark.long
@pytest.mark.timeout(600)
def test_pauses_keep_every_promise_with_a_death_a_lost_lease_and_an_expiry_together() -> None:
    assert visit_scenario(replace(PAUSED, actors=ONE_MANAGER)).interleavings >= 10_000_000


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_pauses_of_two_managers_keep_every_promise_with_all_faults_together() -> None:
    assert visit_scenario(PAUSED).interleavings >= 1_000_000_000


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "actors", [ONE_MANAGER, pytest.param(PAUSED.actors, marks=pytest.mark.long)], ids=len
)
def test_what_is_left_out_of_a_state_changes_no_way_through_the_graph(
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
