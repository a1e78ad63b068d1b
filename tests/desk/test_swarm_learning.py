"""Swarms leave outcomes that advise later plans; a council weighs several perspectives."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.swarm.learning import QuestionKind, SwarmOutcome, read_history, write_outcome
from config.settings import Settings
from envelope.question import Question
from gateway.desk import Message
from knowledge.embedding import Embedder
from llm.tasks.swarm import PlannedWorker, PlanSwarmOutput
from memory.conversation import Ended, RedisMemory
from memory.learned_outcomes import RedisOutcomeLog
from tests.desk.conftest import OpenApp
from tests.desk.test_swarm_way import BY_SEARCH, SIMPLE, cite, decide, work_by_search
from tests.memory.test_conversation import apply_writes
from tests.support.app_harness import AppHarness, PartlyScriptedModel, settings_of
from tests.support.folder_copy import copy_folder
from tests.support.http_desk import HttpDesk, open_http_desk

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


MESSAGES = "/v1/conversations/c1/messages"


async def test_without_a_model_a_persona_has_no_effect_and_the_answer_says_so(
    open_app: OpenApp,
) -> None:
    async with open_app(way="swarm") as harness:
        driver = harness.driver()
        reply: Any = await harness.desk.ask(replace(driver.message(SIMPLE), persona="a tutor"))
        plain: Any = await harness.desk.ask(driver.message(SIMPLE))

    assert "The requested persona has no effect without a model" in reply["text"]
    assert "persona" not in plain["text"]


async def test_a_model_has_the_voice_and_says_whether_anything_disagrees(open_app: OpenApp) -> None:
    sides = [
        PlannedWorker(role="analysis", specialization=name, objective=f"{name}: retries?")
        for name in ("advocate", "critic", "practitioner")
    ]
    model = PartlyScriptedModel(
        plan_swarm=[decide(*sides)] * 2,
        work_on_task=[work_by_search] * 16,
        synthesize_findings=[cite("up to 8 times", dissents=True), cite("up to 8 times")],
    )

    async with open_app(model, way="swarm") as harness:
        driver = harness.driver()
        message = driver.message(SIMPLE)
        first: Any = await harness.desk.ask(replace(message, strategy="council", persona="a tutor"))
        second: Any = await harness.desk.ask(replace(driver.message(SIMPLE), strategy="council"))

    assert model.find_asked("synthesize_findings")[0].persona == "a tutor"
    assert "persona" not in first["text"]
    assert "dissent" not in first["text"]
    assert "No dissent was found" in second["text"]


@pytest.mark.parametrize(("thumb", "mean"), [("up", 1.0), ("down", 0.0)])
async def test_a_thumb_over_http_reaches_what_swarms_learn(
    library: Path, tmp_path: Path, embedder: Embedder, thumb: str, mean: float
) -> None:
    settings = settings_of(copy_folder(library, tmp_path / "own"), way="swarm")
    asked = {"text": "Compare what the webhooks, the REST API and SMPP say about retries"}

    async with open_http_desk(settings, embedder) as desk:
        made = (await desk.http.post(MESSAGES, json=asked)).json()
        before = await read_outcomes(desk, settings)
        rated = await desk.http.post(
            f"{MESSAGES}/{made['message_id']}/feedback", json={"rating": thumb}
        )
        after = await read_outcomes(desk, settings)

    assert (made["way"], rated.status_code) == ("swarm", 204)
    assert (before.outcomes, before.thumbs) == (1, 0)
    assert (after.outcomes, after.thumbs) == (1, 1)
    [first], [second] = (
        [value.mean for each in one.memory.strategies.values() for value in each.values()]
        for one in (before, after)
    )
    assert abs(second - mean) < abs(first - mean)


async def read_outcomes(desk: HttpDesk, settings: Settings) -> Any:
    log = RedisOutcomeLog(desk.client, shards=1)
    return read_history(await log.load(settings.tenant, settings.assistant))
