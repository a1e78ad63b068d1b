"""Faults that are planted in real runs are journaled and named; clean runs raise no alarm."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from broker.embedded_redis import Endpoint
from deploy.assembly.knowledge import Knowledge
from manager.evidence_checks import FaultKind
from tests.faults.planted import (
    QUESTIONS,
    STAGES,
    SWARM_QUESTIONS,
    PlantedFigures,
    format_figures,
)
from tests.faults.planted import note as note_run
from tests.faults.planting import NamedModel, Planted, plant
from tests.support.app_harness import AppHarness, run_app, settings_of

pytestmark = pytest.mark.slow
QUESTION = QUESTIONS[0]
PLACES = [
    (FaultKind.LOST_RESULT, "reflect"),
    (FaultKind.LOST_RESULT, "join"),
    (FaultKind.ALTERED_RESULT, "tool"),
    (FaultKind.ALTERED_RESULT, "join"),
    (FaultKind.INVENTED_SOURCE, "response"),
    (FaultKind.SKIPPED_WORK, "tool"),
    (FaultKind.STALE_CONTEXT, "response"),
]


def open_tools(
    library: Path, endpoint: Endpoint, knowledge: Knowledge, model: NamedModel
) -> AbstractAsyncContextManager[AppHarness]:
    return run_app(settings_of(library, way="tools"), endpoint, knowledge, model)


async def test_a_planted_fault_is_journaled_and_named_in_the_reply(
    library: Path, endpoint: Endpoint, knowledge: Knowledge
) -> None:
    async with open_tools(library, endpoint, knowledge, NamedModel()) as harness:
        for kind, role in PLACES:
            driver, planted = harness.driver(expects_faults=True), Planted(kind, role)
            with plant(planted):
                reply = await driver.say(QUESTION)

            entries = [entry.fields.get("faults") for entry in await driver.journal(reply)]
            lists = [faults for faults in entries if isinstance(faults, list)]
            journaled = [item["kind"] for each in lists for item in each if isinstance(item, dict)]
            assert planted.count == 1, role
            assert kind.value in {fault["kind"] for fault in reply["faults"]}
            assert kind.value in journaled


async def test_an_answer_by_another_model_is_named_and_a_dated_one_is_not(
    library: Path, endpoint: Endpoint, knowledge: Knowledge
) -> None:
    model = NamedModel()

    async with open_tools(library, endpoint, knowledge, model) as harness:
        clean = await harness.driver().say(QUESTION)
        model.wrong_task = "respond"
        planted = await harness.driver(expects_faults=True).say(QUESTION)

    assert "faults" not in clean
    assert "found a fault" not in clean["text"]
    assert planted["faults"][0]["kind"] == "wrong_model"
    assert "cheap-model" in planted["faults"][0]["detail"]


async def test_a_worker_that_reads_another_index_than_the_plan_is_named(
    library: Path, endpoint: Endpoint, knowledge: Knowledge
) -> None:
    settings = settings_of(library, way="swarm", search_cache_seconds=0)

    async with run_app(settings, endpoint, knowledge, NamedModel()) as harness:
        clean = await harness.driver().say(SWARM_QUESTIONS[0])
        with changing_index():
            planted = await harness.driver(expects_faults=True).say(SWARM_QUESTIONS[0])

    assert (clean["way"], clean.get("faults")) == ("swarm", None)
    assert {fault["kind"] for fault in planted["faults"]} == {"stale_context"}
    assert "index version" in planted["faults"][0]["detail"]


@contextmanager
def changing_index() -> Iterator[None]:
    """Let the documents change each time that a hop looks for their version."""
    versions = count(1)
    kind: Any = Knowledge
    read_revision = kind.read_revision

    async def read_changed(_knowledge: Knowledge) -> str:
        return f"v{next(versions)}"

    kind.read_revision = read_changed
    try:
        yield
    finally:
        kind.read_revision = read_revision


def test_the_report_counts_what_was_found_and_what_was_missed() -> None:
    figures = PlantedFigures(clean={"tools": 3})
    note_run(figures, "tools", FaultKind.LOST_RESULT, "join", "q", {"faults": [{"kind": "x"}]})
    note_run(figures, "tools", FaultKind.LOST_RESULT, "join", "q", {})

    lines = format_figures(figures)

    assert "1 of 2 found (50.0 %), 0 under their name; 0 false alarms in 3 clean runs" in lines[3]
    assert "missed: tools lost_result join q" in lines
    assert {"search", "tools"} <= set(STAGES)
