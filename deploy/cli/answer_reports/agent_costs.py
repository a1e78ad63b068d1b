"""Formats what the agents of an answer took: calls, tokens and cost of each of them."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from pydantic import JsonValue

_WIDTH = 24


def list_agent_costs(usage: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield a line for each agent of `model_usage`, the most expensive one first."""
    found = usage.get("by_agent")
    agents = found if isinstance(found, dict) else {}
    known = [(name, one) for name, one in agents.items() if isinstance(one, dict)]
    known.sort(key=lambda pair: (-_read_price(pair[1]), pair[0]))
    for name, one in known:
        price = one.get("cost_usd")
        cost = "cost unknown" if price is None else f"{Decimal(str(price)):.6f} USD"
        tokens = f"{one.get('input_tokens', 0)} + {one.get('output_tokens', 0)} tokens"
        yield f"  {name[:_WIDTH]:<{_WIDTH}} {one.get('calls', 0)} calls, {tokens}, {cost}"


def _read_price(agent: Mapping[str, JsonValue]) -> Decimal:
    price = agent.get("cost_usd")
    return Decimal(0) if price is None else Decimal(str(price))
