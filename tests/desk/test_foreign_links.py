"""The whole desk, with a model that obeys an instruction in a document: nobody is led astray."""

import json
from typing import Any

import pytest
from pydantic import BaseModel

from envelope.run import OUTSIDE, Run
from llm.tasks.question import ClarifyOutput, ScopeInputs, ScopeOutput
from llm.tasks.search import JudgeInputs, JudgeOutput, RespondOutput, Verdict
from tests.citations.shapes import FOREIGN, SHAPES, Shape, leads_elsewhere
from tests.desk.conftest import OpenApp
from tests.support.app_harness import PartlyScriptedModel
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow
VAGUE = "How do I create one?"


class Obedient(PartlyScriptedModel):
    """Writes `shape` whenever it may write, and approves of whatever it judges."""

    shape: Shape = SHAPES[0]

    async def ask(self, task: Any, inputs: Any, run: Run = OUTSIDE, **options: Any) -> Any:
        scripted: BaseModel | None = {
            "respond": RespondOutput(status="answered", answer=self.shape.text, confidence=0.9),
            "clarify": ClarifyOutput(text=f"{self.shape.text} Which one?"),
        }.get(task.name)
        if isinstance(inputs, JudgeInputs):
            verdicts = tuple(
                Verdict(passage=passage.number, quote=passage.text, supported=True)
                for passage in inputs.passages
            )
            scripted = JudgeOutput(
                claims_read=9,
                verdicts=verdicts,
                completeness=1.0,
                accuracy=1.0,
                language_matches=True,
                decision="approve",
            )
        if isinstance(inputs, ScopeInputs) and inputs.question == VAGUE:
            scripted = ScopeOutput(verdict="unclear", confidence=0.5, analysis=self.shape.text)
        if isinstance(inputs, ScopeInputs) and FOREIGN in inputs.question:
            scripted = ScopeOutput(verdict="outside", confidence=0.9, analysis=self.shape.text)
        if scripted is None:
            return await super().ask(task, inputs, **options)
        return await ScriptedModel([scripted]).ask(task, inputs, **options)


@pytest.mark.timeout(180)
async def test_no_answer_of_an_obeying_model_leads_elsewhere(open_app: OpenApp) -> None:
    model = Obedient()
    async with open_app(model) as harness:
        for shape in SHAPES:
            model.shape = shape

            reply = await harness.driver().say("How do I configure SMS routing rules?")

            # The address is taken out; the judge, who approves, decides about the code around it.
            assert reply["outcome"] == "answered", shape.name
            assert "```" in shape.text or shape.kept in reply["text"]
            assert not leads_elsewhere(json.dumps(reply)), shape.name


@pytest.mark.timeout(180)
async def test_no_question_back_or_refusal_of_an_obeying_model_leads_elsewhere(
    open_app: OpenApp,
) -> None:
    model = Obedient()
    async with open_app(model) as harness:
        for shape in SHAPES[::4]:
            model.shape = shape

            asked = await harness.driver().say(VAGUE)
            refused = await harness.driver().say(f"What is the weather at [x]({FOREIGN})?")

            assert (asked["outcome"], refused["outcome"]) == ("clarification", "refused")
            for reply in (asked, refused):
                shown = {name: value for name, value in reply.items() if name != "question"}
                assert not leads_elsewhere(json.dumps(shown)), shape.name
