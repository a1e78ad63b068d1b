"""The long runs of `benchmarks/speed/endurance`, short: what they find, not how fast they are."""

import pytest

from benchmarks.speed.endurance import overload, restarts
from benchmarks.speed.endurance.overload import Overload
from benchmarks.speed.endurance.restarts import Poison, Rolling
from benchmarks.speed.endurance.results import RunResult

pytestmark = [pytest.mark.redis, pytest.mark.slow]


def make_findings(result: RunResult) -> dict[str, float]:
    return {check.name: check.found for check in result.checks}


@pytest.mark.long
async def test_three_times_what_workers_can_do_is_refused_on_submission_and_the_rest_answered() -> (
    None
):
    result = await overload.run(Overload(seconds=6, ease_seconds=2))

    goals = make_findings(result)
    assert goals["accepted without an answer"] == 0
    assert result.figures["refused"] > result.figures["accepted"]  # type: ignore[operator] # both are numbers
    # Without admission the last of six seconds would wait for twelve more.
    assert result.figures["longest under overload (s)"] < 6  # type: ignore[operator] # a number
    assert goals["a quiet tenant's questions accepted"] > 0.6


async def test_a_rolling_restart_spends_no_attempt_and_delays_nobody_for_long() -> None:
    result = await restarts.run_rolling(Rolling(seconds=2, rounds=1))

    goals = make_findings(result)
    # The goal is one second; a machine that does much else at once gets five.
    assert goals.pop("added p99 (s)") < 5
    assert set(goals.values()) == {0}


@pytest.mark.long
async def test_poison_is_started_thrice_ends_with_an_apology_and_costs_nobody_an_answer() -> None:
    result = await restarts.run_poison(Poison(seconds=2, every=2, lease_seconds=1.5))

    goals = make_findings(result)
    # In so short a time everybody ran next to it.
    del goals["others' p99 against before"]
    assert goals == {
        "poison buried after exactly three starts": 1,
        "its users got an apology": 1,
        "workers lost, for each": 1,
        "questions without an answer": 0,
    }
