"""The run of `benchmarks/speed/overload.py`, short: what it finds, not how fast it is."""

import pytest

from benchmarks.speed.overload import Overload, run

pytestmark = [pytest.mark.redis, pytest.mark.long]


async def test_three_times_what_workers_can_do_is_refused_on_submission_and_the_rest_answered() -> (
    None
):
    result = await run(Overload(seconds=6, ease_seconds=2))

    goals = {check.name: check.found for check in result.checks}
    assert goals["accepted questions without an answer"] == 0
    assert result.figures["rejected"] > result.figures["accepted"]  # type: ignore[operator] # both are numbers
    # Without admission the last of six seconds would wait for twelve more.
    assert result.figures["longest under overload (s)"] < 6  # type: ignore[operator] # a number
    assert goals["share of a quiet tenant's questions that was accepted"] > 0.6
