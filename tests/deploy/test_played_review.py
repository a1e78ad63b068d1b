"""A review that was played: an honest model read the prompts, and its answers are replayed.

The contract is in other words than the law, and breaks three of its articles and leaves out two.
"""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakeredis import FakeServer

from agents.review.report.layout import lay_out
from agents.review.report.report import ReviewReport
from broker.embedded.endpoint import Endpoint
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import Knowledge, make_searcher, open_index
from gateway.reviewing.job_order import JobOrder
from knowledge.embedding import Embedder
from knowledge.ingestion_report import PlainReport
from llm.conversations.turns import ModelMessage, ToolConversation
from llm.tasks.specialists import (
    classifier,
    compliance,
    gap_synthesizer,
    report_generator,
    requirement_extractor,
    risk_verifier,
)
from tests.support.app_harness import Fields, PartlyScriptedModel, run_app, settings_of
from tests.support.reviewing_model import synthesize, write

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent.parent / "recordings" / "reviews"
OUTPUTS: dict[str, list[Any]] = json.loads((FOLDER / "outputs.json").read_text("utf-8"))
EXPECTED: dict[str, str] = json.loads((FOLDER / "expected.json").read_text("utf-8"))
LAW = "Cold Chain Act"


def replay(task: Any) -> Any:
    """Answer with what was recorded for a task; ids of documents are those of this desk."""

    def answer(given: Any) -> Any:
        is_talk = isinstance(given, ToolConversation)
        inputs = given.prompt if is_talk else given
        outputs = [task.Output.model_validate(one) for one in OUTPUTS[task.TASK.name]]
        output: Any = choose(outputs, inputs) if task is compliance else outputs[0]
        if task is requirement_extractor:
            output = rename(output, inputs)
        return ModelMessage(text=output.model_dump_json()) if is_talk else output

    return answer


def choose(outputs: list[compliance.Output], inputs: compliance.Inputs) -> compliance.Output:
    if inputs.direction == "clauses":
        return next(one for one in outputs if one.readings)
    wanted = {one.id for one in inputs.requirements}
    return next(one for one in outputs if wanted == {each.requirement_id for each in one.verdicts})


def rename(
    output: requirement_extractor.Output, inputs: requirement_extractor.Inputs
) -> requirement_extractor.Output:
    ids = {one.id.rpartition("#")[2]: one.id for one in inputs.units}
    return output.model_copy(
        update={
            "checklist": tuple(
                one.model_copy(
                    update={"source_section": ids[one.source_section.rpartition("#")[2]]}
                )
                for one in output.checklist
            )
        }
    )


@pytest.fixture(scope="module")
def reply(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Fields:
    """The reply of the desk to the review."""
    return asyncio.run(review(tmp_path_factory.mktemp("played"), embedder))


async def review(folder: Path, embedder: Embedder) -> Fields:
    settings = settings_of(folder, way="specialists", domain_scope="transport of medicines")
    pages = [FOLDER / "law.md", FOLDER / "contract.md"]
    await run_ingestion(settings, pages, PlainReport(lambda _line: None))
    index = await open_index(settings, embedder)
    knowledge = Knowledge(index, embedder, make_searcher(settings, index, embedder))
    tasks = (
        classifier, compliance, gap_synthesizer, report_generator, requirement_extractor,
        risk_verifier,
    )  # fmt: skip
    script = {task.TASK.name: [replay(task)] * 9 for task in tasks}
    model = PartlyScriptedModel(**script, synthesis=[write(synthesize)])
    played = Endpoint(url="", durable=False, played=FakeServer())
    async with run_app(settings, played, knowledge, model) as harness:
        ids = {one.title: one.id for one in await knowledge.library.list_documents()}
        law = ids.pop(LAW)
        order = JobOrder(
            way="specialists", payload={"review": {"documents": [*ids.values()], "against": [law]}}
        )
        asked = harness.driver().message("Review the agreement against the Cold Chain Act")
        reply = dict(await harness.desk.ask(replace(asked, order=order)))
    await index.close()
    return reply


def test_every_article_gets_the_verdict_that_a_person_gave_it_before(reply: Fields) -> None:
    report = ReviewReport.model_validate(reply["review_report"]["report"])

    found: dict[str, set[str]] = {}
    for one in report.requirements:
        found.setdefault(one.law.heading, set()).add(one.status)

    assert {name: {status} for name, status in EXPECTED.items()} == found
    assert report.counts == {
        "requirements": 14, "compliant": 9, "violations": 3, "gaps": 2, "undecided": 0
    }  # fmt: skip
    assert "errors" not in reply


def test_each_finding_has_the_words_of_both_sides_and_one_recommendation(
    reply: Fields,
) -> None:
    report = ReviewReport.model_validate(reply["review_report"]["report"])
    law, contract = ((FOLDER / name).read_text("utf-8") for name in ("law.md", "contract.md"))

    assert [one.law.heading for one in report.findings][:2] == [
        "Article 5 Other carriers", "Article 3 Notice"
    ]  # fmt: skip
    assert all(one.law.words in law for one in report.requirements)
    evidence = [place for one in report.requirements for place in one.evidence]
    assert len(evidence) == 12
    assert all(one.words in contract and one.file == "contract.md" for one in evidence)
    assert all(one.evidence for one in report.findings if one.status == "VIOLATION")
    assert all(one.closest for one in report.findings if one.status == "GAP")
    printed = "\n".join(one.text for one in lay_out(report).parts[5].items)
    assert all(printed.count(one.recommendation) == 1 for one in report.findings)
    [insurance] = [one for one in report.findings if "Insurance" in one.law.heading]
    assert insurance.comparisons == (
        'document "insurer stands in with two million euros" < rule "of at least EUR 5,000,000"',
    )


def test_a_clause_that_permits_later_what_an_earlier_one_forbids_is_found(
    reply: Fields,
) -> None:
    report = ReviewReport.model_validate(reply["review_report"]["report"])

    [carriers] = [one for one in report.findings if "Other carriers" in one.law.heading]

    assert [one.heading for one in carriers.evidence] == ["12 Busy weeks"]
    assert [one.kind for one in report.gaps] == ["consistency"]
    assert [one.heading for one in report.gaps[0].places] == ["6 Who drives", "12 Busy weeks"]
