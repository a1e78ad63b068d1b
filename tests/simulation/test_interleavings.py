import pytest

from tests.simulation.exploration import interleave
from tests.simulation.scenarios import BRANCHES, PAUSES, WATCHES


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [160, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("seed", "per_scenario", "seen"),
    [
        ("drawn", 40, ["late, refused"]),
        (f"{BRANCHES}ranches", 10, ["late, refused"]),
        (f"{PAUSES}auses", 10, ["claim granted", "claim refused"]),
        (f"{WATCHES}atches", 10, ["late, refused"]),
    ],
)
def test_drawn_scenarios_keep_every_promise(
    seed: str, per_scenario: int, seen: list[str], count: int
) -> None:
    tally = interleave(seed, count, per_scenario=per_scenario)

    assert tally.interleavings == count
    assert all(tally.seen[what] > 0 for what in seen)


def test_the_same_seed_makes_the_same_interleavings() -> None:
    assert interleave("again", 20) == interleave("again", 20)
