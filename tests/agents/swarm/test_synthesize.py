import pytest

from agents.swarm.synthesize import Reads, SynthesizeAgent
from config.texts import load_texts
from envelope.conversation import AnswerStyle, Preferences
from envelope.outcome import RetryAfter, Wrote
from llm.errors import ModelError, RateLimited, Refused
from llm.tasks.swarm import SynthesizeFindingsInputs, SynthesizeFindingsOutput
from tests.agents.swarm.builders import make_output, make_passage, make_swarm_plan, make_worker
from tests.support.scripted_model import ScriptedModel


@pytest.mark.parametrize(
    ("asked", "chosen", "style"),
    [("", None, ""), ("", "shorter", "shorter"), ("longer", "shorter", "longer")],
)
async def test_the_writer_of_a_swarm_knows_the_form_that_the_person_chose(
    asked: AnswerStyle, chosen: AnswerStyle | None, style: AnswerStyle
) -> None:
    output = make_output("w0", make_passage("p", "It costs 12."), text="It costs 12 [p#0].")
    model = ScriptedModel([SynthesizeFindingsOutput(answer="It costs 12. [1]")])

    made = await SynthesizeAgent(model=model, texts=load_texts()).work(
        Reads(
            canonical_question="What does it cost?",
            language="en",
            swarm_plan=make_swarm_plan(make_worker("w0")).model_dump(mode="json"),
            worker_outputs={"w0": output.model_dump(mode="json")},
            answer_style=asked,
            preferences=Preferences(style=chosen),
        )
    )

    assert isinstance(made, Wrote)
    [call] = model.calls
    assert isinstance(call.inputs, SynthesizeFindingsInputs)
    assert call.inputs.style == style


@pytest.mark.parametrize(
    "error", [RateLimited("status 429", retry_after_seconds=9.0), Refused("no")]
)
async def test_a_writer_that_fails_leaves_the_texts_of_the_workers_and_names_what_failed(
    error: ModelError,
) -> None:
    plan = make_swarm_plan(
        make_worker("w0", objective="What does it cost?"),
        make_worker("w1", objective="Find who supports it.", subject="Support"),
    )
    output = make_output("w0", make_passage("p", "It costs 12."), text="It costs 12 [p#0].")
    ledger = {
        "tasks": [
            {"task_id": "w1", "title": "w1", "state": "failed", "error": "too_busy: status 429"}
        ]
    }
    agent = SynthesizeAgent(model=ScriptedModel([error]), texts=load_texts())

    made = await agent.work(
        Reads(
            canonical_question="What does it cost, and who supports it?",
            language="en",
            swarm_plan=plan.model_dump(mode="json"),
            worker_outputs={"w0": output.model_dump(mode="json")},
            task_ledger=ledger,
        )
    )

    assert isinstance(made, RetryAfter) == isinstance(error, RateLimited)
    left = made.otherwise if isinstance(made, RetryAfter) else made
    assert isinstance(left, Wrote)
    assert "**What does it cost?**\n\nIt costs 12 [1]." in left.writes.response
    assert (
        "**Support**: could not be looked up: the model is receiving too many requests"
        in left.writes.response
    )
    assert left.writes.answered_by == "model"
    *shown, note = left.writes.report_notes
    assert {item["key"] for item in shown} == {"shown_part"}
    assert note["key"] == "report_parts"
