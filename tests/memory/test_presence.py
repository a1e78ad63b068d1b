"""Which worker processes live, as they announce it themselves."""

import asyncio
from typing import Any

from memory.key_names import controls_key, workers_key
from memory.presence import LivingWorker, RedisControls, RedisPresence, WorkerControls
from tests.support.waiting import wait_until

ROLES = ("lang", "search")


def names(workers: list[LivingWorker]) -> list[tuple[str, int]]:
    return [(worker.host, worker.pid) for worker in workers]


async def test_a_process_that_announced_itself_lives_with_its_roles(client: Any) -> None:
    presence = RedisPresence(client)
    process = presence.of_process("host-b", 7, ROLES)
    await process.announce()
    await presence.of_process("host-a", 8, ("manager",)).announce()
    [_, before] = await presence.living()

    await process.announce()

    [other, own] = await presence.living()
    assert names([other, own]) == [("host-a", 8), ("host-b", 7)]
    assert (own.roles, other.roles) == (ROLES, ("manager",))
    assert own.started_at <= before.seen_at <= own.seen_at
    assert own.started_at == before.started_at


async def test_processes_of_one_name_are_distinguished(client: Any) -> None:
    presence = RedisPresence(client)
    first, other = (presence.of_process("pod", 1, ROLES) for _ in range(2))
    await first.announce()
    await other.announce()

    await first.leave()

    assert names(await presence.living()) == [("pod", 1)]


async def test_a_process_that_left_is_gone_and_its_key_with_the_last(client: Any) -> None:
    presence = RedisPresence(client)
    process = presence.of_process("host", 7, ROLES)
    await process.announce()

    await process.leave()

    assert await presence.living() == []
    assert not await client.exists(workers_key())


async def test_a_process_that_was_never_announced_leaves_silently(client: Any) -> None:
    await RedisPresence(client).of_process("host", 7, ROLES).leave()

    assert not await client.exists(workers_key())


async def test_a_process_that_fell_silent_is_not_shown_and_its_key_dies(client: Any) -> None:
    presence = RedisPresence(client, alive_seconds=0.05)
    await presence.of_process("killed", 7, ROLES).announce()

    async def nobody() -> bool:
        return await presence.living() == [] and not await client.exists(workers_key())

    await wait_until(nobody)


async def test_a_process_is_removed_after_half_a_minute_of_silence(
    client: Any,
) -> None:
    presence = RedisPresence(client)
    await presence.of_process("silent", 7, ROLES).announce()
    [member] = await client.zrange(workers_key(), 0, -1)

    await client.zincrby(workers_key(), -20_000, member)
    assert names(await presence.living()) == [("silent", 7)]
    await client.zincrby(workers_key(), -10_001, member)
    assert await presence.living() == []
    assert await client.zcard(workers_key()) == 1

    await presence.of_process("next", 9, ROLES).announce()
    assert await client.zcard(workers_key()) == 1
    assert names(await presence.living()) == [("next", 9)]


async def test_of_too_many_the_longest_silent_are_left_out(client: Any) -> None:
    presence = RedisPresence(client, most=3)
    for pid in range(5):
        await presence.of_process("host", pid, ROLES).announce()
        await _next_millisecond(client)

    assert names(await presence.living()) == [("host", 2), ("host", 3), ("host", 4)]


async def _next_millisecond(client: Any) -> None:
    """Wait until the clock of Redis shows another millisecond: ties have no order."""
    seconds, micros = await client.time()
    before = (seconds, micros // 1000)

    async def later() -> bool:
        seconds, micros = await client.time()
        return (seconds, micros // 1000) > before

    await wait_until(later)


async def test_invalid_announcements_do_not_hide_processes(client: Any) -> None:
    presence = RedisPresence(client)
    await asyncio.gather(*(presence.of_process("host", pid, ROLES).announce() for pid in (1, 2)))
    [process, _] = await presence.living()
    broken = ("not JSON", "[]", "3", '{"host": "x"}', "[" * 100_000, b"\xff")
    await client.zadd(workers_key(), dict.fromkeys(broken, process.seen_at * 1000))

    assert names(await presence.living()) == [("host", 1), ("host", 2)]


async def test_the_key_has_a_time_to_live(client: Any) -> None:
    await RedisPresence(client).of_process("host", 1, ROLES).announce()

    assert 0 < await client.pttl(workers_key()) <= 30_000


async def test_a_process_reads_the_instructions_when_it_announces_itself(client: Any) -> None:
    controls, process = RedisControls(client), RedisPresence(client).of_process("host", 7, ROLES)
    assert await process.announce() == WorkerControls()

    await controls.pause(["search", "response"])
    await controls.set_level("debug")
    await controls.reload_prompts()
    await controls.reload_prompts()

    expected = WorkerControls(frozenset({"search", "response"}), "debug", 2)
    assert await process.announce() == expected == await controls.read()


async def test_a_withdrawn_announcement_restores_the_earlier_state(client: Any) -> None:
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
