"""People see the searches of a plan, and each tick off when it has ended."""

from typing import Any

import pytest

from envelope.role import Role
from manager.flows.tool_loop import TOOLS_FLOW
from tests.gateway.widget.conftest import Come
from tests.gateway.widget.test_asking import gate_role
from tests.support.http_server import HttpServerFixture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

HOSTILE = "see <b>x</b> [here](https://evil.example)"


def call(number: int, query: str) -> dict[str, Any]:
    arguments = {"query": query}
    return {"call_id": f"r1-{number}", "tool": "search", "arguments": arguments, "depends_on": []}


async def test_the_searches_of_a_plan_tick_off(http_server: HttpServerFixture, come: Come) -> None:
    harness = http_server.harness
    flows: Any = harness.flows
    flows.update(dict.fromkeys(flows, TOOLS_FLOW))
    calls = [call(1, "fees of carriers"), call(2, HOSTILE)]
    harness.script.next(Role.REASON, {"intent": "search", "tool_calls": calls})
    first = gate_role(http_server, Role.TOOL, {"multi_tool_results": {"r1-1": {}}})
    second = gate_role(http_server, Role.TOOL, {"multi_tool_results": {"r1-2": {}}})
    harness.script.next(Role.REFLECT, {"source_references": [{"number": 1}]})
    harness.script.next(Role.ASSESS, {"response": "Open Routing [1].", "assessment": {}})
    shown = await (await come()).opens()

    await shown.asks("What are the fees?")
    await shown.part(".progress", has_text="0/2").wait_for()
    await shown.part(".plan li", has_text="search: fees of carriers").wait_for()
    await shown.part(".plan li", has_text="search: see").wait_for()
    assert await shown.part(".plan li *").count() == 0, "labels are text alone"
    first.set()
    await shown.part(".progress", has_text="1/2").wait_for()
    await shown.part(".plan li.completed").wait_for()
    second.set()

    assert await shown.has_answers(1) == ["Open Routing [1]."]
