"""What a killed process held starts elsewhere, on a system where nothing else happens."""

import os
import signal

import pytest

from broker.keys import question_keys
from tests.faults.timing.process_group import fleet
from tests.support.broker_harness import LAST_RESORT
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.redis, pytest.mark.slow]

LEASE_SECONDS = 1.5
LONG_SECONDS = 300
"""A hundred and fifty leases."""
SLACK_SECONDS = 10.0
"""For a busy machine; `python -m tests.faults.timing` measures how late it really is."""


async def test_the_work_of_a_killed_process_starts_elsewhere_without_traffic(
    redis_url: str,
) -> None:
    async with fleet(redis_url, LEASE_SECONDS, "worker", "worker") as system:
        for _ in range(2):
            asked = await system.ask("wait")
            started = await system.start()
            await system.kill(started["pid"])
            again = await system.start()
            replaced = await system.hire()

            assert again["message"] == asked.message_id
            assert again["at"] - started["at"] < LEASE_SECONDS + SLACK_SECONDS
            assert (await system.end(asked)).fields["outcome"] == "answered"
            assert replaced in system.members


async def test_a_process_that_only_keeps_time_gives_back_what_dead_workers_held(
    redis_url: str,
) -> None:
    async with fleet(redis_url, LEASE_SECONDS, "timekeeper", "worker") as system:
        asked = await system.ask("wait")
        started = await system.start()
        await system.kill(started["pid"])

        async def is_given_back() -> bool:
            (status,) = await system.broker.admin.read_status(["search"])
            return (status.depth, status.in_flight) == (1, 0)

        await wait_until(is_given_back)
        await system.hire()

        assert (await system.start())["message"] == asked.message_id


@pytest.mark.long
async def test_a_handler_that_blocks_its_process_for_leases_is_started_once(redis_url: str) -> None:
    async with fleet(redis_url, 0.6, "worker", "worker") as system:
        asked = await system.ask("block 4")
        ended = await system.end(asked)

        assert ended.fields["outcome"] == "answered"
        assert (await system.start())["message"] == asked.message_id
        assert await system.client.llen("test:started") == 0


@pytest.mark.long
@pytest.mark.timeout(590)
async def test_a_handler_that_blocks_for_three_hundred_seconds_is_started_once(
    redis_url: str,
) -> None:
    async with fleet(redis_url, LEASE_SECONDS, "worker", "worker") as system:
        asked = await system.ask(f"block {LONG_SECONDS}", deadline_seconds=2 * LONG_SECONDS)
        ended = await system.end(asked, patience_seconds=1.5 * LONG_SECONDS)

        assert ended.fields["outcome"] == "answered"
        assert (await system.start())["message"] == asked.message_id
        assert await system.client.llen("test:started") == 0


@pytest.mark.parametrize("survivor", ["timekeeper", "worker"])
async def test_with_one_process_left_every_message_ends_at_its_deadline_once(
    redis_url: str, survivor: str
) -> None:
    async with fleet(redis_url, LEASE_SECONDS, "worker", "worker", survivor) as system:
        *workers, _alive = system.members
        running = [await system.ask("wait", deadline_seconds=2.0) for _ in range(6)]
        behind = [
            await system.ask("work", deadline_seconds=2.0, conversation=asked.conversation_id)
            for asked in running
        ]
        for _ in running:
            await system.start()
        stopped, killed = workers
        os.kill(stopped, signal.SIGSTOP)
        await system.kill(killed)

        late = [await system.lateness(asked) for asked in running]
        after = [await system.lateness(asked) for asked in behind]
        os.kill(stopped, signal.SIGCONT)
        await system.ask("later 0.1")
        await system.start()
        await system.start()

        for asked, seconds in zip([*running, *behind], [*late, *after], strict=True):
            ended = await system.end(asked)
            assert seconds < SLACK_SECONDS
            assert ended.fields in (LAST_RESORT, {"outcome": "answered"})
        results = [fields[b"q"] for _, fields in await system.client.xrange("rd:{0}:results:chat")]
        assert len(results) == len(set(results)) >= 12
        assert {question_keys(asked, 0).name.encode() for asked in running} <= set(results)


async def test_the_deadline_comes_though_the_only_process_blocks_its_loop(redis_url: str) -> None:
    async with fleet(redis_url, LEASE_SECONDS, "worker") as system:
        asked = await system.ask("block 3", deadline_seconds=1.0)
        await system.start()

        late = await system.lateness(asked)

        assert late < SLACK_SECONDS
        assert (await system.end(asked)).fields == LAST_RESORT


async def test_poison_kills_one_process_and_is_buried_after_three_starts(redis_url: str) -> None:
    async with fleet(redis_url, LEASE_SECONDS, "worker", "worker") as system:
        poison = await system.ask("kill")
        starts = [await system.start() for _ in range(3)]
        neighbours = [await system.ask("work") for _ in range(20)]
        ends = [(await system.end(asked)).fields["outcome"] for asked in neighbours]
        replaced = await system.replace_the_dead()

        ended = await system.end(poison)
        (letter,) = await system.broker.admin.list_dead_letters()

        assert ends == ["answered"] * 20
        assert replaced == 1
        assert ended.fields == LAST_RESORT
        assert len({start["pid"] for start in starts}) == 3
        assert (letter.reason, letter.attempts, letter.question) == ("poison", 3, poison)
        assert len(letter.deaths) == 3
        assert "SIGKILL" in letter.error
        assert letter.accepted_at <= letter.queued_at <= letter.at
        assert await system.client.llen("test:started") == 0
