import pytest

from tests.simulation.exploration import interleave
from tests.simulation.scenarios import BRANCHES, PAUSES, WATCHES

COUNTS = [160, pytest.param(1000, marks=pytest.mark.long)]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", COUNTS)
def test_drawn_scenarios_keep_every_promise(count: int) -> None:
    tally = interleave("drawn", count, per_scenario=40)

    assert tally.interleavings == count
    assert tally.seen["late, refused"] > 0


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", COUNTS)
def test_drawn_scenarios_with_branches_keep_every_promise(count: int) -> None:
    tally = interleave(f"{BRANCHES}ranches", count, per_scenario=10)

    assert tally.interleavings == count
    assert tally.seen["late, refused"] > 0


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", COUNTS)
def test_drawn_scenarios_with_pauses_keep_every_promise(count: int) -> None:
    tally = interleave(f"{PAUSES}auses", count, per_scenario=10)

    assert tally.interleavings == count
    assert tally.seen["claim granted"] > 0
    assert tally.seen["claim refused"] > 0


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", COUNTS)
def test_messages_that_end_the_work_of_the_one_before_keep_every_promise(count: int) -> None:
    tally = interleave(f"{WATCHES}atches", count, per_scenario=10)

    assert tally.interleavings == count
    assert tally.seen["late, refused"] > 0


def test_the_same_seed_makes_the_same_interleavings() -> None:
    assert interleave("again", 20) == interleave("again", 20)
