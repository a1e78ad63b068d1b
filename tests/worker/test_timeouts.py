"""How long an agent may take."""

import asyncio

import pytest

from tests.support.waiting import yield_to_tasks
from worker.timeouts import run_with_timeout


async def quick() -> str:
    return "done"


async def in_turns(gate: asyncio.Event) -> str:
    await yield_to_tasks()
    await gate.wait()
    await yield_to_tasks()
    return "done"


async def test_who_never_waits_is_done_at_once() -> None:
    assert await run_with_timeout(quick(), 0.0) == "done"


async def test_who_waits_in_turns_gets_every_answer() -> None:
    gate = asyncio.Event()
    asyncio.get_running_loop().call_soon(gate.set)

    assert await run_with_timeout(in_turns(gate), 5.0) == "done"


async def test_who_waits_too_long_is_ended() -> None:
    with pytest.raises(TimeoutError):
        await run_with_timeout(in_turns(asyncio.Event()), 0.01)


@pytest.mark.parametrize("waits", [False, True])
async def test_an_error_comes_out_as_it_is(waits: bool) -> None:
    async def fails() -> None:
        if waits:
            await yield_to_tasks()
        raise LookupError("nowhere")

    with pytest.raises(LookupError, match="nowhere"):
        await run_with_timeout(fails(), 5.0)


async def test_a_limit_inside_a_limit_ends_only_what_is_inside() -> None:
    async def patient() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            await yield_to_tasks()
            return "went on"
        return "never"

    assert await run_with_timeout(patient(), 5.0) == "went on"


async def test_a_cancellation_reaches_the_one_who_waits_and_can_clean_up() -> None:
    cleaned = asyncio.Event()
    begun = asyncio.Event()

    async def careful() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await yield_to_tasks()
            cleaned.set()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run_with_timeout(careful(), 5.0))
        await begun.wait()
        task.cancel()

    assert task.cancelled()
    assert cleaned.is_set()


async def test_groups_of_tasks_work_inside() -> None:
    async def many() -> int:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(quick()) for _ in range(3)]
        return len([task.result() for task in tasks])

    assert await run_with_timeout(many(), 5.0) == 3
