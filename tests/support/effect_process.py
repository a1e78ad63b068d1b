"""A process with a tool that changes something outside: it appends a line to a file.

`python -m tests.support.effect_process REDIS_URL FILE` makes one call of it, and hangs in the
middle of the effect, after the line, until somebody kills it.
"""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from broker.transport.connect import connect
from envelope.question import Question
from memory.receipts import RedisReceipts
from tools.calls import EffectClass, ToolCall, ToolCaller, ToolResult
from tools.catalog import ToolCatalog
from tools.executor import ToolExecutor
from tools.tool import Tool

if TYPE_CHECKING:
    from redis.asyncio import Redis

QUESTION = Question(tenant="acme", assistant="desk", conversation_id="c1", message_id="m1")


class Order(BaseModel):
    """What is ordered."""

    item: str = "book"


class Ordered(BaseModel):
    """What was ordered."""

    line: str


class OrderTool(Tool[Order, Ordered]):
    """Writes an order down; hangs afterwards if `hangs`."""

    name = "order"
    description = "Orders an item."
    effect = EffectClass.EFFECT
    inputs = Order
    output = Ordered

    def __init__(self, orders: Path, *, hangs: bool = False) -> None:
        self._orders = orders
        self._hangs = hangs

    async def run(self, inputs: Order, caller: ToolCaller) -> Ordered:
        with self._orders.open("a") as orders:
            orders.write(f"{inputs.item}\n")
        if self._hangs:
            await asyncio.Event().wait()
        return Ordered(line=inputs.item)


def make_receipts(client: "Redis", delivery: str, branch: str = "") -> RedisReceipts:
    """Return the receipts of the question as one delivery sees them."""
    return RedisReceipts(
        client,
        QUESTION,
        branch=branch,
        delivery=delivery,
        shards=1,
        record_of=lambda question: f"rd:{{0}}:record:{question.message_id}",
    )


async def place_order(
    orders: Path, client: "Redis", delivery: str, *, hangs: bool = False, call_id: str = "1"
) -> ToolResult:
    """Return the result of the call, as one delivery makes it."""
    executor = ToolExecutor(
        ToolCatalog([OrderTool(orders, hangs=hangs)]), receipts=make_receipts(client, delivery)
    )
    return await executor.execute(
        ToolCall(call_id=call_id, tool="order", arguments={"item": "book"}),
        ToolCaller(agent="tool"),
    )


if __name__ == "__main__":
    asyncio.run(place_order(Path(sys.argv[2]), connect(sys.argv[1]), "first", hangs=True))
