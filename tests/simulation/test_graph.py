import pytest

from tests.simulation.clock import SimulatedClock, simulate
from tests.simulation.scenario import Play, Scenario
from tests.simulation.scenarios import BRANCHED, CANCELLED, ORDERED
from tests.simulation.state_graph import Visited, visit


def visit_scenario(scenario: Scenario) -> Visited:
    clock = SimulatedClock()
    with simulate(clock):
        return visit(Play(scenario, clock))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_million_orders_of_two_workers_a_manager_sweeper_and_timer_keep_every_promise() -> None:
    ways = visit_scenario(ORDERED)

    assert ways.interleavings >= 1_000_000
    assert ways.moves >= ways.states


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_a_cancelled_message_keeps_every_promise_in_whatever_order_leases_are_lost() -> None:
    assert visit_scenario(CANCELLED).interleavings >= 100_000


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_branches_keep_every_promise_in_whatever_order_they_return_or_are_lost() -> None:
    assert visit_scenario(BRANCHED).interleavings >= 100_000


def test_interleavings_are_counted_along_every_way() -> None:
    ways = Visited([[1, 2], [3], [3], [4, 5], [], []])

    assert ways.interleavings == 4
    assert ways.longest == 3
