"""The cost of a plan is an upper bound that a person can read before they approve it."""

from swarm.planning.plan_cost import measure_cost
from tests.swarm.builders import make_swarm_plan, make_worker


def test_the_bounds_grow_with_the_workers_and_the_most_expensive_tool() -> None:
    one = measure_cost(make_swarm_plan(make_worker("a", tools=("mail",))), {"mail": 2_000})
    two = measure_cost(make_swarm_plan(make_worker("a"), make_worker("b")))

    assert two.model_calls > one.model_calls
    assert one.tool_micros == one.tool_calls * 2_000
    assert two.tool_micros is None
