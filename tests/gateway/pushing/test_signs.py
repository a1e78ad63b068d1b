"""The sign that somebody works at a message stays until nobody does any more."""

import asyncio
import json

from gateway.pushing.port import Manners
from gateway.pushing.signs import Signs
from tests.gateway.pushing.rig import Holding, acknowledged, push_door_of, until
from tests.gateway.pushing.wall import Wall, said
from tests.worker.cast import House

EACH = Manners(burst_seconds=0.0, supersedes=False)


async def test_a_sign_that_was_left_to_an_edit_goes_when_that_is_not_accepted(house: House) -> None:
    wall = Wall()
    full = Holding(house.make_broker(quota=0), "submit")
    async with (
        push_door_of(house, wall, manners=EACH) as door,
        push_door_of(house, wall, manners=EACH, broker=full) as other,
        asyncio.TaskGroup() as tasks,
    ):
        await door.intake.accept(said(door.named("c", "1"), "one", 1.0))
        await wall.signed.wait()
        edit = said(door.named("c", "1:2"), "eins", 2.0, edits="1")
        tasks.create_task(other.intake.accept(edit))
        await full.holds.wait()
        await acknowledged(house, "wall")
        assert "rested" not in wall.calls

        full.goes_on.set()

        await until(lambda: "rested" in wall.calls)


async def test_a_sign_goes_also_when_its_own_event_comes_again_meanwhile(house: House) -> None:
    wall = Wall()
    async with push_door_of(house, wall, manners=EACH) as door:
        message = said(door.named("c", "1"), "one", 1.0)
        await door.memory.note(message.question, post=json.dumps(message.post))
        await door.memory.open(message.question, message.order)
        signs = Signs(door.memory, wall, deadline_seconds=60.0)

        await signs.rest(message.question, message.post)

    assert wall.calls == ["rested"]
