"""Other wordings of a search, by a model; what a specialist reports of missing inputs and tools."""

from typing import Any

import pytest

from agents.review.compliance import ComplianceAgent, Reads
from agents.review.specialist import GivenOutput, LoopTurns, Toolbox, expand_search
from envelope.outcome import Wrote
from envelope.run import OUTSIDE
from envelope.specialists import ErrorSeverity, SpecialistName, SpecialistProfile
from llm.errors import Refused
from llm.missing_model import MissingModel
from llm.port import ModelMessage, ToolUse
from llm.tasks.review import (
    CLASSIFIER,
    COMPLIANCE,
    ClassifierInputs,
    ClassifierOutput,
    ComplianceInputs,
    ComplianceOutput,
    KnownRequirement,
    RequirementVerdict,
)
from llm.tasks.search import HydeExpansionOutput
from tests.support.scripted_model import ScriptedModel
from tools.calls import ToolErrorType, ToolResult
from tools.catalog import ToolCatalog

FOUND = HydeExpansionOutput(
    passage="The keeper may engage others.", queries=("sub-processor", "sub-processor")
)


NOTHING: Any = None


def make_toolbox(name: SpecialistName, model: ScriptedModel) -> Toolbox:
    return Toolbox(SpecialistProfile(name=name), model, library=NOTHING, work=NOTHING)


def use(name: str, **arguments: Any) -> ToolUse:
    return ToolUse(call_id=name, name=name, arguments=arguments)


def make_batch(count: int) -> ComplianceInputs:
    requirements = tuple(
        KnownRequirement(id=f"R{number}", statement=f"Duty {number}.") for number in range(count)
    )
    return ComplianceInputs(question="?", requirements=requirements, passages=())


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


async def test_only_a_plain_search_is_expanded() -> None:
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


@pytest.mark.parametrize(
    ("count", "refused", "most_calls"),
    [
        (10, {2}, 9),
        (10, {2, 7}, 15),
        (10, {0, 4, 9}, 19),
        (60, {3, 48}, 23),
    ],
)
async def test_each_refused_text_of_a_batch_costs_only_itself(
    count: int, refused: set[int], most_calls: int
) -> None:
    names = {f"R{number}" for number in refused}

    def judge(given: Any) -> ComplianceOutput:
        asked = [requirement.id for requirement in given.requirements]
        if names & set(asked):
            raise Refused("no")
        return ComplianceOutput(
            verdicts=tuple(
                RequirementVerdict(requirement_id=name, status="GAP", confidence=1)
                for name in asked
            )
        )

    model = ScriptedModel([judge] * most_calls)
    toolbox = make_toolbox(SpecialistName.COMPLIANCE, model)

    outputs = await toolbox.consult_each(COMPLIANCE, [make_batch(count)], None)

    judged = {verdict.requirement_id for output in outputs.outputs for verdict in output.verdicts}
    assert judged == {f"R{number}" for number in range(count)} - names
    assert {
        requirement.id for own, _ in outputs.failed for requirement in own.requirements
    } == names


async def test_a_model_that_refuses_everything_is_asked_about_halves_and_quarters_only() -> None:
    model = ScriptedModel([Refused("no")] * 20)
    toolbox = make_toolbox(SpecialistName.COMPLIANCE, model)

    outputs = await toolbox.consult_each(COMPLIANCE, [make_batch(10)], None)

    sizes = [len(call.inputs.requirements) for call in model.calls]  # type: ignore[attr-defined] # inputs of compliance
    assert sizes == [10, 5, 5, 2, 3, 2, 3]
    assert sum(len(own.requirements) for own, _ in outputs.failed) == 10


@pytest.mark.parametrize(
    ("tool", "is_reported"), [("graph_search", True), ("search", True), ("calculator", False)]
)
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
    sentence = f"the tool {tool} failed (broken), so results may be incomplete"
    assert told == ([(sentence, ErrorSeverity.MEDIUM)] if is_reported else [])


async def test_at_the_limit_of_its_rounds_a_specialist_writes_from_what_its_tools_returned() -> (
    None
):
    model = ScriptedModel([ClassifierOutput(documents=())])
    profile = SpecialistProfile(name=SpecialistName.CLASSIFIER, max_iterations=1)
    toolbox = Toolbox(profile, model, library=NOTHING, work=NOTHING, tools=ToolCatalog(()))
    found = ToolResult(
        call_id="search", tool="search", success=True, error_type=ToolErrorType.SUCCESS, text="Ten."
    )
    turns = LoopTurns((ModelMessage(calls=(use("search", query="fee"),)),), (found,))

    given = await toolbox.consult(CLASSIFIER, ClassifierInputs(question="?"), turns)

    assert isinstance(given, GivenOutput)
    [asked] = model.calls
    assert isinstance(asked.inputs, ClassifierInputs)
    assert asked.inputs.gathered == ("search: Ten.",)
