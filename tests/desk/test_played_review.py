"""Reviews that were played: an honest model read the prompts, and its answers are replayed.

Each contract is in other words than its law, one of them in another language as well, and breaks
three of its articles and leaves out two.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agents.review.report_layout import lay_out
from agents.review.review_report import ReviewReport, decode_report
from broker.keys import record_of
from deploy.assembly.ingestion_run import run_ingestion
from gateway.desk import JobOrder
from knowledge.embedding import Embedder
from knowledge.ingestion_report import PlainReport
from llm.port import ModelMessage, ToolConversation
from llm.tasks.review import (
    CLASSIFIER,
    COMPLIANCE,
    GAP_SYNTHESIZER,
    REPORT_GENERATOR,
    REQUIREMENT_EXTRACTOR,
    RISK_VERIFIER,
    ClassifierInputs,
    ClassifierOutput,
    ComplianceInputs,
    ComplianceOutput,
    RequirementExtractorInputs,
    RequirementExtractorOutput,
)
from memory.work_store import RedisWorkStore
from tests.support.app_harness import (
    Fields,
    PartlyScriptedModel,
    open_knowledge_with,
    run_app,
    settings_of,
)
from tests.support.empty_redis import play_redis
from tests.support.reviewing_model import synthesize, write

pytestmark = pytest.mark.slow

RECORDINGS = Path(__file__).parent.parent / "recordings"


@dataclass(frozen=True, slots=True)
class PlayedReview:
    """The folder of a recording, the title of its law, and what was asked."""

    name: str
    law: str
    contract: str
    scope: str
    question: str

    @property
    def folder(self) -> Path:
        return RECORDINGS / self.name

    def read_json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text("utf-8"))

    def read_texts(self) -> tuple[str, str]:
        law, contract = (self.folder / name for name in ("law.md", self.contract))
        return law.read_text("utf-8"), contract.read_text("utf-8")


ENGLISH = PlayedReview(
    "reviews",
    "Cold Chain Act",
    "contract.md",
    "transport of medicines",
    "Review the agreement against the Cold Chain Act",
)
GERMAN = PlayedReview(
    "german_review",
    "Lift Safety Act",
    "vertrag.md",
    "safety and maintenance of lifts",
    "Prüfe den Vertrag nach dem Lift Safety Act",
)


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The reply of the desk, and the report, which is stored apart where it is long."""

    fields: Fields
    report: ReviewReport


def replay(task: Any, recorded: Mapping[str, list[Any]]) -> Any:
    """Answer with what was recorded for a task; ids of documents are those of this desk."""

    def answer(given: Any) -> Any:
        is_talk = isinstance(given, ToolConversation)
        inputs = given.prompt if is_talk else given
        outputs = [task.output.model_validate(item) for item in recorded[task.name]]
        output: Any = choose(outputs, inputs) if task is COMPLIANCE else outputs[0]
        if task is REQUIREMENT_EXTRACTOR:
            output = rename(output, inputs)
        if task is CLASSIFIER:
            output = rename_documents(output, inputs)
        return ModelMessage(text=output.model_dump_json()) if is_talk else output

    return answer


def choose(outputs: list[ComplianceOutput], inputs: ComplianceInputs) -> ComplianceOutput:
    if inputs.direction == "clauses":
        return next(output for output in outputs if output.readings)
    wanted = {requirement.id for requirement in inputs.requirements}
    return next(
        output for output in outputs if wanted == {each.requirement_id for each in output.verdicts}
    )


def rename(
    output: RequirementExtractorOutput, inputs: RequirementExtractorInputs
) -> RequirementExtractorOutput:
    ids = {unit.id.rpartition("#")[2]: unit.id for unit in inputs.units}
    return output.model_copy(
        update={
            "checklist": tuple(
                requirement.model_copy(
                    update={"source_section": ids[requirement.source_section.rpartition("#")[2]]}
                )
                for requirement in output.checklist
            )
        }
    )


def rename_documents(output: ClassifierOutput, inputs: ClassifierInputs) -> ClassifierOutput:
    ids = list(dict.fromkeys(document.id for document in inputs.documents))
    named = zip(output.documents, ids, strict=True)
    return output.model_copy(
        update={
            "documents": tuple(
                document.model_copy(update={"document_id": name}) for document, name in named
            )
        }
    )


@pytest.fixture(scope="module")
def reply(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Reviewed:
    """The reply of the desk to the review."""
    return asyncio.run(review(ENGLISH, tmp_path_factory.mktemp("played"), embedder))


@pytest.fixture(scope="module")
def german(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Reviewed:
    """The reply of the desk to the review of a German contract by an English law."""
    return asyncio.run(review(GERMAN, tmp_path_factory.mktemp("german"), embedder))


async def review(played: PlayedReview, folder: Path, embedder: Embedder) -> Reviewed:
    settings = settings_of(folder, way="specialists", domain_scope=played.scope)
    pages = [played.folder / "law.md", played.folder / played.contract]
    await run_ingestion(settings, pages, PlainReport(lambda _line: None))
    tasks = (
        CLASSIFIER, COMPLIANCE, GAP_SYNTHESIZER, REPORT_GENERATOR, REQUIREMENT_EXTRACTOR,
        RISK_VERIFIER,
    )  # fmt: skip
    recorded = played.read_json("outputs.json")
    script = {task.name: [replay(task, recorded)] * 9 for task in tasks}
    model = PartlyScriptedModel(**script, synthesis=[write(synthesize)])
    async with (
        open_knowledge_with(settings, embedder) as knowledge,
        run_app(settings, play_redis(), knowledge, model) as harness,
    ):
        ids = {document.title: document.id for document in await knowledge.library.list_documents()}
        law = ids.pop(played.law)
        order = JobOrder(
            way="specialists", payload={"review": {"documents": [*ids.values()], "against": [law]}}
        )
        asked = replace(harness.driver().message(played.question), order=order)
        reply: dict[str, Any] = dict(await harness.desk.ask(asked))
        read = RedisWorkStore(
            harness.client, shards=settings.shards, record_of=record_of(settings.shards)
        ).get
        reference = reply["review_report"]["reference"]
        report = decode_report(await read(harness.desk.question(asked), reference) or b"")
    assert isinstance(report, ReviewReport)
    return Reviewed(reply, report)


def list_statuses(report: ReviewReport) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for requirement in report.requirements:
        found.setdefault(requirement.law.heading, set()).add(requirement.status)
    return found


def list_expected(played: PlayedReview) -> dict[str, set[str]]:
    return {name: {status} for name, status in played.read_json("expected.json").items()}


def test_every_article_gets_the_verdict_that_a_person_gave_it_before(reply: Reviewed) -> None:
    report = reply.report

    assert list_statuses(report) == list_expected(ENGLISH)
    assert report.counts == {
        "requirements": 14, "compliant": 9, "violations": 3, "gaps": 2, "undecided": 0
    }  # fmt: skip
    assert "errors" not in reply.fields


def test_each_finding_has_the_words_of_both_sides_and_one_recommendation(reply: Reviewed) -> None:
    report = reply.report
    law, contract = ENGLISH.read_texts()

    assert [finding.law.heading for finding in report.findings][:2] == [
        "Article 5 Other carriers", "Article 3 Notice"
    ]  # fmt: skip
    assert all(requirement.law.words in law for requirement in report.requirements)
    evidence = [place for requirement in report.requirements for place in requirement.evidence]
    assert len(evidence) == 12
    assert all(
        quoted_place.words in contract and quoted_place.file == "contract.md"
        for quoted_place in evidence
    )
    assert all(finding.evidence for finding in report.findings if finding.status == "VIOLATION")
    assert all(finding.closest for finding in report.findings if finding.status == "GAP")
    printed = "\n".join(item.text for item in lay_out(report).parts[5].items)
    assert all(printed.count(finding.recommendation) == 1 for finding in report.findings)
    [insurance] = [finding for finding in report.findings if "Insurance" in finding.law.heading]
    assert insurance.comparisons == (
        'document "insurer stands in with two million euros" < rule "of at least EUR 5,000,000"',
    )


def test_a_clause_that_permits_later_what_an_earlier_one_forbids_is_found(reply: Reviewed) -> None:
    report = reply.report

    [carriers] = [finding for finding in report.findings if "Other carriers" in finding.law.heading]

    assert [place.heading for place in carriers.evidence] == ["12 Busy weeks"]
    assert [gap.kind for gap in report.gaps] == ["consistency"]
    assert [place.heading for place in report.gaps[0].places] == ["6 Who drives", "12 Busy weeks"]


def test_a_german_contract_is_judged_by_an_english_law(german: Reviewed) -> None:
    report = german.report
    law, contract = GERMAN.read_texts()

    assert list_statuses(report) == list_expected(GERMAN)
    assert report.language == "de"
    assert all(requirement.law.words in law for requirement in report.requirements)
    evidence = [place for requirement in report.requirements for place in requirement.evidence]
    assert all(place.words in contract for place in evidence)
    assert all(finding.recommendation for finding in report.findings)
    assert [document.classes["document_type"] for document in report.documents] == [
        "contract",
        "law",
    ]
    assert {section.state.value for section in report.sections.values()} == {"result"}
    assert "errors" not in german.fields


def test_a_clause_that_permits_what_an_article_forbids_is_found_far_from_its_subject(
    german: Reviewed,
) -> None:
    report = german.report

    [release] = [
        finding for finding in report.findings if "Return to service" in finding.law.heading
    ]

    assert [place.heading for place in release.evidence] == ["11 Treppensteigen vermeiden"]
    [contradiction] = report.gaps
    _, contract = GERMAN.read_texts()
    assert all(place.words and place.words in contract for place in contradiction.places)
    assert {place.heading for place in contradiction.places} == {
        "4 Wenn jemand Hilfe braucht", "5 Steckengeblieben"
    }  # fmt: skip


def test_the_answer_has_what_is_fulfilled_and_what_contradicts_within_the_document(
    german: Reviewed,
) -> None:
    text = str(german.fields["text"])

    [line] = [line for line in text.splitlines() if "Article 12 Recordings" in line]
    assert "12 Vertraulichkeit des Dokuments sagt" in line
    assert list_cited(german, line) >= {"law.md", "vertrag.md"}
    assert "5 Steckengeblieben" in text


def test_a_gap_cites_the_article_the_passages_that_were_judged_and_the_verdict(
    german: Reviewed,
) -> None:
    text = str(german.fields["text"])

    lines = [line for line in text.splitlines() if "ist nicht erfüllt" in line]

    assert len(lines) == len(
        [requirement for requirement in german.report.requirements if requirement.status == "GAP"]
    )
    for line in lines:
        assert list_cited(german, line) >= {"law.md", "vertrag.md", ""}


def list_cited(reviewed: Reviewed, line: str) -> set[str]:
    """Return the files of the sources that a line of the answer cites; empty for the review."""
    sources = {field["number"]: field for field in reviewed.fields["sources"]}
    return {sources[int(match)]["path"] or "" for match in re.findall(r"\[(\d+)\]", line)}
