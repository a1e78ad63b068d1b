"""Triage leaves simple questions to one search, and asks back only where nobody could begin."""

from collections.abc import Sequence
from typing import Any

import pytest

from agents.tool_loop.triage import Reads, TriageAgent, Writes
from envelope.outcome import GaveUp, Wrote
from envelope.tool_loop import QueryType, WayName
from knowledge.index.listing import ListedDocument
from llm.errors import ModelUnavailable
from llm.port import Model
from llm.tasks.tool_loop import TriageInputs, TriageOutput
from tests.support.scripted_model import ScriptedModel


async def decide(model: Model, question: str = "What is the fee?") -> Writes:
    outcome = await TriageAgent(model=model).work(Reads(canonical_question=question))
    assert isinstance(outcome, Wrote)
    return outcome.writes


@pytest.mark.parametrize(
    ("complexity", "kind", "way"),
    [
        (29, QueryType.UNKNOWN, WayName.SEARCH),
        (30, QueryType.UNKNOWN, WayName.TOOLS),
        (70, QueryType.UNKNOWN, WayName.TOOLS),
        (71, QueryType.UNKNOWN, WayName.SWARM),
        (29, QueryType.COMPLIANCE, WayName.SEARCH),
        (70, QueryType.COMPLIANCE, WayName.TOOLS),
        (71, QueryType.COMPLIANCE, WayName.SPECIALISTS),
    ],
)
async def test_the_limit_of_complexity_divides_the_ways(
    complexity: int, kind: QueryType, way: WayName
) -> None:
    output = TriageOutput(complexity=complexity, vagueness=0, query_type=kind)

    triage = (await decide(ScriptedModel([output]))).triage

    assert (triage.way, triage.decided_by) == (way, "scripted")


async def test_the_planner_of_specialists_receives_the_list_of_documents() -> None:
    class Shelf:
        async def list_documents(self, _groups: Sequence[str]) -> list[ListedDocument]:
            return [ListedDocument("act", "The Act", "act.md", "/", "en", 3)]

    library: Any = Shelf()
    model = ScriptedModel([TriageOutput(complexity=5, vagueness=0)])

    await TriageAgent(model=model, library=library).work(Reads(canonical_question="What is due?"))

    asked = model.calls[0].inputs
    assert isinstance(asked, TriageInputs)
    assert [line.partition(" (")[0] for line in asked.documents] == ["act: The Act"]


async def test_a_vague_question_is_asked_back_only_if_nobody_could_begin() -> None:
    lost = TriageOutput(
        complexity=5, vagueness=0.9, needs_clarification=True, reasoning="which one?"
    )
    vague = TriageOutput(complexity=5, vagueness=0.9)
    clear = TriageOutput(complexity=5, vagueness=0.6, needs_clarification=True)

    asked = await decide(ScriptedModel([lost]))

    assert (asked.needs_clarification, asked.clarification_message) == (True, "which one?")
    for output in (vague, clear):
        assert not (await decide(ScriptedModel([output]))).needs_clarification


async def test_the_record_of_a_decision_has_what_the_model_judged() -> None:
    judged = TriageOutput(
        complexity=85,
        query_type=QueryType.COMPLIANCE,
        semantic_type="compliance_check",
        vagueness=0.2,
        agent_sequence=("extractor", "compliance"),
        reasoning="a contract and a law",
    )

    triage = (await decide(ScriptedModel([judged]))).triage

    assert (triage.complexity, triage.query_type) == (85, QueryType.COMPLIANCE)
    assert (triage.semantic_type, triage.vagueness) == ("compliance_check", 0.2)
    assert (triage.needs_clarification, triage.reasoning) == (False, "a contract and a law")
    assert triage.agent_sequence == ("extractor", "requirement_extractor", "compliance")


async def test_a_model_that_is_away_leaves_the_question_to_the_search() -> None:
    agent = TriageAgent(model=ScriptedModel([ModelUnavailable("away")]))

    assert isinstance(await agent.work(Reads(canonical_question="What is the fee?")), GaveUp)


async def test_without_a_model_only_what_a_question_lists_is_divided() -> None:
    agent = TriageAgent(model=ScriptedModel([]), uses_model=False)

    async def choose(question: str) -> WayName:
        outcome = await agent.work(Reads(canonical_question=question))
        assert isinstance(outcome, Wrote)
        return outcome.writes.triage.way

    assert await choose("How do I rotate an API key?") is WayName.SEARCH
    assert await choose("Is the contract of Nygaard compliant with the law?") is WayName.SEARCH
    assert await choose("What does a key cost? How long is a log kept?") is WayName.TOOLS
    assert await choose("Compare the webhooks, the REST API and SMPP") is WayName.SWARM


@pytest.mark.parametrize(
    ("kind", "planned"),
    [
        (QueryType.RISK, ()),
        (QueryType.REPORTING, ()),
        (QueryType.COMPLIANCE, ("compliance", "gap_synthesizer")),
        (QueryType.COMPLIANCE, ("compliance", "risk_verifier", "report_generator")),
    ],
)
async def test_a_sequence_that_finds_risks_or_gaps_ends_with_the_report(
    kind: QueryType, planned: tuple[str, ...]
) -> None:
    output = TriageOutput(complexity=90, vagueness=0, query_type=kind, agent_sequence=planned)

    decided = await decide(ScriptedModel([output]))

    assert decided.agent_sequence[-1] == "report_generator"
    assert decided.agent_sequence.count("report_generator") == 1
    assert set(planned) <= set(decided.agent_sequence)


async def test_a_check_against_a_law_needs_no_report() -> None:
    output = TriageOutput(complexity=90, vagueness=0, query_type=QueryType.COMPLIANCE)

    decided = await decide(ScriptedModel([output]))

    assert decided.agent_sequence == ("extractor", "requirement_extractor", "compliance")
