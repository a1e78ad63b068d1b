"""A page that was withdrawn is found by what the version before it said."""

import pytest

from tools.calls import ToolCall, ToolCaller, ToolResult
from tools.executor import ToolExecutor
from tools.graph_walk import is_notice


async def walk(executor: ToolExecutor, query: str) -> ToolResult:
    call = ToolCall(call_id="1", tool="graph_search", arguments={"query": query, "limit": 1})
    return await executor.execute(call, ToolCaller(agent="reason"))


async def test_a_question_about_a_withdrawn_page_leads_to_its_notice(
    executor: ToolExecutor,
) -> None:
    found = await walk(executor, "Which book keeps a carrier?")

    assert [one.chunk_id for one in found.citations] == ["repeal@2025#0"]
    assert "the version before it fits the query" in found.text


@pytest.mark.parametrize(
    "query", ["Which fee does a carrier pay?", "Which book keeps a carrier in 2024?"]
)
async def test_other_questions_and_named_versions_are_searched_as_before(
    executor: ToolExecutor, query: str
) -> None:
    found = await walk(executor, query)

    assert "repeal@2025#0" not in {one.chunk_id for one in found.citations}


def test_a_notice_says_where_the_content_is() -> None:
    assert is_notice("[Withdrawn: incorporated into Article 6.]")
    assert not is_notice("A withdrawn licence is returned.")
