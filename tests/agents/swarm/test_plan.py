"""What a planner is told about the conversation, and what it notes of a change of topic."""

from collections.abc import Sequence

import pytest

from agents.swarm.plan import PlanAgent, Reads
from agents.swarm.swarm_plan import SwarmPlan
from envelope.conversation import Turn
from envelope.outcome import GaveUp, RetryAfter, Wrote
from knowledge.index.listing import ListedDocument
from llm.errors import ModelError, ModelUnavailable, RateLimited
from llm.tasks.question import ContextType
from llm.tasks.swarm import PlannedWorker, PlanSwarmInputs, PlanSwarmOutput
from tests.agents.swarm.builders import make_output, make_passage, make_swarm_plan, make_worker
from tests.support.scripted_model import ScriptedModel
from tests.support.worker_harness import FixedTexts
from tools.catalog import ToolCatalog

EARLIER = Turn(speaker="user", text="And B?", meant="What does plan B cost?")


def make_agent(model: ScriptedModel) -> PlanAgent:
    return PlanAgent(
        model=model, tools=ToolCatalog(()), texts=FixedTexts(), list_documents=list_no_documents
    )


async def list_no_documents(_groups: Sequence[str]) -> Sequence[ListedDocument]:
    return ()


@pytest.mark.parametrize(
    ("history", "context_type", "active", "has_changed"),
    [
        ((), "new_topic", "", False),
        ((EARLIER,), "follow_up", "What does plan B cost?", False),
        ((EARLIER,), "new_topic", "", True),
    ],
)
async def test_a_planner_knows_the_open_question_until_the_topic_changes(
    history: tuple[Turn, ...], context_type: ContextType, active: str, has_changed: bool
) -> None:
    simple = PlanSwarmOutput(action="simple_response", complexity=0.1)
    model = ScriptedModel({"plan_swarm": [simple]})

    outcome = await make_agent(model).work(
        Reads(canonical_question="Compare them", history=history, context_type=context_type)
    )

    assert isinstance(outcome, Wrote)
    [asked] = [call.inputs for call in model.calls]
    assert isinstance(asked, PlanSwarmInputs)
    assert asked.active_question == active
    assert outcome.writes.routing["topic_change_detected"] is has_changed


async def test_the_routing_of_a_plan_says_what_was_decided_and_why() -> None:
    worker = PlannedWorker(role="research", objective="What does plan B cost?")
    planned = PlanSwarmOutput(
        action="orchestrate",
        reasoning="two plans",
        confidence=0.8,
        complexity=0.4,
        workers=(worker,),
    )

    outcome = await make_agent(ScriptedModel({"plan_swarm": [planned]})).work(
        Reads(canonical_question="Compare plan A and plan B")
    )

    assert isinstance(outcome, Wrote)
    routing = outcome.writes.routing
    assert (routing["action"], routing["reasoning"]) == ("orchestrate", "two plans")
    assert (routing["confidence"], routing["complexity_estimate"]) == (0.8, 0.4)
    assert (routing["topic_change_detected"], routing["should_seek_approval"]) == (False, False)


@pytest.mark.parametrize("planned_before", [False, True])
async def test_a_plan_that_cannot_run_is_sent_back_once_with_its_problems(
    planned_before: bool,
) -> None:
    wrong = make_plan("wizard")
    model = ScriptedModel({"plan_swarm": [wrong, make_plan("research")]})
    before = SwarmPlan(question="Compare plans", strategy="intelligent", workers=())
    known = before.model_dump(mode="json") if planned_before else {}

    outcome = await make_agent(model).work(
        Reads(
            canonical_question="Compare plans",
            swarm_plan=known,
            quality_analysis="the price" if known else "",
        )
    )

    assert isinstance(outcome, Wrote)
    [_, repeated] = [call.inputs for call in model.calls]
    assert isinstance(repeated, PlanSwarmInputs)
    assert repeated.problems[:-1] == (("the price",) if known else ())
    assert "found 'wizard'" in repeated.problems[-1]


def make_plan(role: str) -> PlanSwarmOutput:
    worker = PlannedWorker(role=role, objective="What does plan B cost?")
    return PlanSwarmOutput(action="orchestrate", complexity=0.4, workers=(worker,))


async def test_further_research_replaces_only_the_worker_that_failed_and_asks_no_planner() -> None:
    before = make_swarm_plan(make_worker("w0"), make_worker("w1"))
    output = make_output("w0", make_passage("p", "It costs 12."))
    failed = {"task_id": "w1", "title": "w1", "state": "failed", "error": "too_busy: status 429"}
    model = ScriptedModel([])

    outcome = await make_agent(model).work(
        Reads(
            canonical_question="Compare plans",
            swarm_plan=before.model_dump(mode="json"),
            worker_outputs={"w0": output.model_dump(mode="json")},
            task_ledger={"tasks": [failed]},
            quality_analysis="The price of plan B is missing.",
        )
    )

    assert isinstance(outcome, Wrote)
    plan = SwarmPlan.model_validate(outcome.writes.swarm_plan)
    assert [worker.id for worker in plan.workers] == ["w0", "w1_again"]
    assert [worker.objective for worker in plan.workers] == ["look up w0", "look up w1"]
    assert model.calls == []


@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (RateLimited("status 429", retry_after_seconds=2.0), 2.0),
        (ModelUnavailable("status 500"), None),
    ],
)
async def test_a_planner_waits_for_a_stated_time_and_otherwise_leaves_the_question_to_a_search(
    error: ModelError, waits: float | None
) -> None:
    outcome = await make_agent(ScriptedModel([error])).work(Reads(canonical_question="Compare"))

    if waits is None:
        assert isinstance(outcome, GaveUp)
    else:
        assert isinstance(outcome, RetryAfter)
        assert outcome.seconds == waits
