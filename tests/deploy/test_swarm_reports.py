"""What an answer of a swarm says that no source says, and what a thumb is remembered for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.swarm.learning import read_history
from config.settings import Settings
from knowledge.embedding import Embedder
from llm.tasks.swarm import PlannedWorker
from memory.learned_outcomes import RedisOutcomeLog
from tests.deploy.conftest import OpenApp
from tests.deploy.test_swarm_way import SIMPLE, cite, decide, work_by_search
from tests.support.app_harness import PartlyScriptedModel, settings_of
from tests.support.folder_copy import copy_folder
from tests.support.http_desk import HttpDesk, open_http_desk

pytestmark = pytest.mark.slow
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


async def test_a_model_has_the_voice_and_says_whether_anything_disagrees(
    open_app: OpenApp,
) -> None:
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
