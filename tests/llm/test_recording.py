import asyncio

import pytest

from llm.errors import ModelUnavailable
from llm.port import ModelCall, record_calls
from tests.llm.sample_task import BLUE, COLOUR, SKY
from tests.support.scripted_model import ScriptedModel


async def test_calls_of_tasks_started_inside_are_recorded() -> None:
    model = ScriptedModel([BLUE, BLUE])

    with record_calls() as calls:
        async with asyncio.TaskGroup() as group:
            group.create_task(model.ask(COLOUR, SKY))
            group.create_task(model.ask(COLOUR, SKY))

    assert [call.task for call in calls] == ["colour", "colour"]


async def test_blocks_beside_each_other_do_not_see_each_other_and_blocks_around_see_all() -> None:
    async def ask(number: int) -> int:
        with record_calls() as calls:
            for _ in range(number):
                await ScriptedModel([BLUE]).ask(COLOUR, SKY)
        return len(calls)

    with record_calls() as outer:
        counts = await asyncio.gather(ask(1), ask(3))

    assert tuple(counts) == (1, 3)
    assert len(outer) == 4


async def test_recorded_calls_survive_an_error_in_the_block() -> None:
    model = ScriptedModel([BLUE, ModelUnavailable("down")])
    kept: list[list[ModelCall]] = []

    async def ask_twice() -> None:
        with record_calls() as calls:
            kept.append(calls)
            await model.ask(COLOUR, SKY)
            await model.ask(COLOUR, SKY)

    with pytest.raises(ModelUnavailable):
        await ask_twice()

    assert [call.error for call in kept[0]] == [None, "ModelUnavailable: down"]


async def test_without_a_block_nothing_is_kept() -> None:
    await ScriptedModel([BLUE]).ask(COLOUR, SKY)

    with record_calls() as calls:
        pass

    assert calls == []
