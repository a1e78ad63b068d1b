"""A whole desk reviews the contracts of the example: with a scripted model, and without one."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from agents.review.report_layout import lay_out
from agents.review.review_report import ReviewReport
from cli.commands.trace import trace_lines
from cli.printing import list_operator_notes
from envelope.specialists import SpecialistName
from gateway.desk import JobOrder
from llm.errors import AccessDenied, ModelError, RateLimited, Refused, UnreadableOutput
from llm.tasks.review import Recommendation, ReportGeneratorOutput
from manager.flows import NEWEST
from tests.desk.conftest import OpenReviews
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import EXAMPLES, AppHarness, Fields, judge_all, options
from tests.support.model_server import ModelServer, Received, Response, running_server
from tests.support.reviewing_model import ANSWERS, REPEATED, ReviewingModel, write

pytestmark = pytest.mark.slow


ASKED = "Does the {} contract comply with the Register Data Protection Act?"


FAULTY, CLEAN = ASKED.format("Brandt"), ASKED.format("Lindqvist")


def count(reply: Fields) -> dict[str, int]:
    """The verdicts of a review by their status."""
    names = ("requirements", "compliant", "violations", "gaps")
    return {name: reply["verdicts"][name] for name in names}


def read_report(report: ReviewReport) -> list[str]:
    """The printed lines of a report."""
    parts = lay_out(report).parts
    return [text.text for part in parts for text in (*part.paragraphs, *part.items)]


async def review_faulty(harness: AppHarness, **review: JsonValue) -> Fields:
    """Return the reply to a review of the faulty contract by all specialists, or those named."""
    folder = "data_protection_review"
    asked: dict[str, JsonValue] = {
        "documents": [f"{folder}/faulty_contract"],
        "against": [f"{folder}/law"],
        **review,
    }
    order = JobOrder(way="specialists", payload={"review": asked})
    message = replace(harness.driver().message(FAULTY), order=order)
    return dict(await harness.desk.ask(message))


async def test_three_violations_and_two_gaps_are_found_with_their_places(
    open_reviews: OpenReviews,
) -> None:
    async with open_reviews(ReviewingModel()) as harness:
        reply = await harness.driver().say(FAULTY)

    assert (reply["outcome"], reply["way"]) == ("answered", "specialists")
    assert reply["agent_sequence"] == ["extractor", "requirement_extractor", "compliance"]
    assert count(reply) == {"requirements": 8, "compliant": 3, "violations": 3, "gaps": 2}
    for phrase in ("within 14 days", "may engage a subcontractor", "may sell register data"):
        assert phrase in reply["text"]
    for phrase in ("train its employees", "record of all disclosures"):
        assert phrase in reply["text"]
    cited = {source["anchor"] for source in reply["sources"]}
    assert {"article-3-notice-of-a-breach", "3-incidents", "article-8-training"} <= cited
    assert reply["citation_check"]["valid"]


async def test_a_model_that_is_busy_for_a_moment_costs_no_verdict_no_risk_and_no_report(
    open_reviews: OpenReviews,
) -> None:
    tasks = ("requirement_extractor", "compliance", "risk_verifier", "report_generator")
    busy = RateLimited("status 429", retry_after_seconds=0.05)
    model = ReviewingModel(**{name: [busy, busy, *[ANSWERS[name]] * REPEATED] for name in tasks})

    async with open_reviews(model) as harness:
        reply = await review_faulty(harness)

    assert count(reply) == {"requirements": 8, "compliant": 3, "violations": 3, "gaps": 2}
    report = ReviewReport.model_validate(reply["review_report"]["report"])
    assert report.undecided == ()
    assert all(finding.risk is not None for finding in report.findings)
    assert "errors" not in reply or reply["errors"] == []


@pytest.mark.parametrize(
    "error",
    [
        Refused("the vendor refuses this text"),
        UnreadableOutput("no JSON for this text"),
        AccessDenied("403: this text is blocked"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_requirement_that_no_model_judges_costs_no_other_its_verdict_and_says_why(
    open_reviews: OpenReviews, error: ModelError
) -> None:
    calls: list[int] = []

    def refuse_training(given: Any) -> Any:
        inputs = getattr(given, "prompt", given)
        if inputs.direction == "clauses":
            return ANSWERS["compliance"](given)
        calls.append(len(inputs.requirements))
        if any("train" in requirement.statement for requirement in inputs.requirements):
            raise error
        return ANSWERS["compliance"](given)

    model = ReviewingModel(compliance=[refuse_training] * REPEATED)
    async with open_reviews(model) as harness:
        reply = await review_faulty(harness)

    report = ReviewReport.model_validate(reply["review_report"]["report"])
    [undecided] = report.undecided
    assert "train" in undecided.requirement
    assert str(error) in undecided.reason
    assert str(error) in reply["text"]
    assert count(reply) == {"requirements": 8, "compliant": 3, "violations": 3, "gaps": 1}
    assert calls == [8, 4, 4, 2, 2, 1, 1]


async def test_a_review_is_written_again_once_where_a_judge_always_wants_more_sources(
    open_reviews: OpenReviews,
) -> None:
    model = ReviewingModel(judge=[judge_all("research")] * REPEATED)
    async with open_reviews(model) as harness:
        reply = await harness.driver().say(CLEAN)

    paid = {name: len(model.find_asked(name)) for name in ("synthesis", "judge")}
    assert paid == {"synthesis": 2, "judge": 2}
    assert (reply["outcome"], reply["termination_reason"]) == ("answered", "no_better_answer")


async def test_without_verdicts_advice_about_other_requirements_makes_no_section_complete(
    open_reviews: OpenReviews,
) -> None:
    def refuse(_given: Any) -> Any:
        raise AccessDenied("403: not with this key")

    advice = Recommendation(requirement_id="REQ-001", advice="Change it.")
    output = ReportGeneratorOutput(summary=("It was read.",), recommendations=(advice,))
    model = ReviewingModel(
        compliance=[refuse] * REPEATED, report_generator=[write(lambda _inputs: output)] * REPEATED
    )
    async with open_reviews(model) as harness:
        reply = await review_faulty(harness)

    report = ReviewReport.model_validate(reply["review_report"]["report"])
    assert report.sections["recommendations"].state == "failed"
    assert report.sections["recommendations"].specialist == "compliance"
    [section] = [part for part in lay_out(report).parts if part.heading.startswith("6.")]
    assert "403: not with this key" in section.paragraphs[0].text


@pytest.mark.parametrize(
    "specialist", ["classifier", "risk_verifier", "gap_synthesizer", "report_generator"]
)
async def test_a_specialist_that_fails_is_named_in_its_section_and_the_others_have_theirs(
    open_reviews: OpenReviews, specialist: str
) -> None:
    model = ReviewingModel(**{specialist: [Refused("the vendor refuses")] * REPEATED})
    async with open_reviews(model) as harness:
        reply = await review_faulty(harness)

    report = ReviewReport.model_validate(reply["review_report"]["report"])
    failed = [name for name, section in report.sections.items() if section.state == "failed"]
    own = {section.specialist: name for name, section in report.sections.items()}[specialist]
    assert report.sections[own].state in ("failed", "incomplete")
    assert "the vendor refuses" in report.sections[own].reason
    assert set(failed) <= {own}
    assert count(reply)["violations"] == 3
    printed = "\n".join(read_report(report))
    assert f"{specialist}: the model gave no answer" in printed, "the printed report names it"


async def test_a_review_that_a_model_refuses_asks_little_again_and_its_risks_are_unknown_not_none(
    open_reviews: OpenReviews,
) -> None:
    asked: list[str] = []

    def refuse(given: Any) -> Any:
        asked.append(getattr(given, "prompt", given).direction)
        raise Refused("the vendor refuses")

    model = ReviewingModel(compliance=[refuse] * REPEATED)
    async with open_reviews(model) as harness:
        reply = await review_faulty(harness)

    assert asked == ["clauses"] * 7 + ["requirements"] * 7, "the whole, its halves, its quarters"

    report = ReviewReport.model_validate(reply["review_report"]["report"])
    states = {name: section.state.value for name, section in report.sections.items()}
    assert states == {
        "findings": "failed",
        "risks": "failed",
        "gaps": "nothing",
        "citations": "failed",
        "recommendations": "failed",
        "classes": "result",
    }


async def test_a_specialist_that_was_not_requested_is_not_reported_as_nothing_found(
    open_reviews: OpenReviews,
) -> None:
    async with open_reviews(ReviewingModel()) as harness:
        reply = await review_faulty(harness, specialists=["compliance", "report_generator"])

    report = ReviewReport.model_validate(reply["review_report"]["report"])
    states = {name: section.state.value for name, section in report.sections.items()}
    assert states["risks"] == states["gaps"] == states["citations"] == "not_requested"
    assert (states["findings"], states["recommendations"]) == ("result", "result")


async def test_without_a_model_every_unit_of_the_law_is_shown_and_nothing_is_judged(
    open_reviews: OpenReviews,
) -> None:
    async with open_reviews() as harness:
        driver = harness.driver()
        folder = "data_protection_review"
        review: dict[str, JsonValue] = {
            "documents": [f"{folder}/faulty_contract"],
            "against": [f"{folder}/law"],
        }
        order = JobOrder(way="specialists", payload={"review": review})
        reply: Fields = dict(await harness.desk.ask(replace(driver.message(FAULTY), order=order)))
        journal = await driver.journal(reply)

    assert reply["outcome"] == "answered"
    assert reply["text"].startswith("No model is in use")
    assert count(reply) == {"requirements": 9, "compliant": 0, "violations": 0, "gaps": 0}
    assert reply["verdicts"]["confidence"] is None
    report = ReviewReport.model_validate(reply["review_report"]["report"])
    law = (EXAMPLES / "data_protection_review" / "law.md").read_text("utf-8")
    _introduction, *sentences = (word for word in law.split("\n\n") if not word.startswith("#"))
    assert [requirement.law.words for requirement in report.requirements] == [
        " ".join(sentence.split()) for sentence in sentences
    ]
    assert {requirement.status for requirement in report.requirements} == {"UNDECIDED"}
    assert all(1 <= len(requirement.closest) <= 3 for requirement in report.requirements)
    closest = {
        requirement.law.heading: requirement.closest[0].heading
        for requirement in report.requirements
    }
    assert closest["Article 5 Sale"] == "5 Use of data"
    assert not any(
        requirement.risk or requirement.reason or requirement.confidence
        for requirement in report.requirements
    )
    assert not report.is_judged
    asked = {entry.fields["task"] for entry in journal if entry.kind == "model_call"}
    assert asked.isdisjoint(SpecialistName)


async def test_without_a_model_other_ways_say_how_a_review_is_asked_for(
    open_reviews: OpenReviews,
) -> None:
    async with open_reviews(way="auto") as harness:
        reply = await harness.driver().say(FAULTY)
        [note] = list_operator_notes(reply, "the index")

    assert (reply["way"], reply["answered_by"]) == ("search", "search")
    assert "/v1/reviews" in reply["triage"]["reasoning"]
    assert "refdesk review" in note


async def test_a_step_that_had_nothing_to_do_is_not_reported_as_skipped_work(
    open_reviews: OpenReviews,
) -> None:
    model = ReviewingModel()
    model.name = "idle@example"  # claimed by a step that names its model and has not asked it
    model.script.name = "reviewer@example"

    async with open_reviews(model) as harness:
        driver = harness.driver()
        reply = await driver.say(f"Write a report: {CLEAN}")
        asked = {
            entry.fields["task"] for entry in await driver.journal(reply) if "task" in entry.fields
        }

    assert set(reply["agent_sequence"]) == set(SpecialistName) - {SpecialistName.SYNTHESIS}
    assert asked.isdisjoint({"risk_verifier", "citation_auditor"}), "there was nothing to do"
    assert "faults" not in reply


async def test_a_clean_contract_has_no_findings(open_reviews: OpenReviews) -> None:
    async with open_reviews(ReviewingModel()) as harness:
        reply = await harness.driver().say(CLEAN)

    assert reply["outcome"] == "answered"
    assert count(reply) == {"requirements": 8, "compliant": 8, "violations": 0, "gaps": 0}
    assert "8 are fulfilled" in reply["text"]


async def test_the_reply_to_a_pause_goes_the_way_of_the_question_that_was_paused(
    open_reviews: OpenReviews,
) -> None:
    async with open_reviews(ReviewingModel(), way="search") as harness:
        driver = harness.driver()
        asked = replace(driver.message("Is it compliant?"), order=JobOrder(way="specialists"))
        paused = await harness.desk.ask(asked)
        reply = await driver.say("1")
        journal = await driver.journal(reply)
        routed = [entry.fields.get("flow") for entry in journal if entry.kind == "routed"]
        later = await driver.say("What are the fees of the Lindqvist contract?")

    assert paused["outcome"] == "clarification"
    assert (reply["outcome"], reply["way"]) == ("answered", "specialists"), options(dict(paused))
    assert "verdicts" in reply
    assert [flow for flow in routed if flow] == [NEWEST["specialists"]], "the journal says so"
    assert "way" not in later, "another question goes the way of the assistant"


VENDOR = OpenAI()


MODEL = "gpt-4o-mini@openai"


ASKED_ON_THE_WIRE = (
    "Does the Brandt contract comply with the Register Data Protection Act, and with which risk?"
)


USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


class SpecialistServer(ModelServer):
    """Answers as two models: the first calls a tool, the second does as `risk` says."""

    risk = Response(ends="never")

    def choose_response(self, received: Received) -> Response:
        said = [str(message["content"]) for message in received.body["messages"]]
        if "You compare a document with requirements" not in said[0]:
            return self.risk
        if "Go through the passages" in said[0]:
            return VENDOR.answer(json.dumps({"readings": [], "verdicts": [], "notes": []}))
        if any(message.get("role") == "tool" for message in received.body["messages"]):
            return VENDOR.answer(json.dumps({"verdicts": list_verdicts(said)}))
        return call_tool("graph_search", {"query": "subcontractor"})


def list_verdicts(said: list[str]) -> list[dict[str, Any]]:
    """Every requirement is broken by the first passage."""
    ids = sorted(set(re.findall(r"REQ-\d+", " ".join(said))))
    return [
        {"requirement_id": identifier, "status": "VIOLATION", "confidence": 0.8,
         "evidence": [{"passage": "p1"}], "reason": "as the model says"}
        for identifier in ids
    ]  # fmt: skip


def call_tool(name: str, arguments: dict[str, Any]) -> Response:
    """A message with one call of a tool."""
    call = {
        "id": "call-1",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    fields = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini"}
    return Response(body=json.dumps({**fields, "choices": [choice], "usage": USAGE}).encode())


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with running_server(SpecialistServer("")) as server:
        yield server


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """Files of two specialists with a model; all others are rules."""
    folder = tmp_path / "team"
    folder.mkdir()
    for name, tools in (("compliance", '["graph_search"]'), ("risk_verifier", "[]")):
        text = f'name = "{name}"\nmodel = "{MODEL}"\ntools = {tools}\n'
        (folder / f"{name}.toml").write_text(text, "utf-8")
    return folder


def use_models(server: ModelServer, team: Path) -> dict[str, Any]:
    """Settings by which these specialists ask the server."""
    return {
        "specialists_folder": team,
        "openai_api_key": "secret-key",
        "openai_base_url": VENDOR.base_url(server.url),
        "model_cache_seconds": 0,
        "model_timeout_seconds": 1.0,
    }


async def test_a_specialist_whose_model_hangs_is_named_and_the_others_go_on(
    open_reviews: OpenReviews, server: ModelServer, team: Path
) -> None:
    async with open_reviews(**use_models(server, team)) as harness:
        driver = harness.driver()
        reply = await driver.say(ASKED_ON_THE_WIRE)
        question = driver.desk.question(driver.message("-", reply["message_id"]))
        lines = trace_lines(question, await driver.journal(reply))

    assert (reply["outcome"], reply["way"]) == ("answered", "specialists")
    assert count(reply)["violations"] == 9, "the verdicts are those of the model"
    [error] = reply["errors"]
    assert error["specialist"] == "risk_verifier"
    assert (error["severity"], error["phase"]) == ("high", "verification")
    assert error["error_id"] in reply["text"]
    calls = {
        call["tool_name"]: call["success"] for call in reply["tool_calls"] if "agent_name" in call
    }
    assert calls["graph_search"] is True
    usage = reply["model_usage"]["by_agent"]
    assert usage["compliance"]["calls"] == 3
    assert set(usage) == {"compliance", "risk_verifier"}
    assert any(line.split()[:1] == ["compliance"] and "3 calls" in line for line in lines)
