"""The cost of a plan is an upper bound that a person can read before they approve it."""

from agents.swarm.swarm_plan import measure_cost
from llm.port import Usage
from llm.registry import estimate_call_usd
from llm.vendors.catalogue import VendorAccess
from tests.agents.swarm.builders import make_swarm_plan, make_worker


def test_the_bounds_grow_with_the_workers_and_the_most_expensive_tool() -> None:
    one = measure_cost(make_swarm_plan(make_worker("a", tools=("mail",))), {"mail": 2_000})
    two = measure_cost(make_swarm_plan(make_worker("a"), make_worker("b")))

    assert two.model_calls > one.model_calls
    assert one.tool_micros == one.tool_calls * 2_000
    assert two.tool_micros is None


def test_the_models_cost_what_each_call_costs_by_the_price_list_or_nobody_knows() -> None:
    plan = make_swarm_plan(make_worker("a"), make_worker("b"))
    most = Usage(input_tokens=8_000, output_tokens=2_000)
    listed = estimate_call_usd("gpt-4o-mini@openai,offline", most, {})
    # The same name at another address: its prices are not those of the vendor.
    here = {"openai": VendorAccess("key", "http://127.0.0.1:8080/v1")}
    own = estimate_call_usd("gpt-4o-mini@openai,offline", most, here)

    known, unknown = (measure_cost(plan, call_usd=price) for price in (listed, own))

    assert listed
    assert known.model_usd == known.model_calls * listed
    assert unknown.model_usd is None
