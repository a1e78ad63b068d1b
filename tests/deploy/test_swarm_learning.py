"""Swarms leave outcomes that advise later plans; a council weighs several perspectives."""

from typing import Any

import pytest

from agents.swarm.learning import QuestionKind, SwarmOutcome, read_history, write_outcome
from envelope.question import Question
from gateway.desk import Message
from llm.tasks.swarm import PlannedWorker, PlanSwarmOutput
from memory.conversation import RedisMemory
from memory.learned_outcomes import RedisOutcomeLog
from memory.port import Ended
from tests.deploy.conftest import OpenApp
from tests.deploy.test_swarm_way import BY_SEARCH, cite
from tests.memory.test_conversation import apply_writes
from tests.support.app_harness import AppHarness, PartlyScriptedModel

pytestmark = pytest.mark.slow
LARGE = "Compare what the webhooks, the REST API and SMPP say about retries"


async def read_log(harness: AppHarness) -> Any:
    log = RedisOutcomeLog(harness.client, shards=1)
    return read_history(await log.load(harness.settings.tenant, harness.settings.assistant))


async def teach(harness: AppHarness, kind: QuestionKind, good: str, bad: str) -> None:
    """Store outcomes in which one strategy did better than another."""
    memory = RedisMemory(harness.client, shards=1)
    for number in range(40):
        strategy, judge = (good, 9.5) if number % 2 else (bad, 2.0)
        outcome = SwarmOutcome(
            kind=kind, strategy=strategy, workers=3, judge=judge - number % 3 / 9
        )
        question = Question(
            tenant=harness.settings.tenant,
            assistant=harness.settings.assistant,
            conversation_id="earlier",
            message_id=f"m{number}",
        )
        ended = Ended(learned=write_outcome(outcome))
        await apply_writes(harness.client, memory.writes(question, ended))


async def test_a_swarm_leaves_one_outcome_and_a_rating_reaches_it(open_app: OpenApp) -> None:
    async with open_app(make_model(), way="swarm") as harness:
        driver = harness.driver()
        reply = await driver.say(LARGE)
        question = harness.desk.question(Message("-", driver.conversation_id, reply["message_id"]))
        rated = await RedisOutcomeLog(harness.client, shards=1).rate(question, 1)
        history = await read_log(harness)

    kind, strategy = reply["routing"]["question_kind"], reply["routing"]["strategy"]
    assert (history.outcomes, history.thumbs, rated) == (1, 1, True)
    assert list(history.memory.strategies) == [kind]
    assert list(history.memory.strategies[kind]) == [strategy]
    assert 0.5 < history.memory.strategies[kind][strategy].mean <= 1


async def test_a_question_that_one_search_answers_leaves_no_outcome(open_app: OpenApp) -> None:
    simple = PlanSwarmOutput(action="simple_response", complexity=0.1)

    async with open_app(PartlyScriptedModel(plan_swarm=[simple]), way="swarm") as harness:
        await harness.driver().say("How often is a failed webhook event sent again?")
        history = await read_log(harness)

    assert history.outcomes == 0


def plan_parts(inputs: Any) -> PlanSwarmOutput:
    """Plan one worker, by the strategy that earlier outcomes advise."""
    advised = next((one.split()[0] for one in inputs.advice), "parallel")
    worker = PlannedWorker(role="research", objective="What do webhooks do?")
    return PlanSwarmOutput(
        action="orchestrate", complexity=0.6, strategy=advised, workers=(worker,)
    )


def make_model() -> PartlyScriptedModel:
    return PartlyScriptedModel(
        plan_swarm=[plan_parts] * 2,
        work_on_task=BY_SEARCH,
        synthesize_findings=[cite("webhook", "They are sent.")] * 2,
    )


async def test_a_planner_is_told_what_did_better_and_the_reply_says_so(open_app: OpenApp) -> None:
    async with open_app(make_model(), way="swarm") as harness:
        before = await harness.driver().say(LARGE)
        kind = QuestionKind(before["routing"]["question_kind"])
        await teach(harness, kind, "intelligent", before["routing"]["strategy"])
        after = await harness.driver().say(LARGE)

    assert before["routing"]["strategy"] == "parallel"
    assert before["routing"]["strategy_reason"] == "the planner chose it"
    assert "learned" not in before["routing"]
    assert after["routing"]["strategy"] == "intelligent"
    assert any("intelligent did better" in one for one in after["routing"]["learned"])


async def test_nothing_is_kept_or_used_where_learning_is_off(open_app: OpenApp) -> None:
    async with open_app(make_model(), way="swarm", swarm_learning=False) as harness:
        await teach(harness, QuestionKind.SEVERAL, "intelligent", "parallel")
        await teach(harness, QuestionKind.GROUP, "intelligent", "parallel")
        reply = await harness.driver().say(LARGE)
        history = await read_log(harness)

    assert reply["routing"]["strategy"] == "parallel"
    assert "question_kind" not in reply["routing"]
    assert history.outcomes == 80
