"""Other wordings of a search, by a model; what a specialist reports of missing inputs and tools."""

from typing import Any

import pytest

from agents.review.compliance import ComplianceAgent, Reads
from agents.review.specialist import GivenOutput, LoopTurns, Toolbox, expand_search
from envelope.outcome import Wrote
from envelope.run import OUTSIDE
from envelope.specialists import ErrorSeverity, SpecialistName, SpecialistProfile
from llm.missing_model import MissingModel
from llm.port import ToolUse
from llm.tasks.review import CLASSIFIER, ClassifierInputs, ClassifierOutput
from llm.tasks.search import HydeExpansionOutput
from tests.support.scripted_model import ScriptedModel
from tools.calls import ToolErrorType, ToolResult

FOUND = HydeExpansionOutput(
    passage="The keeper may engage others.", queries=("sub-processor", "sub-processor")
)


NOTHING: Any = None


def make_toolbox(name: SpecialistName, model: ScriptedModel) -> Toolbox:
    return Toolbox(SpecialistProfile(name=name), model, library=NOTHING, work=NOTHING)


def use(name: str, **arguments: Any) -> ToolUse:
    return ToolUse(call_id=name, name=name, arguments=arguments)


async def test_the_first_search_gets_the_invented_passage_and_the_queries_once_each() -> None:
    calls = [
        use("get_document_info"),
        use("search", query="subcontractor"),
        use("search", query="b"),
    ]

    expanded = await expand_search(calls, ScriptedModel([FOUND]), "Is it allowed?", "en", OUTSIDE)

    assert [expanded[0], expanded[2]] == [calls[0], calls[2]]
    assert expanded[1].arguments == {
        "query": "subcontractor",
        "wordings": ["The keeper may engage others.", "sub-processor"],
    }
    assert calls[1].arguments == {"query": "subcontractor"}, "the model's own call is unchanged"


async def test_what_is_no_plain_search_is_not_expanded() -> None:
    model = ScriptedModel([])

    for call in (
        use("graph_search", query="a"),
        use("search", query="a", aspects=["b"]),
        use("search", query="a", wordings=["b"]),
        use("search", query=7),
        ToolUse(call_id="1", name="search", arguments="no object"),
    ):
        assert await expand_search([call], model, "?", "en", OUTSIDE) == [call]
    assert model.calls == []


async def test_rules_invent_no_passages_and_empty_wordings_change_nothing() -> None:
    call = use("search", query="a")

    assert await expand_search([call], MissingModel(), "?", "en", OUTSIDE) == [call]
    assert await expand_search([call], None, "?", "en", OUTSIDE) == [call]
    assert await expand_search(
        [call], ScriptedModel([HydeExpansionOutput()]), "?", "en", OUTSIDE
    ) == [call]


async def test_compliance_without_requirements_names_the_order_and_ends_well() -> None:
    agent = ComplianceAgent(make_toolbox(SpecialistName.COMPLIANCE, ScriptedModel([])))

    outcome = await agent.work(Reads(canonical_question="Is it allowed?"))

    assert isinstance(outcome, Wrote)
    [error] = outcome.writes.errors
    assert "the order is extractor, requirement_extractor, compliance" in error.text
    assert str(error).startswith(f"[{error.error_id}] compliance: ")
    assert outcome.writes.verdicts is None


@pytest.mark.parametrize(("tool", "is_reported"), [("graph_search", True), ("calculator", False)])
async def test_the_failure_of_a_tool_that_finds_passages_is_reported(
    tool: str, is_reported: bool
) -> None:
    toolbox = make_toolbox(
        SpecialistName.CLASSIFIER, ScriptedModel([ClassifierOutput(documents=())])
    )
    failed = ToolResult(
        call_id="1", tool=tool, success=False, error_type=ToolErrorType.EXECUTION, error="broken"
    )

    given = await toolbox.consult(
        CLASSIFIER, ClassifierInputs(question="?"), LoopTurns(results=(failed,))
    )

    assert isinstance(given, GivenOutput)
    told = [(error.text, error.severity) for error in given.errors]
    sentence = "the tool graph_search failed (broken), so results may be incomplete"
    assert told == ([(sentence, ErrorSeverity.MEDIUM)] if is_reported else [])
