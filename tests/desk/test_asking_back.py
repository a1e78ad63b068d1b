"""How a vague question is asked back, and what may become of that."""

import json

import pytest

from agents.question.essence import EssenceAgent
from agents.question.essence import Reads as EssenceReads
from agents.question.translation import NEAREST, CombinedCall, Reads, TranslationAgent
from agents.search.search import Reads as SearchReads
from agents.search.search import SearchAgent
from agents.search.search import Writes as SearchWrites
from deploy.assembly.knowledge import Knowledge
from envelope.conversation import ClarificationOption, ClarificationReason, Pause
from envelope.outcome import Wrote
from llm.tasks.question import (
    ClarifyOutput,
    ContextType,
    EssenceOutput,
    Meaning,
    ScopeOutput,
    UnderstandOutput,
)
from llm.tasks.search import RespondOutput
from tests.desk.conftest import OpenApp
from tests.support.app_harness import (
    AppHarness,
    ConversationDriver,
    Fields,
    PartlyScriptedModel,
    keys,
    options,
)
from tests.support.scripted_model import Scripted, ScriptedModel

pytestmark = pytest.mark.slow

VAGUE = "How do I set it up?"


def make_model(**script: list[Scripted]) -> PartlyScriptedModel:
    """A model that finds the first question unclear, and everything after it within scope."""
    meanings = tuple(Meaning(label="", place=number) for number in range(1, 6))
    unclear = find_unclear(*meanings)
    within = ScopeOutput(verdict="within", confidence=0.9, analysis="")
    return PartlyScriptedModel(scope=[unclear, within, within], **script)


def find_unclear(*meanings: Meaning) -> ScopeOutput:
    return ScopeOutput(
        verdict="unclear", confidence=0.9, analysis="It names nothing.", meanings=meanings
    )


async def ask_back(harness: AppHarness) -> tuple[ConversationDriver, Fields]:
    driver = harness.driver()
    reply = await driver.say(VAGUE)
    assert reply["outcome"] == "clarification"
    return driver, reply


async def test_a_vague_question_is_asked_back_with_places_it_could_mean(open_app: OpenApp) -> None:
    async with open_app(make_model()) as harness:
        driver, reply = await ask_back(harness)
        [found] = await driver.read_writes(reply, "guardrails")

    found_places = {option["label"]: option["crumbs"] for option in found["clarification_options"]}
    offered = [action for action in reply["suggested_actions"] if action["kind"] == "option"]
    assert len(offered) > 1
    assert all(found_places[action["label"]] == action["crumbs"] for action in offered)
    assert all(option in reply["text"] for option in options(reply))
    kinds = [action["kind"] for action in reply["suggested_actions"]]
    assert kinds[-2:] == ["skip", "exit"]
    assert reply["sources"] == []


async def test_options_are_meanings_that_may_share_a_place_or_have_none(open_app: OpenApp) -> None:
    labels = ("the web address of a webhook", "the events of a webhook", "the price of a webhook")
    places = (1, 1, 99)
    meanings = (Meaning(label=a, place=b) for a, b in zip(labels, places, strict=True))
    within = ScopeOutput(verdict="within", confidence=0.9, analysis="")
    model = PartlyScriptedModel(scope=[find_unclear(*meanings), within])

    async with open_app(model) as harness:
        driver, asked = await ask_back(harness)
        reply = await driver.say("3")

    assert options(asked) == list(labels)
    first, second, third = (a["crumbs"] for a in asked["suggested_actions"][:3])
    assert first == second != []
    assert third == []
    assert reply["outcome"] == "answered"
    assert reply["question"] == f"{VAGUE} (the price of a webhook)"


@pytest.mark.parametrize("way", ["text", "number"])
async def test_the_reply_to_a_question_back_leads_to_an_answer(open_app: OpenApp, way: str) -> None:
    async with open_app(make_model()) as harness:
        driver, asked = await ask_back(harness)
        chosen = options(asked).index("Set up a webhook")
        said = {"text": "Set up a webhook", "number": str(chosen + 1)}[way]
        reply = await driver.say(said)
        pause = await harness.client.exists(keys(driver)["pause"])

    assert reply["outcome"] == "answered"
    assert reply["question"].startswith(VAGUE.rstrip("?"))
    assert "webhooks/set-up-a-webhook.md" in {source["path"] for source in reply["sources"]}
    assert pause == 0


@pytest.mark.parametrize("context", ["new_topic", "follow_up"])
@pytest.mark.parametrize(("pause_seconds", "is_open"), [(3_600, True), (60, False)])
async def test_a_reply_after_a_side_question_still_chooses_until_the_question_expires(
    open_app: OpenApp, context: ContextType, pause_seconds: int, is_open: bool
) -> None:
    first = EssenceOutput(canonical_question=VAGUE, context_type="new_topic")
    aside = EssenceOutput(canonical_question="What does error 4029 mean?", context_type=context)

    async with open_app(make_model(essence=[first, aside]), pause_seconds=pause_seconds) as harness:
        driver, asked = await ask_back(harness)
        between = await driver.say("What does error 4029 mean?")
        await age(harness, driver, 600)
        chosen = await driver.say("2")

    assert between["outcome"] == "answered"
    meant = f"{VAGUE} ({options(asked)[1]})"
    assert (chosen.get("question") == meant) is is_open


async def age(harness: AppHarness, driver: ConversationDriver, seconds: float) -> None:
    """Let the open question have begun earlier."""
    key = keys(driver)["pause"]
    stored = json.loads(await harness.client.hget(key, "pause"))
    older = {**stored, "created": stored["created"] - seconds}
    await harness.client.hset(key, "pause", json.dumps(older))


async def test_a_follow_up_leans_on_what_a_chosen_option_meant(open_app: OpenApp) -> None:
    async with open_app(make_model()) as harness:
        driver, asked = await ask_back(harness)
        await driver.say(str(options(asked).index("Set up a webhook") + 1))
        reply = await driver.say("And which role does that need?")
        [found] = await driver.read_writes(reply, "essence")

    assert found["context_type"] == "follow_up"
    assert found["related_history"][0].endswith("(Set up a webhook)")


async def test_a_skipped_clarification_leads_to_an_answer_that_states_its_assumption(
    open_app: OpenApp,
) -> None:
    draft = RespondOutput(status="answered", answer="Register first. [1]", confidence=0.9)

    async with open_app(make_model(respond=[draft])) as harness:
        driver, asked = await ask_back(harness)
        [skip] = [a["value"] for a in asked["suggested_actions"] if a["kind"] == "skip"]
        reply = await driver.say(skip)

    assert reply["outcome"] == "answered"
    assert options(asked)[0] in reply["text"].splitlines()[0]
    assert reply["sources"]


async def test_an_abandoned_clarification_gets_the_fixed_text_without_a_search(
    open_app: OpenApp,
) -> None:
    async with open_app(make_model()) as harness:
        driver, asked = await ask_back(harness)
        [leave] = [a["value"] for a in asked["suggested_actions"] if a["kind"] == "exit"]
        reply = await driver.say(leave)
        roles = await driver.roles(reply)
        pause = await harness.client.exists(keys(driver)["pause"])

    assert reply["text"].startswith("All right, I have closed this question.")
    assert roles == ["lang", "translation", "essence"]
    assert pause == 0


async def test_after_three_rounds_of_asking_back_the_question_is_ended(open_app: OpenApp) -> None:
    again = EssenceOutput(canonical_question=VAGUE, context_type="clarification")
    first = EssenceOutput(canonical_question=VAGUE, context_type="new_topic")
    unclear = ScopeOutput(verdict="unclear", confidence=0.5, analysis="what is it?")
    model = PartlyScriptedModel(essence=[first, again, again, again], scope=[unclear] * 4)

    async with open_app(model) as harness:
        driver = harness.driver()
        replies = [await driver.say(text) for text in (VAGUE, "hm", "well", "you know")]
        roles = await driver.roles(replies[-1])
        pause = await harness.client.exists(keys(driver)["pause"])

    assert [reply["outcome"] for reply in replies] == [*["clarification"] * 3, "refused"]
    assert replies[-1]["termination_reason"] == "round_limit"
    assert replies[-1]["text"]
    assert "search" not in roles
    assert pause == 0


async def test_the_prompt_for_a_clarification_states_which_stage_requested_it(
    open_app: OpenApp,
) -> None:
    model = make_model(clarify=[ClarifyOutput(text="Which setup do you mean?")])

    async with open_app(model) as harness:
        await harness.driver().say("How do I set it up?")

    assert [asked.stage for asked in model.find_asked("clarify")] == ["guardrails"]


VAGUE_QUESTIONS = (
    "How do I set it up?",
    "What does it cost?",
    "How do I change it?",
    "It is rejected, why?",
    "Which limits are there?",
)


async def find_meanings(knowledge: Knowledge, question: str) -> tuple[ClarificationOption, ...]:
    """Return the options where a model takes a question for one about any nearest page."""
    unclear = UnderstandOutput.model_validate(
        {
            "context_type": "new_topic",
            "verdict": "unclear",
            "details": {"meanings": [{"label": "", "place": n} for n in range(1, NEAREST + 1)]},
        }
    )
    combined = CombinedCall(ScriptedModel([unclear]), knowledge.searcher, "SMS Platform")
    agent = TranslationAgent(model=None, combined=combined)
    outcome = await agent.work(Reads(text=question, language="en"))
    assert isinstance(outcome, Wrote)
    assert outcome.writes.understanding is not None
    return outcome.writes.understanding.meanings


async def choose(knowledge: Knowledge, pause: Pause, text: str) -> SearchWrites:
    replied = await EssenceAgent(model=None).work(EssenceReads(text=text, open_pause=pause))
    assert isinstance(replied, Wrote)
    essence = replied.writes
    result = await SearchAgent(searcher=knowledge.searcher).work(
        SearchReads(
            canonical_question=essence.canonical_question,
            chosen_place=essence.chosen_place,
            related_history=essence.related_history,
            assumption=essence.assumption,
            text=text,
            text_eng=text,
            language="en",
        )
    )
    assert isinstance(result, Wrote)
    return result.writes


@pytest.mark.parametrize("question", VAGUE_QUESTIONS)
async def test_every_option_of_a_vague_question_leads_to_its_page_first(
    knowledge: Knowledge, question: str
) -> None:
    meanings = await find_meanings(knowledge, question)
    pause = Pause(
        pause_id="p",
        original_question=question,
        original_text=question,
        reason=ClarificationReason.AMBIGUOUS_QUERY,
        asked="Which one do you mean?",
        options=tuple(meaning.label for meaning in meanings),
        places=tuple(meaning.crumbs for meaning in meanings),
    )

    chosen = [await choose(knowledge, pause, str(n)) for n in range(1, len(meanings) + 1)]
    assumed = await choose(knowledge, pause, "Answer anyway")

    assert len(meanings) > 2
    firsts = [writes.search_results[0] for writes in (*chosen, assumed)]
    paths = [(*first.crumbs, *first.heading_path) for first in firsts]
    wanted = [meaning.crumbs for meaning in (*meanings, meanings[0])]
    assert [path[: len(place)] for path, place in zip(paths, wanted, strict=True)] == wanted
    assert {writes.search_quality for writes in chosen} <= {"good", "excellent"}
    assert {first.span and first.span[0] for first in firsts} == {0}
