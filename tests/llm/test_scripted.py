import asyncio

import pytest
from pydantic import BaseModel

from llm.errors import ModelTimeout
from llm.port import Task
from tests.llm.sample_task import BLUE, COLOUR, SKY, Colour, Question
from tests.support.scripted_model import ScriptedModel, ScriptError, gate

OTHER = Task(name="other", inputs=Question, output=Colour)


async def test_a_script_is_played_in_order_and_records_the_requests() -> None:
    model = ScriptedModel([BLUE, Colour(name="grey")])

    answers = [await model.ask(COLOUR, SKY), await model.ask(OTHER, SKY, skip=1)]

    assert [answer.output.name for answer in answers] == ["blue", "grey"]
    assert [(asked.task, asked.skip) for asked in model.calls] == [("colour", 0), ("other", 1)]
    model.assert_complete()


async def test_a_script_by_task_answers_tasks_in_any_order() -> None:
    model = ScriptedModel({"colour": [BLUE], "other": [Colour(name="grey")]})

    other = await model.ask(OTHER, SKY)
    colour = await model.ask(COLOUR, SKY)

    assert (other.output.name, colour.output.name) == ("grey", "blue")


async def test_an_error_in_the_script_is_raised() -> None:
    with pytest.raises(ModelTimeout):
        await ScriptedModel([ModelTimeout("slow")]).ask(COLOUR, SKY)


async def test_a_function_in_the_script_sees_the_inputs() -> None:
    def answer(inputs: BaseModel) -> BaseModel:
        return Colour(name=str(inputs.model_dump()["text"]))

    answered = await ScriptedModel([answer]).ask(COLOUR, SKY)

    assert answered.output.name == SKY.text


async def test_a_gate_holds_the_answer_back_until_it_is_opened() -> None:
    closed = gate(BLUE)
    model = ScriptedModel([closed])

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(model.ask(COLOUR, SKY))
        await closed.reached.wait()
        waited = not asking.done()
        closed.opened.set()

    assert waited
    assert asking.result().output == BLUE


@pytest.mark.parametrize("script", [[], {"other": [BLUE]}], ids=["in order", "by task"])
async def test_a_question_too_many_is_an_error(script: list[Colour]) -> None:
    with pytest.raises(ScriptError, match="no more questions, found task 'colour'"):
        await ScriptedModel(script).ask(COLOUR, SKY)


async def test_an_output_of_another_type_is_an_error() -> None:
    with pytest.raises(ScriptError, match="Colour"):
        await ScriptedModel([SKY]).ask(COLOUR, SKY)


def test_a_script_that_was_not_played_to_its_end_is_an_error() -> None:
    with pytest.raises(ScriptError, match="left over: 1 of 'colour'"):
        ScriptedModel({"colour": [BLUE], "other": []}).assert_complete()
