"""Triage leaves simple questions to one search, and asks back only where nobody could begin."""

from agents.tool_loop.triage import Reads, TriageAgent, Writes
from envelope.outcome import GaveUp, Wrote
from envelope.ways.tool_loop import QueryType, WayName
from llm.errors import ModelUnavailable
from llm.offline.model import OfflineModel
from llm.port import Model
from llm.scripted import ScriptedModel
from llm.tasks.triage import Output


async def decide(model: Model, question: str = "What is the fee?") -> Writes:
    outcome = await TriageAgent(model=model).work(Reads(canonical_question=question))
    assert isinstance(outcome, Wrote)
    return outcome.writes


async def test_the_limit_of_complexity_divides_the_ways() -> None:
    below = await decide(ScriptedModel([Output(complexity=29, vagueness=0)]))
    above = await decide(ScriptedModel([Output(complexity=30, vagueness=0)]))

    assert (below.triage.way, above.triage.way) == (WayName.SEARCH, WayName.TOOLS)
    assert below.triage.decided_by == "scripted"


async def test_a_vague_question_is_asked_back_only_if_nobody_could_begin() -> None:
    lost = Output(complexity=5, vagueness=0.9, needs_clarification=True, reasoning="which one?")
    vague = Output(complexity=5, vagueness=0.9)

    asked = await decide(ScriptedModel([lost]))

    assert (asked.needs_clarification, asked.clarification_message) == (True, "which one?")
    assert not (await decide(ScriptedModel([vague]))).needs_clarification


async def test_a_model_that_is_away_leaves_the_question_to_the_search() -> None:
    agent = TriageAgent(model=ScriptedModel([ModelUnavailable("away")]))

    assert isinstance(await agent.work(Reads(canonical_question="What is the fee?")), GaveUp)


async def test_the_rules_see_comparisons_calculations_and_chains() -> None:
    simple = await decide(OfflineModel(), "How do I rotate an API key?")
    compared = await decide(OfflineModel(), "What changed between version 2024 and version 2025?")
    computed = await decide(OfflineModel(), "How much is 12 * 30 days of the Team plan?")

    assert simple.triage.way is WayName.SEARCH
    assert compared.triage.way is WayName.TOOLS
    assert compared.triage.query_type is QueryType.CROSS_DOC
    assert computed.triage.way is WayName.TOOLS


async def test_a_review_of_nothing_that_is_named_is_asked_back() -> None:
    for question in ("Is it compliant?", "Ist das konform?", "Je to v souladu?"):
        vague = await decide(OfflineModel(), question)
        assert vague.needs_clarification
        assert (vague.triage.vagueness, vague.triage.query_type) == (0.7, QueryType.COMPLIANCE)

    named = await decide(OfflineModel(), "Is the contract of Nygaard compliant?")
    chosen = await decide(OfflineModel(), "Is it compliant? (Contract between Harbour and Brandt)")
    subject = await decide(OfflineModel(), "Is the rate limit of the API compliant?")

    assert not named.needs_clarification
    assert chosen.agent_sequence == named.agent_sequence
    assert named.agent_sequence[-1] == "compliance"
    assert subject.agent_sequence == ("extractor",)
