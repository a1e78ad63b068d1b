"""The planner writes calls and runs none: each call once, and within limits."""

from collections.abc import Sequence
from typing import Any

import pytest

from agents.tool_loop.reason import PlanLimits, Reads, ReasonAgent, Writes
from envelope.conversation import ClarificationReason
from envelope.outcome import GaveUp, Wrote
from envelope.tool_loop import Intent, Strategy
from knowledge.index.listing import ListedDocument
from llm.errors import ModelUnavailable
from llm.port import ModelMessage, Remark, ToolChoice, ToolConversation, ToolUse, UserMessage
from tests.support.scripted_model import ScriptedModel
from tools.calls import ToolErrorType, ToolResult
from tools.catalog import ToolCatalog, combine_tools
from tools.passages import describe_documents

QUESTION = "What is the fee, and what happens after a breach?"


async def list_versions(_groups: Sequence[str]) -> Sequence[str]:
    return ["2024", "2025"]


async def list_documents(_groups: Sequence[str]) -> Sequence[ListedDocument]:
    return [
        ListedDocument(
            id="act", title="The Act", source="act.md", root="", language="en", chunks=3,
            kind="law or regulation", stated_version="2025",
        )
    ]  # fmt: skip


def test_documents_whose_titles_share_rare_words_with_the_question_are_named_first() -> None:
    documents = [
        ListedDocument(id=f"d{number}", title=title, source="", root="", language="en", chunks=1)
        for number, title in enumerate(("Rules of a club", "Rules of a port", "The port of Alfa"))
    ]

    lines = describe_documents(documents, "Which rules hold in Alfa?", most=2)

    assert lines == (
        "d2: The port of Alfa (en)", "d0: Rules of a club (en)", "... and 1 further documents"
    )  # fmt: skip


def make_agent(
    catalog: ToolCatalog, model: Any, limits: PlanLimits | None = None, *, uses_model: bool = True
) -> ReasonAgent:
    made = PlanLimits() if limits is None else limits
    return ReasonAgent(
        model=model,
        tools=catalog,
        list_versions=list_versions,
        list_documents=list_documents,
        limits=made,
        uses_model=uses_model,
    )


def use(tool: str, call_id: str = "c1", **arguments: Any) -> ToolUse:
    return ToolUse(call_id=call_id, name=tool, arguments=arguments)


def make_result(call_id: str, kind: ToolErrorType = ToolErrorType.SUCCESS) -> ToolResult:
    good = kind is ToolErrorType.SUCCESS
    return ToolResult(call_id=call_id, tool="search", success=good, error_type=kind, text="found")


def carry(*results: ToolResult) -> dict[str, Any]:
    return {result.call_id: result.model_dump(mode="json") for result in results}


def extend(carried: dict[str, Any], writes: Writes, *, missing: str = "") -> dict[str, Any]:
    """Return what the next round reads after the calls of this one, each with a result."""
    results = carry(*(make_result(str(call["call_id"])) for call in writes.tool_calls))
    return {
        "plan_messages": (*carried.get("plan_messages", ()), *writes.plan_messages),
        "multi_tool_results": {**carried.get("multi_tool_results", {}), **results},
        "continues_planning": writes.continues_planning,
        "missing": missing,
    }


async def plan(agent: ReasonAgent, question: str = QUESTION, **reads: Any) -> Writes:
    outcome = await agent.work(Reads(canonical_question=question, **reads))
    assert isinstance(outcome, Wrote)
    return outcome.writes


async def test_the_calls_of_a_model_get_ids_of_their_round(catalog: ToolCatalog) -> None:
    stated = {"plan_intent": "search", "plan_next": "plan"}
    message = ModelMessage(
        calls=(use("lookup", "x", name="Article 83", **stated), use("search", "x", **stated))
    )
    earlier = ModelMessage(calls=(use("search", "r1-1", query="fee"),))

    writes = await plan(
        make_agent(catalog, ScriptedModel([message])),
        plan_messages=(earlier.model_dump(mode="json"),),
        multi_tool_results=carry(make_result("r1-1")),
    )

    assert [call["call_id"] for call in writes.tool_calls] == ["r2-1", "r2-2"]
    assert writes.intent is Intent.SEARCH
    assert writes.plan_rounds[0].is_multi_tool
    assert writes.strategy is Strategy.MULTI_TOOL_ORCHESTRATION
    assert writes.continues_planning
    assert [call["arguments"] for call in writes.tool_calls] == [{"name": "Article 83"}, {}]
    assert [plan_round.round for plan_round in writes.plan_rounds] == [2]


async def test_a_call_that_was_made_before_is_not_made_again(catalog: ToolCatalog) -> None:
    earlier = ModelMessage(calls=(use("search", "r1-1", query="fee"),))
    repeated = ModelMessage(calls=(use("search", "new", query="fee", plan_next="write"),))

    writes = await plan(
        make_agent(catalog, ScriptedModel([repeated])),
        plan_messages=(earlier.model_dump(mode="json"),),
        multi_tool_results=carry(make_result("r1-1")),
    )

    assert (writes.tool_calls, writes.plan_messages, writes.plan_rounds) == ((), (), ())


@pytest.mark.parametrize(
    ("stated", "continues"),
    [({}, True), ({"plan_next": "plan"}, True), ({"plan_next": "write"}, False)],
)
async def test_a_model_sees_the_results_of_its_calls_unless_it_leaves_them_to_the_writer(
    catalog: ToolCatalog, stated: dict[str, str], continues: bool
) -> None:
    message = ModelMessage(text="The fee first.", calls=(use("search", query="fee", **stated),))

    writes = await plan(make_agent(catalog, ScriptedModel([message])))

    assert writes.continues_planning is continues
    assert (writes.intent, writes.strategy) == (None, None), "the model stated no intent"
    assert writes.reasoning == "The fee first."


async def test_every_tool_asks_for_the_purpose_of_a_call_except_the_one_that_ends_the_question(
    catalog: ToolCatalog,
) -> None:
    model = ScriptedModel([ModelMessage(calls=(use("search", query="fee"),))])

    await plan(make_agent(catalog, model))

    asked = model.calls[0].inputs
    assert isinstance(asked, ToolConversation)
    required = {tool.name: tool.input_schema["required"] for tool in asked.tools}
    silent = {name for name, one in required.items() if "plan_intent" not in str(one)}
    assert silent == {"out_of_scope_handler"} & set(required)


async def test_a_plan_that_is_done_before_it_looked_is_asked_for_a_call(
    catalog: ToolCatalog,
) -> None:
    model = ScriptedModel(
        [ModelMessage(text="DONE"), ModelMessage(calls=(use("search", query="fee"),))]
    )

    writes = await plan(make_agent(catalog, model))

    asked = model.calls[1].inputs
    assert isinstance(asked, ToolConversation)
    assert asked.tool_choice is ToolChoice.REQUIRED
    assert [call["tool"] for call in writes.tool_calls] == ["search"]


async def test_a_further_round_reads_the_gaps_of_the_answer_before(catalog: ToolCatalog) -> None:
    model = ScriptedModel([ModelMessage(calls=(use("lookup", name="Article 83"),))])
    earlier = ModelMessage(calls=(use("search", "r1-1", query="fee"), use("search", "r1-2")))

    writes = await plan(
        make_agent(catalog, model),
        plan_messages=(earlier.model_dump(mode="json"),),
        multi_tool_results=carry(make_result("r1-1")),
        missing="the fine",
    )

    asked = model.calls[0].inputs
    assert isinstance(asked, ToolConversation)
    assert asked.messages[-1] == UserMessage(remark=Remark(is_incomplete=True, lacks=("the fine",)))
    # The call whose branch was lost has no result, and vendors refuse such a call.
    assert [call.call_id for call in asked.messages[1].calls] == ["r1-1"]  # type: ignore[union-attr] # a model's message
    assert writes.strategy is Strategy.SWITCH_TOOL


@pytest.mark.parametrize(
    ("names", "strategy"),
    [
        (("search",), Strategy.REFINE_QUERY),
        (("search", "search"), Strategy.REFINE_QUERY),
        (("lookup", "lookup"), Strategy.SWITCH_TOOL),
        (("search", "lookup"), Strategy.MULTI_TOOL_ORCHESTRATION),
    ],
)
async def test_the_strategy_of_a_round_follows_from_its_tools_and_not_from_the_number_of_calls(
    catalog: ToolCatalog, names: Sequence[str], strategy: Strategy
) -> None:
    calls = tuple(use(name, query=f"in words {number}") for number, name in enumerate(names))
    earlier = ModelMessage(calls=(use("search", "r1-1", query="fee"),))

    writes = await plan(
        make_agent(catalog, ScriptedModel([ModelMessage(calls=calls)])),
        plan_messages=(earlier.model_dump(mode="json"),),
        multi_tool_results=carry(make_result("r1-1")),
    )

    assert writes.strategy is strategy


async def test_a_round_after_a_writer_that_asks_reads_what_it_asks_for(
    catalog: ToolCatalog,
) -> None:
    model = ScriptedModel([ModelMessage(calls=(use("lookup", name="Article 83"),))])
    earlier = ModelMessage(calls=(use("search", "r1-1", query="fee"),))

    await plan(
        make_agent(catalog, model),
        plan_messages=(earlier.model_dump(mode="json"),),
        multi_tool_results=carry(make_result("r1-1")),
        needs_clarification=True,
        clarification_message="the year of the fee",
    )

    asked = model.calls[0].inputs
    assert isinstance(asked, ToolConversation)
    told = Remark(is_incomplete=True, lacks=("the year of the fee",))
    assert asked.messages[-1] == UserMessage(remark=told)


async def test_a_round_whose_results_are_all_lost_leaves_no_empty_message(
    catalog: ToolCatalog,
) -> None:
    model = ScriptedModel([ModelMessage(text="DONE"), ModelMessage(text="DONE")])
    lost = ModelMessage(calls=(use("search", "r1-1"),))

    await plan(make_agent(catalog, model), plan_messages=(lost.model_dump(mode="json"),))

    asked = model.calls[0].inputs
    assert isinstance(asked, ToolConversation)
    assert [message.kind for message in asked.messages] == ["user"]


async def test_after_too_many_wrong_calls_no_model_is_asked(catalog: ToolCatalog) -> None:
    wrong = [make_result(f"r{n}-1", ToolErrorType.HALLUCINATION) for n in range(1, 5)]
    calls = [
        ModelMessage(calls=(use(f"tool_{tool_result.call_id}", tool_result.call_id),))
        for tool_result in wrong
    ]

    writes = await plan(
        make_agent(catalog, ScriptedModel([])),
        plan_messages=tuple(call.model_dump(mode="json") for call in calls),
        multi_tool_results=carry(*wrong),
    )

    assert writes.tool_calls == ()
    assert writes.reasoning == "no further calls: corrections"


async def test_a_round_has_at_most_so_many_calls(catalog: ToolCatalog) -> None:
    many = ModelMessage(calls=tuple(use("search", f"c{n}", query=f"q{n}") for n in range(50)))

    writes = await plan(make_agent(catalog, ScriptedModel([many]), PlanLimits(most_calls=3)))

    assert len(writes.tool_calls) == 3


@pytest.mark.parametrize(
    ("known", "is_over", "reason"),
    [
        ({"response": "The fee is 3.", "quality_analysis": "more"}, True, None),
        ({}, False, ClarificationReason.INSUFFICIENT_CONTEXT),
        (
            {"needs_clarification": True, "clarification_reason": "missing_details"},
            False,
            ClarificationReason.MISSING_DETAILS,
        ),
    ],
    ids=["judged", "nothing found", "the writer asks"],
)
async def test_a_round_without_new_calls_ends_the_loop_or_asks(
    catalog: ToolCatalog,
    known: dict[str, Any],
    is_over: bool,
    reason: ClarificationReason | None,
) -> None:
    earlier = ModelMessage(calls=(use("search", "r1-1", query="fee"),))
    repeated = ModelMessage(calls=(use("search", query="fee"),))
    carried: dict[str, Any] = {
        "plan_messages": (earlier.model_dump(mode="json"),),
        "multi_tool_results": carry(make_result("r1-1")),
    }

    no_call = ModelMessage(text="no call")
    first = await plan(make_agent(catalog, ScriptedModel([no_call, no_call])))
    further = await plan(make_agent(catalog, ScriptedModel([repeated])), **carried, **known)

    assert (first.is_loop_over, first.clarification_reason, first.tool_calls) == (False, None, ())
    assert (further.is_loop_over, further.clarification_reason) == (is_over, reason)
    assert further.tool_calls == ()


@pytest.mark.parametrize("model", [ScriptedModel([ModelUnavailable("away")]), object()])
async def test_a_model_that_cannot_plan_gives_the_question_back(
    catalog: ToolCatalog, model: Any
) -> None:
    if not isinstance(model, ScriptedModel):
        model = type("Plain", (), {"name": "plain"})()

    outcome = await make_agent(catalog, model).work(Reads(canonical_question=QUESTION))

    assert isinstance(outcome, GaveUp)


async def test_a_model_that_fails_after_something_was_found_leaves_it_to_be_answered(
    catalog: ToolCatalog,
) -> None:
    earlier = ModelMessage(calls=(use("search", "r1-1", query="fee"),))

    writes = await plan(
        make_agent(catalog, ScriptedModel([ModelUnavailable("away")])),
        plan_messages=(earlier.model_dump(mode="json"),),
        multi_tool_results=carry(make_result("r1-1")),
        continues_planning=True,
    )

    assert (writes.tool_calls, writes.is_loop_over) == ((), False)
    assert writes.reasoning == "no further calls: ModelUnavailable: away"


async def test_without_a_model_each_question_that_is_listed_is_searched_for_once(
    catalog: ToolCatalog,
) -> None:
    agent = make_agent(catalog, object(), uses_model=False)
    question = "What does a licence cost? Who licenses the carriers?"

    first = await plan(agent, question)
    second = await plan(agent, question, **extend({}, first))

    queries = [call["arguments"]["query"] for call in first.tool_calls]  # type: ignore[call-overload, index] # JSON
    assert queries == ["What does a licence cost?", "Who licenses the carriers?"]
    assert second.tool_calls == ()


async def test_a_planner_knows_the_documents_their_versions_and_the_language_of_the_person(
    catalog: ToolCatalog,
) -> None:
    model = ScriptedModel([ModelMessage(calls=(use("search", query="fee"),))])

    await plan(make_agent(catalog, model), language="de")

    asked = model.calls[0].inputs
    assert isinstance(asked, ToolConversation)
    assert asked.prompt is not None
    prompt = asked.prompt.model_dump()
    assert prompt["documents"] == ("act: The Act (law or regulation, version 2025, en)",)
    assert (prompt["versions"], prompt["language"]) == (("2024", "2025"), "de")


@pytest.mark.parametrize(
    ("calls", "intent"),
    [
        ((("fine_finder", "search"),), Intent.SEARCH),
        ((("search", "penalty"), ("lookup", "penalty")), Intent.PENALTY),
        ((("search", "penalty"), ("search", "comparison")), Intent.MULTI_TOOL),
        ((("penalty_lookup", "an invented intent"),), None),
        ((("out_of_scope_handler", ""),), Intent.OUT_OF_SCOPE),
    ],
)
async def test_the_intent_of_a_round_is_what_the_model_states_whatever_its_tools_are_called(
    catalog: ToolCatalog, calls: Sequence[tuple[str, str]], intent: Intent | None
) -> None:
    message = ModelMessage(
        calls=tuple(
            use(name, query=f"q{number}", plan_intent=stated)
            for number, (name, stated) in enumerate(calls)
        )
    )

    writes = await plan(make_agent(catalog, ScriptedModel([message])))

    assert writes.intent is intent


async def test_a_model_knows_the_combinations_of_the_tools(
    catalog: ToolCatalog,
) -> None:
    combined = combine_tools(catalog, {"both": ("lookup", "search")}, "a test")
    model = ScriptedModel([ModelMessage(calls=(use("search", query="fee"),))])

    await plan(make_agent(combined, model))

    asked = model.calls[0].inputs
    assert isinstance(asked, ToolConversation)
    assert asked.prompt is not None
    assert asked.prompt.model_dump()["combinations"] == {"both": ("lookup", "search")}
