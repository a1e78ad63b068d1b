"""Specialists with a scripted model: plans, tools, answers that are wrong, and failures."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.review.synthesis import REVIEW
from broker.values import JournalEntry
from llm.errors import ModelUnavailable, UnreadableOutput
from llm.port import ModelMessage, ToolUse
from llm.tasks.review import (
    ComplianceOutput,
    FoundGap,
    FurtherWork,
    GapSynthesizerOutput,
    SynthesisOutput,
)
from llm.tasks.search import HydeExpansionOutput, JudgeOutput, Verdict
from llm.tasks.tool_loop import TriageOutput
from tests.desk.conftest import OpenReviews
from tests.desk.test_specialists_way import FAULTY, count
from tests.support.app_harness import Fields
from tests.support.reviewing_model import ReviewingModel, compare, list_requirements
from tests.support.ticket_server import run_ticket_server, write_document

pytestmark = pytest.mark.slow

NO_READINGS = ComplianceOutput()
"""The first answer of compliance in a script: that no clause matters."""


def plan(*names: str, kind: str = "compliance") -> TriageOutput:
    """A triage that plans these specialists."""
    return TriageOutput.model_validate(
        {
            "reasoning": "a contract and a law",
            "query_type": kind,
            "complexity": 90,
            "vagueness": 0.1,
            "agent_sequence": names,
        }
    )


def list_errors(reply: Fields) -> list[tuple[str, str]]:
    """Who had an error, and which."""
    return [(error["specialist"], error["text"]) for error in reply.get("errors", [])]


def decide_all(status: str, *evidence: str) -> Any:
    """Answer with one status for every requirement, and with nothing about the clauses."""

    def answer(inputs: Any) -> ComplianceOutput:
        given = inputs.prompt if hasattr(inputs, "prompt") else inputs
        if given.direction == "clauses":
            return NO_READINGS
        return ComplianceOutput.model_validate(
            {
                "verdicts": [
                    {
                        "requirement_id": requirement.id,
                        "status": status,
                        "confidence": 0.9,
                        "evidence": [{"passage": requirement} for requirement in evidence],
                        "reason": "as the model says",
                    }
                    for requirement in given.requirements
                ]
            }
        )

    return answer


def write_decisions(status: str, *evidence: str) -> Any:
    """Write the same as the JSON text of a message."""
    decide = decide_all(status, *evidence)
    return lambda conversation: ModelMessage(text=decide(conversation).model_dump_json())


def use(tool: str, **arguments: Any) -> ToolUse:
    return ToolUse(call_id=f"{tool}-1", name=tool, arguments=arguments)


async def test_a_plan_is_cleaned_and_completed_and_the_reply_says_so_beside_its_text(
    open_reviews: OpenReviews,
) -> None:
    model = ReviewingModel(triage=[plan("compliance", "lawyer", "report_generator")])

    async with open_reviews(model) as harness:
        driver = harness.driver()
        reply = await driver.say(FAULTY)
        [planned] = await driver.read_writes(reply, "triage")

    names = ["extractor", "requirement_extractor", "compliance", "report_generator"]
    assert reply["agent_sequence"] == names == planned["agent_sequence"]
    assert reply["sequence_notes"] == [
        "'lawyer' was left out: there is no such specialist",
        "requirement_extractor was added: compliance needs it",
        "extractor was added: requirement_extractor needs it",
    ]
    assert "requirement_extractor" not in reply["text"]
    assert len(reply["review_report"]["report"]["requirements"]) == 8


def list_waves(journal: list[JournalEntry]) -> list[Any]:
    """Return the specialists that were sent off together, in order."""
    return [
        entry.fields["plan"]
        for entry in journal
        if entry.fields.get("target") == "findings" and "plan" in entry.fields
    ]


async def test_specialists_whose_inputs_are_there_work_side_by_side(
    open_reviews: OpenReviews,
) -> None:
    wanted = ("risk_verifier", "citation_auditor", "classifier")
    model = ReviewingModel(triage=[plan(*wanted)])

    async with open_reviews(model) as harness:
        driver = harness.driver()
        reply = await driver.say(FAULTY)
        journal = await driver.journal(reply)

    waves = list_waves(journal)
    assert waves == [
        ["extractor"],
        ["classifier", "requirement extractor"],
        ["compliance"],
        ["risk verifier", "citation auditor"],
        ["report generator"],
    ]


async def test_a_specialist_calls_its_tools_and_no_others(open_reviews: OpenReviews) -> None:
    calls = (use("graph_search", query="subcontractor"), use("calculator", expression="1 + 1"))
    model = ReviewingModel(
        compliance=[
            NO_READINGS,
            ModelMessage(calls=(*calls, use("ask_a_lawyer"))),
            write_decisions("VIOLATION", "p5"),
        ]
    )

    async with open_reviews(model) as harness:
        reply = await harness.driver().say(FAULTY)

    made = {call["tool_name"]: call for call in reply["tool_calls"] if "agent_name" in call}
    own = {
        name: one["error_type"] for name, one in made.items() if one["agent_name"] == "compliance"
    }
    assert own == {
        "graph_search": "success",
        "calculator": "hallucination",
        "ask_a_lawyer": "hallucination",
    }
    assert reply["outcome"] == "answered"
    assert count(reply)["violations"] == 8
    asked = model.find_asked("compliance")[2]
    assert [message.kind for message in asked.messages] == ["user", "model", "tool", "tool", "tool"]
    assert {tool.name for tool in asked.tools} == {"graph_search", "assess_confidence"}


async def test_gaps_of_five_kinds_are_collected_and_unmet_requirements_come_from_the_verdicts(
    open_reviews: OpenReviews,
) -> None:
    others = ("coverage", "consistency", "citation", "temporal")

    def find_gaps(_conversation: Any) -> ModelMessage:
        gaps = tuple(
            FoundGap.model_validate({"kind": kind, "summary": kind, "passages": ("p5",)})
            for kind in ("regulatory", *others)
        )
        return ModelMessage(text=GapSynthesizerOutput(gaps=gaps).model_dump_json())

    model = ReviewingModel(triage=[plan("gap_synthesizer")], gap_synthesizer=[find_gaps])

    async with open_reviews(model) as harness:
        driver = harness.driver()
        reply = await driver.say(FAULTY)
        [collected] = await driver.read_writes(reply, "gap_synthesizer")

    assert collected["gaps"]["summary"] == ["regulatory: 2", *(f"{kind}: 1" for kind in others)]
    assert [gap["kind"] for gap in reply["review_report"]["report"]["gaps"]] == [*others]


async def test_every_kind_of_failed_call_is_a_result_and_the_review_is_still_answered(
    open_reviews: OpenReviews, tmp_path: Path
) -> None:
    team = tmp_path / "team"
    team.mkdir()
    (tmp_path / "tickets.json").write_text(write_document())
    (team / "compliance.toml").write_text(
        'name = "compliance"\ntools = ["graph_search", "read_ticket", "slow_ticket"]\n'
        "timeout_seconds = 0.5\nretry_count = 1\n"
    )
    model = ReviewingModel(
        compliance=[
            NO_READINGS,
            ModelMessage(
                calls=(
                    use("graph_search", query="subcontractor"),
                    use("ask_a_lawyer"),
                    use("graph_search", query="fees", limit="many"),
                    use("read_ticket", id="7"),
                    use("slow_ticket", id="7"),
                )
            ),
            write_decisions("VIOLATION", "p5"),
        ]
    )
    async with run_ticket_server() as broken, run_ticket_server() as silent:
        broken.answers = [(500, {}, b"broken")] * 2
        silent.is_silent = True
        named = (("read_ticket", broken.url), ("slow_ticket", silent.url))
        (tmp_path / "outside.toml").write_text("".join(write_api(*item) for item in named))
        outside = {"outside_tools": tmp_path / "outside.toml", "specialists_folder": team}
        async with open_reviews(model, **outside) as harness:
            reply = await harness.driver().say(FAULTY)

    made = [call for call in reply["tool_calls"] if call.get("agent_name") == "compliance"]
    assert {(item["tool_name"], item["error_type"], item["attempts"]) for item in made} == {
        ("graph_search", "success", 1),
        ("ask_a_lawyer", "hallucination", 0),
        ("graph_search", "validation", 0),
        ("read_ticket", "execution", 2),
        ("slow_ticket", "timeout", 1),
    }
    assert reply["outcome"] == "answered"
    assert count(reply)["violations"] == 8


def write_api(tool: str, url: str) -> str:
    """Return the entry of a tool of an HTTP interface."""
    return (
        f'[apis.{tool}]\ndocument = "tickets.json"\nbase_url = "{url}"\n'
        f'headers = {{ X-Tenant = "acme" }}\n[apis.{tool}.operations.getTicket]\nname = "{tool}"\n'
    )


FOUND = HydeExpansionOutput(passage="A processor may engage others.", queries=("outsourcing",))


@pytest.mark.parametrize("answer", [FOUND, ModelUnavailable("away")], ids=["found", "away"])
async def test_the_extractors_search_has_other_wordings_of_a_model_if_it_gives_any(
    open_reviews: OpenReviews, answer: Any
) -> None:
    model = ReviewingModel(
        extractor=[
            ModelMessage(calls=(use("search", query="subcontractor"),)),
            ModelMessage(text='{"documents": [], "against": []}'),
        ],
        hyde_expansion=[answer],
    )

    async with open_reviews(model) as harness:
        driver = harness.driver()
        reply = await driver.say(FAULTY)
        [called, *_] = await driver.read_writes(reply, "extractor")
        journal = await driver.journal(reply)

    [made] = called["tool_calls"]
    assert called["plan_messages"][0]["calls"][0]["arguments"] == {"query": "subcontractor"}
    assert any(entry.fields.get("task") == "hyde_expansion" for entry in journal)
    if answer is FOUND:
        assert made["arguments"]["wordings"] == [FOUND.passage, "outsourcing"]
    else:
        assert made["arguments"] == {"query": "subcontractor"}
        [error] = [error for error in reply["errors"] if error["specialist"] == "extractor"]
        assert (error["severity"], error["phase"]) == ("low", "extraction")
    tool = next(call for call in reply["tool_calls"] if call.get("agent_name") == "extractor")
    assert tool["success"]


async def test_a_checklist_that_is_no_json_is_no_checklist_and_the_reply_says_so(
    open_reviews: OpenReviews,
) -> None:
    prose = ModelMessage(text="Here is your checklist: 1. encrypt, 2. notify.")
    model = ReviewingModel(
        requirement_extractor=[prose, UnreadableOutput("expected JSON, found prose")] * 2
    )

    async with open_reviews(model) as harness:
        reply = await harness.driver().say(FAULTY)

    errors = [text for name, text in list_errors(reply) if name == "requirement_extractor"]
    assert "the model gave no answer, so this part was not judged: expected JSON" in errors[0]
    assert "10 of 10 units were not read" in errors
    assert "verdicts" not in reply


async def test_a_unit_that_a_model_leaves_out_is_asked_for_once_more(
    open_reviews: OpenReviews,
) -> None:
    def forget(inputs: Any) -> Any:
        whole = list_requirements(inputs.prompt if hasattr(inputs, "prompt") else inputs)
        return whole.model_copy(update={"checklist": whole.checklist[:-2]})

    model = ReviewingModel(
        requirement_extractor=[
            lambda inputs: ModelMessage(text=forget(inputs).model_dump_json()),
            list_requirements,
        ]
    )

    async with open_reviews(model) as harness:
        reply = await harness.driver().say(FAULTY)

    [_, again] = model.find_asked("requirement_extractor")
    assert [unit.heading.rpartition(" > ")[2] for unit in again.units] == [
        "Article 8 Training", "Article 9 Records"
    ]  # fmt: skip
    assert count(reply) == {"requirements": 8, "compliant": 3, "violations": 3, "gaps": 2}


@pytest.mark.parametrize("status", ["VIOLATION", "COMPLIANT"])
async def test_a_status_whose_evidence_does_not_exist_does_not_count(
    open_reviews: OpenReviews, status: str
) -> None:
    model = ReviewingModel(
        compliance=[NO_READINGS, ModelMessage(), decide_all(status, "p999")],
        triage=[plan("compliance", "report_generator")],
    )

    async with open_reviews(model) as harness:
        reply = await harness.driver().say(FAULTY)

    # A permission that nothing takes away is fulfilled without a passage.
    kept = 1 if status == "COMPLIANT" else 0
    counts = {"requirements": 8, "compliant": kept, "violations": 0, "gaps": 0}
    assert count(reply) == counts
    assert len(reply["verdicts"]["undecided"]) == 8 - kept
    report = reply["review_report"]["report"]
    reasons = {
        requirement["reason"]
        for requirement in report["requirements"]
        if requirement["status"] == "UNDECIDED"
    }
    assert all("named no passage that exists" in reason for reason in reasons)


async def test_a_requirement_without_a_verdict_is_asked_for_again_and_then_undecided(
    open_reviews: OpenReviews,
) -> None:
    def forget(inputs: Any) -> ComplianceOutput:
        given = inputs.prompt if hasattr(inputs, "prompt") else inputs
        whole = compare(given)
        return whole.model_copy(update={"verdicts": whole.verdicts[:-1]})

    model = ReviewingModel(
        compliance=[
            compare,
            lambda inputs: ModelMessage(text=forget(inputs).model_dump_json()),
            NO_READINGS,
        ]
    )

    async with open_reviews(model) as harness:
        reply = await harness.driver().say(FAULTY)

    again = model.find_asked("compliance")[-1]
    assert [requirement.id for requirement in again.requirements] == ["REQ-008"]
    assert reply["verdicts"]["undecided"] == ["REQ-008"]
    assert count(reply) == {"requirements": 8, "compliant": 3, "violations": 3, "gaps": 1}


async def test_the_verdicts_know_what_the_clauses_said_and_how_the_numbers_compare(
    open_reviews: OpenReviews,
) -> None:
    model = ReviewingModel()

    async with open_reviews(model) as harness:
        await harness.driver().say(FAULTY)

    [clauses, verdicts] = model.find_asked("compliance")
    given = verdicts.prompt
    assert clauses.direction == "clauses"
    assert {reading.effect for reading in given.readings} == {"breaks"}
    lines = [line for comparison in given.comparisons for line in comparison.lines]
    line = 'document "of register data within 14 days" > rule "of register data within 48 hours"'
    assert line in lines
    assert given.is_whole
    assert json.loads(given.output_schema)["properties"]["verdicts"]


async def test_a_specialist_that_fails_in_the_middle_leaves_the_others_their_work(
    open_reviews: OpenReviews,
) -> None:
    def fall_over(_inputs: Any) -> Any:
        raise RuntimeError("the ground is gone")

    model = ReviewingModel(
        triage=[plan("risk_verifier", "gap_synthesizer", "report_generator", kind="reporting")],
        risk_verifier=[fall_over] * 10,
    )

    async with open_reviews(model) as harness:
        reply = await harness.driver().say(FAULTY)

    [(name, text)] = list_errors(reply)
    assert name == "risk_verifier"
    assert reply["outcome"] == "answered"
    assert count(reply)["violations"] == 3
    notes = reply["review_report"]["report"]["notes"]
    assert any(note.endswith(f"{name}: {text}") for note in notes)


async def test_models_that_are_away_leave_nothing_judged_and_nobody_judges_instead(
    open_reviews: OpenReviews,
) -> None:
    away = [ModelUnavailable("away for an hour", retry_after_seconds=3600)] * 20
    model = ReviewingModel(compliance=away, synthesis=away)

    async with open_reviews(model) as harness:
        reply = await harness.driver().say(FAULTY)

    assert count(reply) == {"requirements": 8, "compliant": 0, "violations": 0, "gaps": 0}
    assert len(reply["verdicts"]["undecided"]) == 8
    assert {name for name, _ in list_errors(reply)} == {"compliance", "synthesis"}
    assert "None of the 8 requirements of" in reply["text"]
    assert "0 are fulfilled" not in reply["text"]


def judge_again(quote: str) -> JudgeOutput:
    """A judgement that doubts some words of the answer."""
    return JudgeOutput(
        claims_read=2,
        verdicts=(Verdict(passage=0, quote=quote, reason="nobody says it", supported=False),),
        completeness=0.9,
        accuracy=0.9,
        language_matches=True,
        decision="approve",
    )


async def test_an_invented_citation_is_counted_and_its_sentence_goes_to_the_judge(
    open_reviews: OpenReviews,
) -> None:
    def write(inputs: Any) -> SynthesisOutput:
        first = next(source for source in inputs.sources if "may sell" in source.text)
        text = "The processor may sell register data to third parties"
        return SynthesisOutput(
            answer=f"{text}. \\cite{{{first.id}}}\n\nAll else is well. \\cite{{law#99}}"
        )

    model = ReviewingModel(synthesis=[write], judge=[judge_again("All else is well.")])

    async with open_reviews(model) as harness:
        driver = harness.driver()
        reply = await driver.say(FAULTY)
        [written, *_] = await driver.read_writes(reply, "synthesis")

    judged = model.find_asked("judge")[0]
    assert "All else is well." in {passage.text.strip() for passage in judged.passages}
    assert written["citation_check"]["invalid_citations"] == ["law#99"]
    assert not written["citation_check"]["valid"]
    assert "\\cite" not in written["response"]
    assert "All else is well" not in reply["text"]


async def test_an_answer_that_cites_nothing_is_replaced_by_the_findings(
    open_reviews: OpenReviews,
) -> None:
    model = ReviewingModel(synthesis=[SynthesisOutput(answer="All is well. \\cite{law#99}")])

    async with open_reviews(model) as harness:
        reply = await harness.driver().say(FAULTY)

    assert reply["outcome"] == "answered"
    assert "3 are violated" in reply["text"]


def ask_again(name: str, focus: str = "look at the subcontractors") -> SynthesisOutput:
    """An answer that asks for one more round instead."""
    return SynthesisOutput(further=FurtherWork(specialist=name, focus=focus))


async def test_the_writer_of_a_review_finds_each_note_once_and_each_clause_under_its_own_source(
    open_reviews: OpenReviews,
) -> None:
    model = ReviewingModel(triage=[plan("compliance", "report_generator")])

    async with open_reviews(model) as harness:
        reply = await harness.driver().say(FAULTY)

    asked = model.find_asked("synthesis")[0]
    shown = "\n".join((*(finding.text for finding in asked.findings), *asked.notes))
    [review] = [source for source in asked.sources if source.id == REVIEW]
    assert all(shown.count(note) == 1 for note in asked.notes)
    assert {REVIEW} < {name for finding in asked.findings for name in finding.sources}
    assert not any(
        finding.text in review.text for finding in asked.findings if REVIEW not in finding.sources
    )
    assert review.place == reply["review_report"]["title"]


async def test_a_synthesis_asks_for_one_more_round_of_a_specialist_and_no_second(
    open_reviews: OpenReviews,
) -> None:
    model = ReviewingModel(
        triage=[plan("risk_verifier", "citation_auditor")],
        compliance=[
            NO_READINGS,
            write_decisions("COMPLIANT", "p5"),
            NO_READINGS,
            write_decisions("VIOLATION", "p5"),
        ],
        synthesis=[ask_again("compliance"), ask_again("extractor")],
    )

    async with open_reviews(model) as harness:
        driver = harness.driver()
        reply = await driver.say(FAULTY)
        journal = await driver.journal(reply)

    waves = list_waves(journal)
    checks = ["risk verifier", "citation auditor"]
    assert waves[-3:] == [["compliance"], checks, ["report generator"]]
    assert len(waves) == 8
    assert [error["text"] for error in reply.get("errors", [])] == []
    assert reply["further_round"] == {
        "names": ["compliance", "risk_verifier", "citation_auditor", "report_generator"],
        "focus": "look at the subcontractors",
    }
    assert count(reply)["violations"] == 8
    assert (reply["outcome"], "8 are violated" in reply["text"]) == ("answered", True)
    again = model.find_asked("compliance")[-1]
    assert "look at the subcontractors" in str(again.messages[0])


async def test_a_round_of_somebody_who_does_not_exist_is_none(open_reviews: OpenReviews) -> None:
    model = ReviewingModel(synthesis=[ask_again("lawyer")])

    async with open_reviews(model) as harness:
        reply = await harness.driver().say(FAULTY)

    assert "further_round" not in reply
    assert (reply["outcome"], "3 are violated" in reply["text"]) == ("answered", True)
