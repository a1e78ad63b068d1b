"""What the door of a process submits is worked on by the process itself."""

import asyncio
from contextvars import ContextVar
from typing import Any

from broker.keys import stream_key
from broker.port import Submission
from envelope.role import Role
from gateway.desk import Desk, Message
from tests.broker.hands import submission
from tests.broker.rig import eventually
from tests.worker.cast import House

REQUEST: ContextVar[str] = ContextVar("request", default="nobody's")


async def test_a_conversation_goes_on_where_it_was(house: House) -> None:
    async with house.open() as desk:
        await desk.ask(Message("How do I add a rule?", "c1", "m1"))
        await desk.ask(Message("And how do I delete one?", "c1", "m2"))

    _, second = house.script.seen[Role.LANG]
    assert [turn["text"] for turn in second["history"]] == [
        "How do I add a rule?",
        "Open Routing [1].",
    ]


async def test_a_worker_works_in_no_context_of_the_door_that_calls_it(house: House) -> None:
    seen: list[str] = []

    async def noting(_reads: object) -> dict[str, Any]:
        seen.append(REQUEST.get())
        return {}

    house.script.next(Role.LANG, noting)

    async with house.open() as desk:
        REQUEST.set("the first one's")
        await desk.ask(Message("How do I add a rule?", "c1", "m1"))

    assert seen == ["nobody's"]


async def test_a_worker_in_doubt_finds_what_it_owns_without_knowing(house: House) -> None:
    house.broker = house.make_broker(lease_seconds=60.0)
    process, desk = house.process(), house.desk()
    await house.broker.prepare([role.value for role in Role])
    manager = process.workers[0]
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        reply = tasks.create_task(desk.ask(Message("How?", "c1", "m1")))

        async def owned() -> Any:
            return await house.client.xreadgroup(
                "workers", manager.consumer, {stream_key(manager.role, 0): ">"}
            )

        await eventually(owned)
        async with process.running():
            manager.doubt()
            # Another question ends the read that it may wait in.
            other = house.make_broker()
            await other.submit(_other(desk))
            await other.close()
            assert (await reply)["outcome"] == "answered"


def _other(desk: Desk) -> Submission:
    return submission(desk.question(Message("Else?", "c2", "m1")))
