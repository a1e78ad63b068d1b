"""Conversations of several turns over the example documents: by rules, and with a model."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.deploy.conftest import OpenApp
from tests.deploy.test_asking_back import make_model
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import ConversationDriver, options
from tests.support.model_server import ModelServer, Response, running_server

pytestmark = pytest.mark.slow
VENDOR = OpenAI()
QUESTION = "How do I configure SMS routing rules?"
FIRST = "Open Routing > Rules and choose New rule."


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with running_server() as server:
        server.lists_models = True
        yield server


def asks_for_essence(server: ModelServer) -> dict[str, object]:
    """Settings by which essence and the writer ask the server, and every other task the rules."""
    offline = ("guardrails_model", "translation_model", "quality_model", "clarification_model")
    return {
        "gen_model": "gpt-4o-mini@openai",
        "openai_api_key": "secret-key",
        "openai_base_url": VENDOR.base_url(server.url),
        "model_cache_seconds": 0,
        **dict.fromkeys(offline, "offline"),
    }


def make_understanding(question: str, **changes: Any) -> Response:
    """The essence of a turn as a model sends it."""
    plain: dict[str, Any] = {"canonical_question": question, "context_type": "follow_up"}
    return VENDOR.answer(json.dumps(plain | changes))


def make_draft(answer: str) -> Response:
    """A draft as the writer sends it."""
    draft = {"status": "answered", "answer": answer, "confidence": 0.9, "missing": ""}
    return VENDOR.answer(json.dumps(draft))


async def talk(driver: ConversationDriver, *turns: str) -> list[dict[str, Any]]:
    return [await driver.say(turn) for turn in turns]


async def test_thanks_and_who_are_you_are_answered_without_a_search(open_app: OpenApp) -> None:
    async with open_app() as harness:
        driver = harness.driver()
        hello, able, answer, thanks = await talk(
            driver, "Hello!", "What can you do?", QUESTION, "Thanks!"
        )
        roles = await driver.roles(thanks)

    assert [reply["outcome"] for reply in (hello, able, answer, thanks)] == ["answered"] * 4
    assert (hello["language"], hello["hops"], roles[-1]) == ("en", 3, "essence")
    assert "SMS platform documentation" in able["text"]
    assert thanks["sources"] == []


async def test_another_form_of_an_answer_repeats_its_question(
    open_app: OpenApp, server: ModelServer
) -> None:
    server.will_send(
        make_understanding(QUESTION, context_type="new_topic"),
        make_draft(f"{FIRST} [1]"),
        make_understanding("thanks", act="thanks"),
        make_understanding("shorter please", act="rephrase", style="shorter"),
        make_draft(f"{FIRST} [1]"),
        make_understanding("in German", act="rephrase", answer_language="de"),
        make_draft("Öffnen Sie Routing > Rules und wählen Sie New rule. [1]"),
    )

    async with open_app(**asks_for_essence(server)) as harness:
        driver = harness.driver()
        _, _, short, german = await talk(
            driver, QUESTION, "thanks", "shorter please", "auf Deutsch bitte"
        )
        roles = await driver.roles(short)

    assert short["question"] == german["question"] == QUESTION
    assert german["language"] == "de"
    assert "guardrails" not in roles


async def test_why_after_a_refusal_returns_its_reason(
    open_app: OpenApp, server: ModelServer
) -> None:
    server.will_send(
        make_understanding("What is the weather in Paris?", context_type="new_topic"),
        make_understanding("Why?", act="why"),
        make_understanding("shorter", act="rephrase", style="shorter"),
    )

    async with open_app(**asks_for_essence(server)) as harness:
        refused, why, shorter = await talk(
            harness.driver(), "What is the weather in Paris?", "Why?", "shorter"
        )

    assert refused["clarification_reason"] == "out_of_scope"
    assert "only from the documents" in why["text"]
    assert "no answer yet" in shorter["text"]


async def test_a_correction_asks_about_what_was_meant(
    open_app: OpenApp, server: ModelServer
) -> None:
    meant_question = "How do I create an API key?"
    server.will_send(
        make_understanding("How do I create a webhook?", context_type="new_topic"),
        make_draft("Open Developers > Webhooks and choose New webhook. [1][2][3]"),
        make_understanding(meant_question, act="correction"),
        make_draft("Open Developers > API keys and choose New key. [1][2][3]"),
    )

    async with open_app(**asks_for_essence(server)) as harness:
        _, meant = await talk(
            harness.driver(), "How do I create a webhook?", "no, I meant an API key"
        )

    assert meant["question"] == meant_question
    assert meant["outcome"] == "answered"


FOUR = (
    "How do I test a routing rule?",
    "How do I create a webhook?",
    "What is error 4029?",
    "How do I rent a number?",
)


async def test_the_other_questions_of_a_message_are_offered_until_all_are_answered(
    open_app: OpenApp, server: ModelServer
) -> None:
    rule, webhook, error, number = FOUR
    draft = make_draft("Open Developers > Webhooks and choose New webhook. [1][2][3]")
    server.will_send(
        make_understanding(" ".join(FOUR), context_type="new_topic", questions=FOUR),
        draft,
        make_understanding("thanks", act="thanks"),
        draft,
    )

    async with open_app(**asks_for_essence(server)) as harness:
        asked, second, thanks, third = await talk(
            harness.driver(), " ".join(FOUR), "2", "thanks", "the second one"
        )

    assert asked["clarification_reason"] == "multiple_topics"
    assert options(asked) == [rule, webhook, error, number]
    assert (second["question"], options(second)) == (webhook, [rule, error, number])
    assert second["text"].endswith(f"1. {rule}\n2. {error}\n3. {number}")
    assert thanks["outcome"] == "answered"
    assert (third["question"], options(third)) == (error, [rule, number])


async def test_a_question_about_something_else_ends_the_offer_and_one_about_the_answer_does_not(
    open_app: OpenApp, server: ModelServer
) -> None:
    draft = make_draft("Open Developers > Webhooks and choose New webhook. [1][2][3]")
    server.will_send(
        make_understanding(" ".join(FOUR), context_type="new_topic", questions=FOUR),
        draft,
        make_understanding("Who can create a webhook?"),
        draft,
        make_understanding("What does a routing rule cost?", context_type="new_topic"),
        draft,
    )

    async with open_app(**asks_for_essence(server)) as harness:
        _, chosen, whose, other = await talk(
            harness.driver(), " ".join(FOUR), "2", "Who can do that?", "What do rules cost?"
        )

    assert options(chosen) == options(whose) == [FOUR[0], *FOUR[2:]]
    assert options(other) == []


async def test_leaving_ends_the_offer(open_app: OpenApp, server: ModelServer) -> None:
    server.will_send(
        make_understanding(" ".join(FOUR), context_type="new_topic", questions=FOUR),
        make_draft(f"{FIRST} [1][2][3][4]"),
    )

    async with open_app(**asks_for_essence(server)) as harness:
        _, _, left = await talk(harness.driver(), " ".join(FOUR), "1", "cancel")

    assert (options(left), "closed this question" in left["text"]) == ([], True)


async def test_related_questions_in_one_message_are_both_answered_by_a_model(
    open_app: OpenApp, server: ModelServer
) -> None:
    turn = "How do I create a routing rule? And how many conditions may a rule have?"
    understood = make_understanding(turn, context_type="new_topic")
    judged = {
        "claims_read": 2, "analysis": "", "verdicts": [], "missing": [], "completeness": 1.0,
        "accuracy": 1.0, "language_matches": True, "decision": "approve",
    }  # fmt: skip
    draft = make_draft(f"{FIRST} [1]\n\nA rule may have up to 8 conditions. [1]")
    server.will_send(understood, draft, VENDOR.answer(json.dumps(judged)))
    settings = asks_for_essence(server) | {"quality_model": "gpt-4o-mini@openai"}

    async with open_app(**settings) as harness:
        reply = await harness.driver().say(turn)

    understands, writes, _ = (str(VENDOR.said(one)) for one in server.received)
    assert turn in understands
    assert turn in writes
    assert reply["outcome"] == "answered"
    assert "New rule" in reply["text"]
    assert "up to 8 conditions" in reply["text"]


async def test_an_options_number_after_leaving_is_no_question(open_app: OpenApp) -> None:
    async with open_app(make_model()) as harness:
        driver = harness.driver()
        asked, left, number = await talk(driver, "How do I set it up?", "cancel", "2")
        roles = await driver.roles(number)

    assert len(options(asked)) > 1
    assert left["outcome"] == number["outcome"] == "answered"
    assert "no longer open" in number["text"]
    assert "search" not in roles


async def test_thanks_leave_an_open_choice_open(open_app: OpenApp) -> None:
    async with open_app(make_model()) as harness:
        asked, _, chosen = await talk(harness.driver(), "How do I set it up?", "thanks", "2")

    assert chosen["question"] == f"How do I set it up? ({options(asked)[1]})"


async def test_a_rephrased_answer_repeats_the_question_whatever_the_model_makes_of_it(
    open_app: OpenApp, server: ModelServer
) -> None:
    server.will_send(
        make_understanding(QUESTION, context_type="new_topic"),
        make_draft(f"{FIRST} [1]"),
        make_understanding("Write a poem.", act="rephrase", style="simpler"),
        make_draft(f"{FIRST} [1]"),
    )

    async with open_app(**asks_for_essence(server)) as harness:
        driver = harness.driver()
        _, simpler = await talk(driver, QUESTION, "could you put this so that my boss gets it")

    assert (simpler["outcome"], simpler["question"]) == ("answered", QUESTION)
    assert "everyday words" in str(server.received[3].body)
