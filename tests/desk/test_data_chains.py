"""What one agent writes is what the next one reads, from the text to the approved answer."""

import pytest

from llm.tasks.question import EssenceOutput, TranslateOutput
from llm.tasks.search import RespondOutput
from tests.desk.conftest import OpenApp
from tests.support.app_harness import Fields, PartlyScriptedModel

pytestmark = pytest.mark.slow

RUSSIAN = "Сколько условий может иметь правило маршрутизации?"
ENGLISH = "How many conditions may a rule have?"
CANONICAL = "How many conditions may a routing rule have?"
ANSWER = "Правило может иметь не более 8 условий. [1]"


@pytest.fixture
async def run(open_app: OpenApp) -> tuple[Fields, Fields, PartlyScriptedModel]:
    """The reply to a Russian question, the writes of every agent, and the models' inputs."""
    model = PartlyScriptedModel(
        translate=[TranslateOutput(text_eng=ENGLISH, confidence=0.9)],
        essence=[EssenceOutput(canonical_question=CANONICAL, context_type="new_topic")],
        respond=[RespondOutput(status="answered", answer=ANSWER, confidence=0.8)],
    )
    async with open_app(model) as harness:
        driver = harness.driver()
        reply = await driver.say(RUSSIAN)
        roles = await driver.roles(reply)
        writes = {role: (await driver.read_writes(reply, role))[0] for role in roles}
    return reply, writes, model


async def test_the_language_chain_holds(run: tuple[Fields, Fields, PartlyScriptedModel]) -> None:
    _, writes, model = run
    [translated], [understood] = model.find_asked("translate"), model.find_asked("essence")

    assert (writes["lang"]["language"], translated.language) == ("ru", "ru")
    assert 0.9 < writes["lang"]["confidence"] <= 1
    assert translated.text == RUSSIAN
    assert (writes["translation"]["text_eng"], understood.text_eng) == (ENGLISH, ENGLISH)
    assert writes["essence"]["canonical_question"] == CANONICAL


async def test_the_search_and_context_chain_holds(
    run: tuple[Fields, Fields, PartlyScriptedModel],
) -> None:
    reply, writes, model = run
    [answered] = model.find_asked("respond")
    context = writes["search"]["search_context"]
    references = writes["augmentation"]["source_references"]

    assert CANONICAL in writes["augmentation"]["augmented_prompt"]
    assert RUSSIAN in writes["augmentation"]["augmented_prompt"]
    chunk_ids = {result["chunk_id"] for result in writes["search"]["search_results"]}
    assert {reference["chunk_id"] for reference in references} <= chunk_ids
    spans = [context[slice(*reference["span"])] for reference in references]
    assert [source.text for source in answered.sources] == spans
    assert (answered.question, answered.language) == (CANONICAL, "ru")
    assert writes["response"]["response"] == ANSWER
    assert [source["chunk_id"] for source in reply["sources"]] == [references[0]["chunk_id"]]


async def test_the_quality_and_routing_chain_holds(
    run: tuple[Fields, Fields, PartlyScriptedModel],
) -> None:
    reply, writes, _ = run

    assert writes["guardrails"]["within_scope"] is True
    assert writes["search"]["search_quality"] in {"good", "excellent"}
    assert not any(wrote.get("needs_clarification") for wrote in writes.values())
    assert writes["quality"]["quality_decision"] == "approve"
    assert reply["quality_score"] == writes["quality"]["quality_score"]
    assert reply["outcome"] == "answered"
    assert reply["text"].startswith(ANSWER), "then that no model has compared it with its sources"
