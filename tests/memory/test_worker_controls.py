"""The instructions of operators, which running workers read when they announce themselves."""

from typing import Any

from memory.key_names import controls_key
from memory.presence import RedisPresence
from memory.worker_controls import RedisControls, WorkerControls

ROLES = ("lang", "search")


async def test_a_process_reads_the_instructions_when_it_announces_itself(client: Any) -> None:
    controls, process = RedisControls(client), RedisPresence(client).of_process("host", 7, ROLES)
    assert await process.announce() == WorkerControls()

    await controls.pause(["search", "response"])
    await controls.set_level("debug")
    await controls.reload_prompts()
    await controls.reload_prompts()

    expected = WorkerControls(frozenset({"search", "response"}), "debug", 2)
    assert await process.announce() == expected == await controls.read()


async def test_what_is_taken_back_is_as_it_was(client: Any) -> None:
    controls = RedisControls(client)
    await controls.pause(ROLES)
    await controls.set_level("debug")

    await controls.resume(["lang"])
    await controls.set_level("")
    rest = await controls.read()
    await controls.resume(["search"])

    assert rest == WorkerControls(frozenset({"search"}))
    assert not await client.exists(controls_key())


async def test_instructions_of_another_release_stop_no_process(client: Any) -> None:
    await client.hset(
        controls_key(), mapping={"level": "shout", "reloads": "many", "dance": "1", "paused/x": "1"}
    )

    assert await RedisControls(client).read() == WorkerControls(frozenset({"x"}))


async def test_a_process_is_shown_once_with_its_paused_roles(client: Any) -> None:
    presence = RedisPresence(client)
    process = presence.of_process("host", 7, ROLES)
    await process.announce()

    await process.announce(("search",))
    [paused] = await presence.living()
    await process.announce()
    [resumed] = await presence.living()

    assert (paused.paused, resumed.paused) == (("search",), ())
    assert paused.started_at == resumed.started_at
