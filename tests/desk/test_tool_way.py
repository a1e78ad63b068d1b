"""A whole desk answers by tools: with the rules, and with a scripted model that plans and fails."""

from pathlib import Path
from typing import Any

import pytest

from llm.errors import ModelUnavailable
from llm.port import ModelMessage, ToolUse
from llm.tasks.search import JudgeOutput, RespondOutput
from llm.tasks.tool_loop import TriageOutput
from tests.desk.conftest import OpenApp
from tests.support.app_harness import Fields, PartlyScriptedModel, judge_all
from tests.support.ticket_server import TicketServer, run_ticket_server, write_document

pytestmark = pytest.mark.slow


RETRIES = "How often is a failed webhook event sent again?"


ANSWER = "A failed webhook event is sent again up to 8 times."


def use(tool: str, **arguments: Any) -> ToolUse:
    return ToolUse(call_id=f"{tool}-1", name=tool, arguments=arguments)


def plan(*calls: ToolUse, text: str = "") -> ModelMessage:
    return ModelMessage(text=text, calls=calls)


def cite_first(phrase: str, said: str = ANSWER, missing: str = "") -> Any:
    """Answer with the source that says `phrase`, and report what is missing."""

    def answer(inputs: Any) -> RespondOutput:
        number = next((source.number for source in inputs.sources if phrase in source.text), None)
        if number is None:
            return RespondOutput(status="insufficient_context", missing=phrase)
        return RespondOutput(
            status="answered", answer=f"{said} [{number}]", confidence=0.9, missing=missing
        )

    return answer


def research(*missing: str) -> JudgeOutput:
    """Return the verdict of a judge who wants more to be looked for."""
    return JudgeOutput(
        claims_read=1, completeness=0.5, accuracy=1.0, language_matches=True, missing=missing,
        analysis="Look for the rest.", decision="research",
    )  # fmt: skip


def list_tools(reply: Fields) -> list[str]:
    return [call["tool_name"] for call in reply["tool_calls"]]


SEARCH = use("search", query="webhook retries")
ENOUGH = use("search", query="webhook retries", plan_intent="search", plan_next="write")
"""The search of a plan that needs no further calls."""


DONE = plan(text="DONE")


GOOD = (judge_all("approve"),)


FOUND = cite_first("up to 8 times")


async def test_without_a_model_the_tools_end_in_passages_with_their_sources(
    open_app: OpenApp,
) -> None:
    async with open_app(way="tools") as harness:
        driver = harness.driver()
        reply = await driver.say(RETRIES)
        roles = await driver.roles(reply)

    assert reply["outcome"] == "answered"
    assert "up to 8 times" in reply["text"]
    assert "webhooks/retries.md" in {source["path"] for source in reply["sources"]}
    assert reply["way"] == "tools"
    assert set(list_tools(reply)) == {"search"}
    assert roles[-3:] == ["reflect", "response", "quality"]


async def test_a_round_without_new_calls_ends_the_loop_with_the_best_answer(
    open_app: OpenApp,
) -> None:
    model = PartlyScriptedModel(
        reason=[plan(SEARCH), DONE, plan(SEARCH)],
        respond=[cite_first("up to 8 times", missing="the interval")],
        judge=[research("the interval")],
    )

    async with open_app(model, way="tools") as harness:
        driver = harness.driver()
        reply = await driver.say(RETRIES)
        roles = await driver.roles(reply)

    assert reply["outcome"] == "answered"
    assert f"{ANSWER} [1]" in reply["text"]
    assert roles[-5:] == ["reason", "reflect", "response", "quality", "reason"]
    assert [item["tools"] for item in reply["plan_rounds"]] == [["search"]]
    model.script.assert_complete()


async def test_a_round_that_finds_the_same_passages_pays_no_further_answer(
    open_app: OpenApp,
) -> None:
    again = use("search", query="Webhook retries", plan_intent="search", plan_next="write")
    model = PartlyScriptedModel(
        reason=[plan(ENOUGH), plan(again)],
        respond=[cite_first("up to 8 times", missing="the interval")] * 2,
        judge=[research("the interval")] * 2,
    )

    async with open_app(model, way="tools") as harness:
        reply = await harness.driver().say(RETRIES)

    paid = {name: len(model.find_asked(name)) for name in ("respond", "judge")}
    assert paid == {"respond": 1, "judge": 1}
    assert len(reply["tool_calls"]) == 2
    assert (reply["outcome"], reply["termination_reason"]) == ("answered", "no_better_answer")
    assert f"{ANSWER} [1]" in reply["text"]


async def test_an_approved_answer_goes_out_with_what_it_lacks_and_without_a_further_round(
    open_app: OpenApp,
) -> None:
    model = PartlyScriptedModel(
        reason=[plan(SEARCH), DONE],
        respond=[cite_first("up to 8 times", missing="the price of an event")],
        judge=GOOD,
    )

    async with open_app(model, way="tools") as harness:
        reply = await harness.driver().say(RETRIES)

    assert reply["outcome"] == "answered"
    assert reply["text"] == (
        f"{ANSWER} [1]\n\nIn the passages I found there is nothing about: the price of an event"
    )
    model.script.assert_complete()


async def test_information_missing_from_the_question_is_requested_if_no_tool_call_finds_it(
    open_app: OpenApp,
) -> None:
    asks = RespondOutput(status="missing_details", missing="the account that the event is about")
    model = PartlyScriptedModel(
        reason=[plan(SEARCH), DONE, plan(SEARCH)], respond=[lambda _inputs: asks]
    )

    async with open_app(model, way="tools") as harness:
        driver = harness.driver()
        reply = await driver.say(RETRIES)
        roles = await driver.roles(reply)

    last = model.find_asked("reason")[-1].messages[-1]
    assert last.remark.lacks == ("the account that the event is about",)
    assert (reply["outcome"], reply["clarification_reason"]) == ("clarification", "missing_details")
    assert roles[-4:] == ["reflect", "response", "reason", "clarification"]


FAULTS: list[Any] = [ValueError("a fault")] * 9
"""More than the times that a hop is tried."""


@pytest.mark.parametrize("way", ["search", "tools"])
async def test_a_fault_of_the_judge_leaves_the_written_answer_which_says_that_it_is_not_judged(
    open_app: OpenApp, way: str
) -> None:
    model = PartlyScriptedModel(reason=[plan(ENOUGH)], respond=[FOUND], judge=FAULTS)

    async with open_app(model, way=way, max_regenerate=0) as harness:
        reply = await harness.driver().say(RETRIES)

    fault, answer, note = reply["text"].split("\n\n")
    assert fault.startswith("The permitted number of steps")
    assert note.startswith("This answer was checked by rules only")
    assert (reply["outcome"], answer) == ("answered", f"{ANSWER} [1]")
    assert reply["quality_score"] is None


async def test_without_any_answer_a_round_without_new_calls_ends_in_the_refusal(
    open_app: OpenApp,
) -> None:
    model = PartlyScriptedModel(
        reason=[plan(SEARCH), DONE, plan(SEARCH)], respond=[cite_first("no source says this")]
    )

    async with open_app(model, way="tools") as harness:
        driver = harness.driver()
        reply = await driver.say(RETRIES)
        roles = await driver.roles(reply)

    assert (reply["outcome"], reply["clarification_reason"]) == ("refused", "insufficient_context")
    assert roles[-4:] == ["reflect", "response", "reason", "clarification"]


async def test_a_plain_question_needs_one_plan_one_answer_and_one_judgement(
    open_app: OpenApp,
) -> None:
    model = PartlyScriptedModel(reason=[plan(ENOUGH)], respond=[FOUND], judge=GOOD)

    async with open_app(model, way="tools") as harness:
        driver = harness.driver()
        reply = await driver.say(RETRIES)
        roles = await driver.roles(reply)

    assert (reply["outcome"], reply["text"]) == ("answered", f"{ANSWER} [1]")
    assert roles[-4:] == ["tool", "reflect", "response", "quality"]
    asked = {name: len(model.find_asked(name)) for name in ("reason", "respond", "judge")}
    assert asked == {"reason": 1, "respond": 1, "judge": 1}
    [planned] = reply["plan_rounds"]
    assert (planned["round"], planned["intent"]) == (1, "search")
    [call] = reply["tool_calls"]
    assert call["arguments"] == {"query": "webhook retries"}
    model.script.assert_complete()


async def test_results_feed_the_next_calls_before_anything_is_written(open_app: OpenApp) -> None:
    model = PartlyScriptedModel(
        reason=[plan(use("lookup", name="Glossary"), text="First."), plan(ENOUGH)],
        respond=[FOUND],
    )

    async with open_app(model, way="tools") as harness:
        reply = await harness.driver().say(RETRIES)

    shown = [message.kind for message in model.find_asked("reason")[1].messages]
    assert shown == ["user", "model", "tool"]
    assert reply["outcome"] == "answered"


async def test_a_second_round_with_several_tools_is_shown_as_such_with_its_reasons(
    open_app: OpenApp,
) -> None:
    """Scenario T-15: the first answer is incomplete, and two tools in parallel complete it."""
    model = PartlyScriptedModel(
        reason=[
            plan(
                use("search", query="events", plan_intent="summary", plan_next="write"),
                text="One search may be enough.",
            ),
            plan(
                ENOUGH,
                use("hierarchical_search", query="webhooks", plan_intent="summary",
                    plan_next="write"),
                text="The schedule is missing.",
            ),
        ],
        respond=[cite_first("", "It is sent again.", "how often"), FOUND],
        judge=[research("how often"), *GOOD],
    )  # fmt: skip

    async with open_app(model, way="tools") as harness:
        reply = await harness.driver().say(RETRIES)

    shown = ("round", "intent", "is_multi_tool", "strategy", "reasoning")
    first, second = reply["plan_rounds"]
    assert [first.get(name) for name in shown] == [
        1, "summary", False, None, "One search may be enough.",
    ]  # fmt: skip
    assert [second.get(name) for name in shown] == [
        2, "multi_tool", True, "MULTI_TOOL_ORCHESTRATION", "The schedule is missing.",
    ]  # fmt: skip
    assert (reply["outcome"], reply["text"]) == ("answered", f"{ANSWER} [1]")
    model.script.assert_complete()


async def test_names_that_a_model_invents_never_run_and_the_answer_still_comes(
    open_app: OpenApp,
) -> None:
    invented = [plan(use(f"invented_{number}")) for number in range(4)]
    model = PartlyScriptedModel(reason=invented)

    async with open_app(model, way="tools") as harness:
        reply = await harness.driver().say(RETRIES)

    assert {call["error_type"] for call in reply["tool_calls"]} == {"hallucination"}
    assert len(reply["tool_calls"]) == 4
    assert (reply["way"], reply["way_fallback"]) == ("search", "reflect.insufficient_results")
    assert reply["outcome"] == "answered"


async def test_a_planner_that_fails_leaves_the_question_to_one_search(open_app: OpenApp) -> None:
    model = PartlyScriptedModel(reason=[ModelUnavailable("away")])

    async with open_app(model, way="tools") as harness:
        driver = harness.driver()
        reply = await driver.say(RETRIES)
        [event] = [
            entry.fields
            for entry in await driver.journal(reply)
            if entry.kind == "routed" and entry.fields["row"] == "reason.failed"
        ]

    assert reply["outcome"] == "answered"
    assert reply["way_fallback"] == "reason.failed"
    assert event["reason"] == "ModelUnavailable: away"


async def test_a_plan_that_finds_the_question_foreign_refuses_it(open_app: OpenApp) -> None:
    model = PartlyScriptedModel(reason=[plan(use("out_of_scope_handler", reason="bread"))])

    async with open_app(model, way="tools") as harness:
        reply = await harness.driver().say(RETRIES)

    assert (reply["outcome"], reply["clarification_reason"]) == ("refused", "out_of_scope")


async def test_auto_leaves_a_simple_question_to_one_search_and_says_why(open_app: OpenApp) -> None:
    async with open_app(way="auto") as harness:
        reply = await harness.driver().say(RETRIES)

    assert reply["outcome"] == "answered"
    assert (reply["way"], reply["tool_calls"]) == ("search", [])
    assert reply["triage"]["decided_by"] == "rules"


async def test_auto_gives_a_complex_question_to_the_tools(open_app: OpenApp) -> None:
    complex_ = TriageOutput(complexity=50, vagueness=0.1, reasoning="two places")
    model = PartlyScriptedModel(triage=[complex_], reason=[plan(ENOUGH)], respond=[FOUND])

    async with open_app(model, way="auto") as harness:
        reply = await harness.driver().say(RETRIES)

    assert reply["way"] == "tools"
    assert reply["triage"]["complexity"] == 50


async def test_a_calculation_of_a_model_is_a_source_of_its_answer(open_app: OpenApp) -> None:
    calculate = plan(use("calculator", expression="8 * 3"))
    model = PartlyScriptedModel(
        reason=[calculate, DONE],
        respond=[cite_first("8 * 3 = 24", "They are 24.")],
        judge=GOOD,
    )

    async with open_app(model, way="tools") as harness:
        reply = await harness.driver().say("How much are 8 * 3 routing rules?")

    assert reply["text"] == "They are 24. [1]"
    assert [source["title"] for source in reply["sources"]] == ["calculator"]


CLOSE = use("deleteTicket", id="7")


def write_tools(folder: Path, server: TicketServer) -> Path:
    (folder / "tickets.json").write_text(write_document())
    file = folder / "outside.toml"
    file.write_text(
        f"""
[apis.tickets]
document = "tickets.json"
base_url = "{server.url}"
headers = {{ X-Tenant = "acme" }}

[apis.tickets.operations.deleteTicket]
effect = "dangerous"
"""
    )
    return file


def make_model(rounds: int = 1) -> PartlyScriptedModel:
    calls = plan(SEARCH, CLOSE)
    return PartlyScriptedModel(reason=[calls] * rounds, respond=[FOUND] * rounds)


def list_requests(server: TicketServer) -> list[str]:
    return [first for first, _, _ in server.requests]


async def ask_and_reply(open_app: OpenApp, folder: Path, *replies: str) -> tuple[Any, ...]:
    """Return the model, the server's requests before and after, and what the desk said."""
    model = make_model()
    async with run_ticket_server() as server:
        outside = write_tools(folder, server)
        async with open_app(model, way="tools", outside_tools=outside) as harness:
            driver = harness.driver()
            said: list[Fields] = [await driver.say(RETRIES)]
            before = list_requests(server)
            said += [await driver.say(reply) for reply in replies]
        return model, before, list_requests(server), said


async def test_a_dangerous_call_is_made_after_its_approval_and_no_other_call_is_repeated(
    open_app: OpenApp, tmp_path: Path
) -> None:
    model, before, after, (asked, answered, late) = await ask_and_reply(
        open_app, tmp_path, "Approve", "Approve"
    )

    assert asked["outcome"] == "clarification"
    assert 'Shall I run “deleteTicket”? With: `{"id": "7"}`' in asked["text"]
    assert before == []
    assert after == ["DELETE /v2/tickets/7 HTTP/1.1"], "also after a second approval"
    assert answered["outcome"] == "answered"
    assert sorted(list_tools(answered)) == ["deleteTicket", "search"]
    assert late["outcome"] == "refused", "nothing is left to approve"
    assert len(model.find_asked("reason")) == 1, "the plan is not paid twice"


async def test_after_a_denial_the_answer_is_written_without_the_call(
    open_app: OpenApp, tmp_path: Path
) -> None:
    _, _, after, (_, answered) = await ask_and_reply(open_app, tmp_path, "Deny")

    assert after == []
    assert answered["outcome"] == "answered"
    assert list_tools(answered) == ["search"]
