"""Swarms leave outcomes that advise later plans; a council weighs several perspectives."""

from typing import Any

import pytest

from envelope.question import Question
from gateway.desk import Message
from llm.tasks import synthesize_findings
from memory.conversation import RedisMemory
from memory.learning.learned_outcomes import RedisOutcomeLog
from memory.port import Ended
from swarm.learning.history import read_history, write_outcome
from swarm.learning.outcomes import QuestionKind, SwarmOutcome
from tests.deploy.conftest import OpenApp
from tests.memory.test_conversation import apply_writes
from tests.support.app_harness import AppHarness, PartlyScriptedModel

pytestmark = pytest.mark.slow
LARGE = "Compare what the webhooks, the REST API and SMPP say about retries"
OPINION = "Should we use webhooks or poll the REST API for delivery reports?"


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
    async with open_app(way="swarm") as harness:
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
    async with open_app(way="swarm") as harness:
        await harness.driver().say("How often is a failed webhook event sent again?")
        history = await read_log(harness)

    assert history.outcomes == 0


async def test_what_did_better_is_chosen_and_the_reply_says_why(open_app: OpenApp) -> None:
    async with open_app(way="swarm") as harness:
        before = await harness.driver().say(LARGE)
        kind = QuestionKind(before["routing"]["question_kind"])
        await teach(harness, kind, "intelligent", before["routing"]["strategy"])
        after = await harness.driver().say(LARGE)

    assert before["routing"]["strategy"] == "parallel"
    assert before["routing"]["strategy_reason"] == "it suits the form of the question best"
    assert "learned" not in before["routing"]
    assert after["routing"]["strategy"] == "intelligent"
    assert any("intelligent did better" in one for one in after["routing"]["learned"])


async def test_nothing_is_kept_or_used_where_learning_is_off(open_app: OpenApp) -> None:
    async with open_app(way="swarm", swarm_learning=False) as harness:
        await teach(harness, QuestionKind.COMPARISON, "intelligent", "parallel")
        await teach(harness, QuestionKind.GROUP, "intelligent", "parallel")
        reply = await harness.driver().say(LARGE)
        history = await read_log(harness)

    assert reply["routing"]["strategy"] == "parallel"
    assert "question_kind" not in reply["routing"]
    assert history.outcomes == 80


async def test_a_council_reports_agreement_and_dissent_of_three_perspectives(
    open_app: OpenApp,
) -> None:
    async with open_app(way="swarm") as harness:
        driver = harness.driver()
        reply = await driver.say(OPINION)
        plans = await driver.read_writes(reply, "plan")

    workers: Any = plans[0]["swarm_plan"]
    perspectives = {one["objective"] for one in workers["workers"]}
    assert reply["outcome"] == "answered"
    assert reply["routing"]["strategy"] == "council"
    assert len(perspectives) >= 3
    assert all(not one.get("depends_on") for one in workers["workers"])
    assert {task["state"] for task in reply["tasks"]} == {"completed"}
    assert reply["sources"]
    assert "(agreement: advocate, critic" in reply["text"]


async def test_a_model_writes_the_balanced_report_from_the_findings_of_each_perspective(
    open_app: OpenApp,
) -> None:
    def weigh(inputs: Any) -> synthesize_findings.Output:
        number = inputs.sources[0].number
        return synthesize_findings.Output(answer=f"{inputs.sources[0].text} [{number}]")

    model = PartlyScriptedModel(synthesize_findings=[weigh])
    async with open_app(model, way="swarm") as harness:
        await harness.driver().say(OPINION)

    [inputs] = model.find_asked("synthesize_findings")
    assert inputs.strategy == "council"
    assert len({worker for one in inputs.findings for worker in one.workers}) >= 3
