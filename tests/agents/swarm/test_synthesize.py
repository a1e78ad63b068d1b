import pytest

from agents.swarm.synthesize import Reads, SynthesizeAgent
from config.texts import load_texts
from envelope.conversation import AnswerStyle, Preferences
from envelope.outcome import Wrote
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
