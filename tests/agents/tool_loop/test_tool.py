"""Each call has a result: that of the tool, or why there is none; and a record for the reply."""

from typing import Any

import pytest

from agents.tool_loop.tool import MOST_QUOTED_CHARACTERS, Reads, ToolAgent, Writes
from envelope.outcome import Wrote
from tools.calls import ToolErrorType, ToolResult
from tools.executor import ToolExecutor


async def call(
    executor: ToolExecutor, tool: str, groups: tuple[str, ...] = (), **given: Any
) -> Writes:
    reads = Reads(
        tool_call={"call_id": "r1-1", "tool": tool, "arguments": given, "depends_on": []},
        groups=groups,
    )
    outcome = await ToolAgent(executor=executor).work(reads)
    assert isinstance(outcome, Wrote)
    return outcome.writes


def read_result(writes: Writes) -> ToolResult:
    return ToolResult.model_validate(writes.multi_tool_results["r1-1"])


async def test_a_result_quotes_the_passages_that_it_found(executor: ToolExecutor) -> None:
    writes = await call(executor, "lookup", name="Article 83")

    [quoted] = read_result(writes).quoted
    assert "a fine of up to 4 %" in quoted.text
    assert quoted.citation.document_id == "penalties@2025"
    [record] = writes.tool_executions
    assert (record["tool_name"], record["success"]) == ("lookup", True)
    assert record["arguments"] == {"name": "Article 83"}


async def test_an_unknown_tool_is_a_result_that_names_the_nearest_one(
    executor: ToolExecutor,
) -> None:
    result = read_result(await call(executor, "lookups", name="Article 83"))

    assert result.error_type is ToolErrorType.HALLUCINATION
    assert result.nearest == "lookup"


@pytest.mark.parametrize("groups", [(), ("staff",)])
async def test_a_tool_reads_only_what_the_person_may_read(
    executor: ToolExecutor, groups: tuple[str, ...]
) -> None:
    result = read_result(await call(executor, "lookup", groups, name="Omega"))

    assert not result.quoted


async def test_a_result_carries_a_bounded_amount_of_text(executor: ToolExecutor) -> None:
    writes = await call(executor, "search", query="carrier fee", limit=30)

    assert sum(len(one.text) for one in read_result(writes).quoted) <= MOST_QUOTED_CHARACTERS
    assert read_result(writes).data is None
