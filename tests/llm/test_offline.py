from decimal import Decimal
from typing import Any

import pytest

from llm.call_log import record_calls
from llm.errors import NoModel
from llm.offline.model import OfflineModel
from llm.port import Task, Usage
from llm.tasks import clarify, essence, scope, translate
from tests.llm.sample_task import COLOUR, SKY, Colour, Question

HERE = {"colour": "tests.llm.test_offline"}


def answer(inputs: Question) -> Colour:
    """Be a rule of this test's own."""
    return Colour(name=inputs.text.split()[-1])


async def test_a_rule_answers_for_nothing_and_says_that_it_is_offline() -> None:
    model = OfflineModel(HERE)

    with record_calls() as calls:
        answered = await model.ask(COLOUR, SKY)

    assert answered.output == Colour(name="sky?")
    assert (answered.model, answered.usage, answered.cost_usd) == ("offline", Usage(), Decimal(0))
    assert [(call.model, call.cost_usd, call.error) for call in calls] == [
        ("offline", Decimal(0), None)
    ]


async def test_the_same_question_has_the_same_hash_and_another_has_another() -> None:
    with record_calls() as calls:
        for question in (SKY, SKY, Question(text="And the sea?")):
            await OfflineModel(HERE).ask(COLOUR, question)

    first, again, other = (call.prompt_hash for call in calls)
    assert first == again != other


async def test_a_task_without_a_rule_needs_a_model_and_nothing_was_asked() -> None:
    with record_calls() as calls, pytest.raises(NoModel, match="for the task 'colour', found none"):
        await OfflineModel().ask(COLOUR, SKY)

    assert calls == []


async def test_a_rule_that_gives_back_something_else_is_a_failure() -> None:
    model = OfflineModel(HERE)
    task = Task(name="colour", inputs=Question, output=Question)

    with pytest.raises(TypeError, match="to return Question, found Colour"):
        await model.ask(task, SKY)


@pytest.mark.parametrize("task", [translate.TASK, essence.TASK, scope.TASK, clarify.TASK])
async def test_what_a_turn_means_is_no_task_of_rules(task: Task[Any, Any]) -> None:
    with pytest.raises(NoModel):
        await OfflineModel().ask(task, SKY)
