"""A whole desk answers by a swarm: with the rules, and with a scripted model that plans."""

from typing import Any

import pytest

from llm.conversations.turns import ModelMessage, ToolUse
from llm.errors import ModelUnavailable
from llm.tasks import plan_swarm, synthesize_findings, triage
from tests.deploy.conftest import OpenApp
from tests.support.app_harness import Fields, PartlyScriptedModel

pytestmark = pytest.mark.slow

SIMPLE = "How often is a failed webhook event sent again?"
LARGE = "Compare what the webhooks, the REST API and SMPP say about retries"
ANSWER = "A failed webhook event is sent again up to 8 times."
RETRIES = plan_swarm.PlannedWorker(
    role="research", objective="How often is a failed webhook event sent again?"
)
ERRORS = plan_swarm.PlannedWorker(
    role="research", objective="Which errors of the REST API should be retried?"
)


def decide(*workers: plan_swarm.PlannedWorker, **changes: Any) -> plan_swarm.Output:
    """The decision of a planning model."""
    fields = {"reasoning": "two parts", "action": "orchestrate", "complexity": 0.6, **changes}
    return plan_swarm.Output.model_validate({**fields, "workers": workers})


def search(query: str) -> ModelMessage:
    use = ToolUse(call_id="a", name="search", arguments={"query": query, "limit": 3})
    return ModelMessage(calls=(use,))


def work_by_search(conversation: Any) -> ModelMessage:
    """Search for the brief once, then end."""
    [brief, *further] = conversation.messages
    return ModelMessage(text="Found.") if further else search(brief.text)


def cite(phrase: str, text: str = ANSWER) -> Any:
    """Answer with the source that has `phrase`."""

    def answer(inputs: Any) -> synthesize_findings.Output:
        number = next(one.number for one in inputs.sources if phrase in one.text)
        return synthesize_findings.Output(answer=f"{text} [{number}]")

    return answer


def list_states(reply: Fields) -> list[str]:
    return [task["state"] for task in reply["tasks"]]


async def test_the_rules_divide_a_comparison_and_cite_every_part(open_app: OpenApp) -> None:
    async with open_app(way="swarm") as harness:
        driver = harness.driver()
        reply = await driver.say(LARGE)
        roles = await driver.roles(reply)

    assert (reply["outcome"], reply["way"]) == ("answered", "swarm")
    assert reply["routing"]["strategy"] == "parallel"
    assert set(list_states(reply)) == {"completed"}
    assert len(reply["tasks"]) >= 2
    assert reply["sources"]
    assert "| Item | Found |" in reply["text"]
    assert roles[4:7] == ["plan", "gather", "ledger"]
    assert roles[-2:] == ["synthesize", "quality"]


async def test_a_simple_question_is_left_to_one_search(open_app: OpenApp) -> None:
    async with open_app(way="swarm") as harness:
        reply = await harness.driver().say(SIMPLE)

    assert (reply["outcome"], reply["way"]) == ("answered", "search")
    assert reply["routing"]["action"] == "simple_response"
    assert "way_fallback" not in reply


async def test_workers_of_a_model_run_their_own_tools_and_one_answer_is_written(
    open_app: OpenApp,
) -> None:
    model = PartlyScriptedModel(
        plan_swarm=[decide(RETRIES, ERRORS)],
        work_on_task=[work_by_search] * 4,
        synthesize_findings=[cite("up to 8 times")],
    )

    async with open_app(model, way="swarm") as harness:
        reply = await harness.driver().say(SIMPLE)

    assert (reply["outcome"], reply["text"]) == ("answered", f"{ANSWER} [1]")
    assert reply["way"] == "swarm"
    assert list_states(reply) == ["completed", "completed"]
    assert [call["tool_name"] for call in reply["tool_calls"]] == ["search", "search"]
    model.script.assert_complete()


async def test_a_plan_that_cannot_run_is_planned_again_with_its_problems(
    open_app: OpenApp,
) -> None:
    cycle = [
        RETRIES.model_copy(update={"depends_on": (1,)}),
        ERRORS.model_copy(update={"depends_on": (0,)}),
    ]
    model = PartlyScriptedModel(plan_swarm=[decide(*cycle), decide(RETRIES, ERRORS)])

    async with open_app(model, way="swarm") as harness:
        reply = await harness.driver().say(SIMPLE)

    [problem] = model.find_asked("plan_swarm")[1].problems
    assert "cycle" in problem
    assert (reply["outcome"], reply["way"]) == ("answered", "swarm")


async def test_a_planner_that_fails_leaves_the_question_to_one_search(open_app: OpenApp) -> None:
    model = PartlyScriptedModel(plan_swarm=[ModelUnavailable("away")])

    async with open_app(model, way="swarm") as harness:
        reply = await harness.driver().say(SIMPLE)

    assert (reply["outcome"], reply["way_fallback"]) == ("answered", "plan.failed")


async def test_a_worker_that_fails_again_and_again_is_done_without_and_named(
    open_app: OpenApp,
) -> None:
    def work(conversation: Any) -> ModelMessage:
        if "errors" in conversation.messages[0].text:
            raise ModelUnavailable("away")
        return work_by_search(conversation)

    model = PartlyScriptedModel(
        plan_swarm=[decide(RETRIES, ERRORS)],
        work_on_task=[work] * 10,
        synthesize_findings=[cite("up to 8 times")],
    )

    async with open_app(model, way="swarm", swarm_retries=2) as harness:
        reply = await harness.driver().say(SIMPLE)

    assert reply["outcome"] == "answered"
    assert list_states(reply) == ["completed", "failed"]
    assert [task["attempts"] for task in reply["tasks"]] == [1, 3]
    assert reply["text"].startswith(f"{ANSWER} [1]")
    assert (
        f"1 of 2 parts of the question are answered. Not answered: {ERRORS.objective}"
        in (reply["text"])
    )


async def test_auto_divides_only_what_triage_finds_very_complex(open_app: OpenApp) -> None:
    judged = triage.Output(complexity=85, vagueness=0.1, reasoning="many documents")
    model = PartlyScriptedModel(
        triage=[judged],
        plan_swarm=[decide(RETRIES, ERRORS)],
        synthesize_findings=[cite("up to 8 times")],
    )

    async with open_app(model, way="auto") as harness:
        reply = await harness.driver().say(SIMPLE)

    assert (reply["way"], reply["triage"]["way"]) == ("swarm", "swarm")
    assert reply["outcome"] == "answered"
