"""A whole loop in one process, with scripted models and with the offline planner."""

import json

from llm.conversations.turns import ModelMessage, ToolUse
from llm.offline.model import OfflineModel
from llm.scripted import ScriptedModel
from tools.budget import CallLimit
from tools.calls import CitedPassage, ToolCaller, ToolErrorType, ToolResult
from tools.catalog import ToolCatalog
from tools.executor import ToolExecutor
from tools.loop import make_tool_message, open_conversation, run_loop
from tools.schemas import describe_tools

CALLER = ToolCaller(agent="reason")


def write_call(number: int, tool: str, **arguments: object) -> ModelMessage:
    given = json.loads(json.dumps(arguments))
    return ModelMessage(calls=(ToolUse(call_id=f"c{number}", name=tool, arguments=given),))


async def test_a_tool_that_does_not_exist_never_runs_and_the_answer_still_comes(
    executor: ToolExecutor,
) -> None:
    """The model invents another name each turn: it is corrected three times."""
    invented = [write_call(number, f"invented_{number}") for number in range(9)]
    model = ScriptedModel([*invented[:4], ModelMessage(text="The fee is 150 euros.")])

    result = await run_loop(model, executor, open_conversation("What is the fee?", ()), CALLER)

    assert (result.reason, result.answer) == ("corrections", "The fee is 150 euros.")
    assert len(result.results) == 4
    assert {one.error_type for one in result.results} == {ToolErrorType.HALLUCINATION}


async def test_results_of_parallel_calls_reach_the_model_and_are_cited(
    executor: ToolExecutor,
) -> None:
    both = ModelMessage(
        calls=(
            ToolUse(call_id="a", name="lookup", arguments={"name": "Article 83"}),
            ToolUse(call_id="b", name="calculator", arguments={"expression": "0.04 * 100"}),
        )
    )
    model = ScriptedModel([both, ModelMessage(text="4.")])

    result = await run_loop(model, executor, open_conversation("What is 4 %?", ()), CALLER)

    asked = model.calls[1].inputs
    texts = [one["text"] for one in asked.model_dump()["messages"][2:]]
    assert "a fine of up to 4 %" in texts[0]
    assert texts[1] == "0.04 * 100 = 4"
    assert [one.document_id for one in result.passages] == ["penalties@2025"]


async def test_a_budget_that_is_used_up_ends_with_an_answer(executor: ToolExecutor) -> None:
    calls = [write_call(number, "calculator", expression="1 + 1") for number in range(3)]
    model = ScriptedModel([*calls, ModelMessage(text="Two.")])

    result = await run_loop(
        model, executor, open_conversation("?", ()), CALLER, budget=CallLimit(2)
    )

    assert (result.reason, result.answer) == ("budget", "Two.")


async def test_a_loop_that_does_not_end_is_asked_for_its_answer(executor: ToolExecutor) -> None:
    calls = [write_call(number, "calculator", expression="1 + 1") for number in range(2)]
    model = ScriptedModel([*calls, write_call(9, "calculator", expression="2")])

    result = await run_loop(model, executor, open_conversation("?", ()), CALLER, most_steps=2)

    assert (result.reason, result.answer) == ("steps", "")
    assert len(result.results) == 2


async def test_the_offline_planner_finds_a_chain_of_passages(
    executor: ToolExecutor, catalog: ToolCatalog
) -> None:
    question = "Where was the person who licensed the carriers of the Alfa Act born?"
    plan = open_conversation(
        question, describe_tools(catalog.select()), facts={"most_passages": 2, "most_rounds": 2}
    )

    result = await run_loop(OfflineModel(), executor, plan, CALLER)

    assert [one.document_id for one in result.passages] == ["alfa@2025", "costa"]


def test_citations_that_the_text_lost_are_given_after_it() -> None:
    cited = [CitedPassage(chunk_id=f"d{n}#0", document_id=f"d{n}", title="D") for n in range(2)]
    result = ToolResult(
        call_id="1",
        tool="search",
        success=True,
        error_type=ToolErrorType.SUCCESS,
        text="[d0#0] D\nA text.",
        citations=tuple(cited),
    )

    message = make_tool_message(result)

    assert message.text.endswith("\nfurther sources: [d1#0]")
    assert message.sources == ("d0#0", "d1#0")
