"""An answer of the owner goes out word for word to who asks the same, and to nobody else."""

from dataclasses import replace
from pathlib import Path

import pytest

from envelope.verified import CitedPage, VerifiedAnswer
from knowledge.embedding import Embedder
from llm.errors import ModelUnavailable
from llm.tasks.question import MatchVerifiedOutput, ScopeOutput
from memory.console_state import RedisVerifiedAnswers
from records.verified_finder import put_answers
from tests.desk.conftest import OpenApp
from tests.support import restricted_documents
from tests.support.app_harness import AppHarness, PartlyScriptedModel, options

pytestmark = pytest.mark.slow

QUESTION = "How long are delivery reports kept?"
OTHER_WORDS = "For how long do you keep the reports of deliveries?"
ANSWER = VerifiedAnswer(
    id="a1",
    question=QUESTION,
    answer="For **400 days**, by contract [1].",
    pages=(
        CitedPage(
            document_id="sms_platform/reporting/export-reports", title="Reports", path="reports.md"
        ),
    ),
)
WITHIN = ScopeOutput(verdict="within", confidence=0.9, analysis="")


async def verify(harness: AppHarness, *answers: VerifiedAnswer) -> None:
    name = (harness.settings.tenant, harness.settings.assistant)
    await RedisVerifiedAnswers(harness.client).put(*name, put_answers(answers))


def match(number: int) -> MatchVerifiedOutput:
    return MatchVerifiedOutput(analysis="", number=number)


async def test_a_question_that_a_model_finds_to_mean_the_same_gets_the_answer_of_the_owner(
    open_app: OpenApp,
) -> None:
    model = PartlyScriptedModel(match_verified=[match(1)])
    async with open_app(model) as harness:
        await verify(harness, ANSWER)
        driver = harness.driver()
        reply = await driver.say(OTHER_WORDS)
        roles = await driver.roles(reply)

    assert reply["outcome"] == "answered"
    assert reply["answered_by"] == "verified"
    assert str(reply["text"]).startswith("Verified answer: the owner of this desk has answered")
    assert str(reply["text"]).endswith("For **400 days**, by contract [1].")
    assert [source["title"] for source in reply["sources"]] == ["Reports"]
    assert roles[-1] == "guardrails"
    (asked,) = model.find_asked("match_verified")
    assert [(item.number, item.question) for item in asked.answered] == [(1, QUESTION)]


async def test_a_question_that_means_something_else_is_answered_from_the_documents(
    open_app: OpenApp,
) -> None:
    model = PartlyScriptedModel(match_verified=[match(0)], scope=[WITHIN])
    async with open_app(model) as harness:
        await verify(harness, ANSWER)
        reply = await harness.driver().say(OTHER_WORDS)

    assert reply["answered_by"] != "verified"
    assert "400 days" not in str(reply["text"])


async def test_a_model_that_fails_decides_nothing_and_the_desk_goes_on(open_app: OpenApp) -> None:
    model = PartlyScriptedModel(match_verified=[ModelUnavailable("away")], scope=[WITHIN])
    async with open_app(model) as harness:
        await verify(harness, ANSWER)
        driver = harness.driver()
        reply = await driver.say(OTHER_WORDS)
        (written,) = await driver.read_writes(reply, "guardrails")

    assert reply["answered_by"] != "verified"
    assert "away" in written["model_error"]


async def test_without_a_model_the_same_words_are_the_same_question(open_app: OpenApp) -> None:
    async with open_app() as harness:
        await verify(harness, ANSWER)
        reply = await harness.driver().say("how long are delivery reports kept")

    assert reply["answered_by"] == "verified"


async def test_without_a_model_the_person_is_asked_whether_it_is_meant(open_app: OpenApp) -> None:
    async with open_app() as harness:
        await verify(harness, ANSWER)
        driver = harness.driver()
        asked = await driver.say(OTHER_WORDS)
        reply = await driver.say("1")

    assert asked["outcome"] == "clarification"
    assert options(asked) == [QUESTION]
    assert "Did you mean:" in str(asked["text"])
    assert reply["answered_by"] == "verified"


async def test_a_user_who_meant_another_question_is_not_asked_again(open_app: OpenApp) -> None:
    async with open_app() as harness:
        await verify(harness, ANSWER)
        driver = harness.driver()
        await driver.say(OTHER_WORDS)
        reply = await driver.say("How long are the reports of deliveries in my account?")

    assert "400 days" not in str(reply["text"])
    assert QUESTION not in options(reply)


@pytest.mark.parametrize(
    ("document", "groups", "is_given"),
    [
        ("docs/leave", (), True),
        ("docs/bonus", (), False),
        ("docs/bonus", ("hr",), True),
        ("docs/bonus", ("sales",), False),
        ("docs/removed", ("hr",), False),
    ],
)
async def test_an_answer_is_given_by_the_rights_that_its_page_has_now(
    document: str, groups: tuple[str, ...], is_given: bool, restricted: Path, embedder: Embedder
) -> None:
    """When the answer was written, everybody could read its page."""
    page = CitedPage(document_id=document, title="Page", groups=())
    async with restricted_documents.open_app(restricted, embedder) as harness:
        await verify(harness, ANSWER.model_copy(update={"pages": (page,)}))
        driver = harness.driver()
        message = replace(driver.message(QUESTION), groups=groups)
        reply = await harness.desk.ask(message)

    assert ("400 days" in str(reply["text"])) is is_given
    assert (reply.get("answered_by") == "verified") is is_given


async def test_a_question_about_something_else_costs_no_call(open_app: OpenApp) -> None:
    model = PartlyScriptedModel(match_verified=[], scope=[WITHIN])
    async with open_app(model) as harness:
        await verify(harness, ANSWER)
        await harness.driver().say("How do I rotate a signing secret?")

    assert model.find_asked("match_verified") == []
