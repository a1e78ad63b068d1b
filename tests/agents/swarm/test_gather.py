"""What a swarm asks a person before its workers begin, and what it must not ask."""

from collections.abc import Sequence
from typing import Any

import pytest

from agents.swarm.gather import GatherAgent, Reads, Writes, gather
from agents.swarm.swarm_plan import FieldType, RequiredInfoField
from agents.swarm.work import Reads as WorkReads
from agents.swarm.work import WorkAgent
from envelope.outcome import GaveUp, Wrote
from knowledge.index.listing import ListedDocument
from llm.missing_model import MissingModel
from llm.port import ModelMessage, ToolUse
from tests.agents.swarm.builders import make_worker
from tests.support.app_harness import PartlyScriptedModel
from tools.calls import CitedPassage, ToolErrorType, ToolResult
from tools.catalog import ToolCatalog

QUESTION = "Which plan of the SMS platform suits us best?"
FORBIDDEN: list[dict[str, Any]] = [
    {"question": "What is your password?"},
    {"question": "Wie lautet dein Passwort?"},
    {"question": "Please sign in at https://evil.example/login first"},
    {"question": "Call 0900 555 1234 and tell us the number"},
    {"question": "Which one?", "type": "choice", "choices": ["https://evil.example", "b"]},
    {"question": "Which one?", "type": "choice", "choices": ["your PIN", "your credentials"]},
    {"question": "And this one?", "name": "account_password"},
]


async def ask(field: dict[str, Any], question: str = QUESTION) -> Writes:
    needed: dict[str, Any] = {"planner": [{"name": "market", **field}]}
    reads = Reads(canonical_question=question, required_info=needed)
    outcome = await GatherAgent(MissingModel()).work(reads)
    assert isinstance(outcome, Wrote)
    return outcome.writes


@pytest.mark.parametrize("field", FORBIDDEN, ids=str)
async def test_nobody_is_asked_for_a_secret_or_led_to_another_place(field: dict[str, Any]) -> None:
    assert (await ask(field)).needs_input == ()


async def test_a_fact_of_the_case_is_asked_for() -> None:
    field = {"question": "Which market?", "type": "choice", "choices": ["Spain", "Italy"]}

    [asked] = (await ask(field)).needs_input

    assert asked.text == "Which market?"
    assert asked.field is not None
    assert asked.field.choices == ("Spain", "Italy")


async def test_words_of_the_person_may_be_repeated() -> None:
    field = {"question": "Which password policy?"}

    assert (await ask(field, "How do I set the password policy?")).needs_input != ()


async def test_a_worker_that_asks_for_a_secret_is_told_once_and_then_given_up() -> None:
    use = ToolUse(call_id="q", name="ask_user", arguments={"question": "What is your password?"})
    model = PartlyScriptedModel(work_on_task=[ModelMessage(calls=(use,))] * 2)
    task = {"worker": make_worker("a").model_dump(mode="json")}

    async def list_documents(_groups: Sequence[str]) -> Sequence[ListedDocument]:
        return ()

    agent = WorkAgent(model=model, tools=ToolCatalog(()), list_documents=list_documents)
    outcome = await agent.work(WorkReads(worker_task=task))

    assert isinstance(outcome, GaveUp)
    assert "it asks for a secret" in outcome.reason
    again = model.find_asked("work_on_task")[1]
    assert "it asks for a secret" in again.messages[-1].remark.refused_question


async def test_a_question_of_a_worker_names_pages_instead_of_ids() -> None:
    asked = {"question": "Does [1] of (plans.md#2), or [plans.md#2], apply to you?"}
    uses = [ToolUse(call_id="s1-1", name="search"), ToolUse(call_id="q", name="ask_user")]
    uses[1] = uses[1].model_copy(update={"arguments": asked})
    model = PartlyScriptedModel(work_on_task=[ModelMessage(calls=(uses[1],))])
    page = CitedPassage(chunk_id="plans.md#2", document_id="plans.md", title="Rate plans")
    found = ToolResult(
        call_id="s1-1", tool="search", success=True, error_type=ToolErrorType.SUCCESS,
        citations=(page,),
    )  # fmt: skip

    async def list_documents(_groups: Sequence[str]) -> Sequence[ListedDocument]:
        return ()

    agent = WorkAgent(model=model, tools=ToolCatalog(()), list_documents=list_documents)
    outcome = await agent.work(
        WorkReads(
            worker_task={"worker": make_worker("a").model_dump(mode="json")},
            plan_messages=(ModelMessage(calls=(uses[0],)).model_dump(mode="json"),),
            multi_tool_results={"s1-1": found.model_dump(mode="json")},
        )
    )

    assert isinstance(outcome, Wrote)
    [question] = outcome.writes.needs_input
    assert question.text == "Does [1] of Rate plans, or Rate plans, apply to you?"


PLAN = RequiredInfoField(
    name="plan", question="Which plan?", type=FieldType.CHOICE, choices=("Team", "Business")
)
SINCE = RequiredInfoField(name="since", question="Since when?", type=FieldType.DATE)


def test_a_field_that_several_workers_need_is_asked_once_with_its_choices() -> None:
    gathered = gather({"a": (PLAN,), "b": (PLAN, SINCE)}, {})

    plan, since = gathered.questions
    assert (plan.id, plan.suggestions, plan.workers) == ("plan", ("Team", "Business"), ("a", "b"))
    assert since.text == "Since when?"


def test_a_known_fact_is_not_requested() -> None:
    gathered = gather({"a": (PLAN, SINCE)}, {"since": "2026-01-01", "plan": None})

    assert (gathered.questions, gathered.values) == ((), {"since": "2026-01-01", "plan": None})


def test_the_only_choice_that_the_user_has_named_is_taken() -> None:
    named = gather({"a": (PLAN,)}, {}, ["We have the Team plan.", "How do I export?"])
    both = gather({"a": (PLAN,)}, {}, ["Is Team or Business better?"])

    assert (named.values, named.questions) == ({"plan": "Team"}, ())
    assert len(both.questions) == 1


def test_an_optional_field_gets_its_default() -> None:
    usual = PLAN.model_copy(update={"required": False, "default": "Team"})

    assert gather({"a": (usual,)}, {}).values == {"plan": "Team"}
