"""The long runs of `benchmarks/endurance`, short: what they find, not how fast this machine is."""

import pytest

from benchmarks.endurance import overload, poison, rolling
from benchmarks.endurance.overload import Overload
from benchmarks.endurance.poison import Poison
from benchmarks.endurance.results import RunResult
from benchmarks.endurance.rolling import Rolling

pytestmark = [pytest.mark.redis, pytest.mark.slow]


def make_findings(told: RunResult) -> dict[str, float]:
    return {check.name: check.found for check in told.checks}


async def test_three_times_what_workers_can_do_is_refused_at_the_door_and_the_rest_answered() -> (
    None
):
    told = await overload.run(Overload(seconds=6, ease_seconds=2))

    goals = make_findings(told)
    assert goals["accepted without an answer"] == 0
    assert told.figures["refused"] > told.figures["accepted"]  # type: ignore[operator] # both are numbers
    # With no door the last of six seconds would wait for twelve more.
    assert told.figures["longest under overload (s)"] < 6  # type: ignore[operator] # a number
    assert goals["a quiet tenant's questions accepted"] > 0.6


async def test_a_rolling_restart_spends_no_attempt_and_delays_nobody_for_long() -> None:
    told = await rolling.run(Rolling(seconds=2, rounds=1))

    goals = make_findings(told)
    # The goal is one second; a machine that does much else at once gets five.
    assert goals.pop("added p99 (s)") < 5
    assert set(goals.values()) == {0}


async def test_poison_is_started_thrice_ends_with_an_apology_and_costs_nobody_an_answer() -> None:
    told = await poison.run(Poison(seconds=2, every=2, lease_seconds=1.5))

    goals = make_findings(told)
    # In so short a time everybody was beside it.
    del goals["others' p99 against before"]
    assert goals == {
        "poison buried after exactly three starts": 1,
        "its users got an apology": 1,
        "workers lost, for each": 1,
        "questions without an answer": 0,
    }
