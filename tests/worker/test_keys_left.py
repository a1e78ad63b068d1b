"""What a desk leaves in Redis, against the tables of keys of the broker and of the memory."""

import asyncio
import re
from dataclasses import dataclass

from broker import keys as broker_keys
from envelope.outcome import GaveUp, RetryAfter
from envelope.role import Role
from gateway.desk import Message
from memory import key_names as memory_keys
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

ROW = re.compile(r"^\| (rd:.+?) +\| (\w+) +\|.+\| (.+?) +\|$", re.MULTILINE)
ENDS_WITH_WORK = ("members:", "fields:")
"""Has no time to live, and is gone as soon as nothing is open."""
STAYS = re.compile(r"never$|entries: settled$")
"""Streams, and what a Redis is set up with once."""


@dataclass(frozen=True)
class Row:
    name: re.Pattern[str]
    kind: str
    dies: str


@dataclass(frozen=True)
class Key:
    name: str
    kind: str
    lives_ms: int


def rows() -> list[Row]:
    text = f"{broker_keys.__doc__}\n{memory_keys.__doc__}"
    return [
        Row(_pattern(name), {"str": "string"}.get(kind, kind), dies)
        for name, kind, dies in ROW.findall(text)
    ]


def _pattern(name: str) -> re.Pattern[str]:
    escaped = re.sub(r"<[^>]+>|\{\w+\}", "@", name)
    return re.compile(re.escape(escaped).replace("@", "[^:]+"))


def row_of(key: Key) -> Row:
    matching = [row for row in rows() if row.name.fullmatch(key.name)]
    assert len(matching) == 1, f"{key} stands in {len(matching)} rows"
    return matching[0]


async def keys_of(harness: WorkerHarness) -> list[Key]:
    return [
        Key(
            name.decode(),
            (await harness.client.type(name)).decode(),
            await harness.client.pttl(name),
        )
        for name in await harness.client.keys("*")
    ]


async def nothing_open(harness: WorkerHarness) -> bool:
    return not await harness.client.exists("rd:{0}:deadlines")


async def work(harness: WorkerHarness) -> None:
    """Let a desk answer, ask back, fail, wait and forget, and be idle again."""
    harness.script.next(Role.LANG, RetryAfter(0.01, "away"))
    harness.script.next(Role.ESSENCE, {}, {}, ValueError("broken"))
    nothing = {"needs_clarification": True, "clarification_reason": "insufficient_context"}
    harness.script.next(Role.SEARCH, {"search_quality": "poor", **nothing})
    harness.script.next(Role.RESPONSE, GaveUp("no words"))
    texts = ["How do I add a rule?"] * 5
    async with harness.open():
        pushing = harness.desk(result_list="chat")
        async with asyncio.TaskGroup() as tasks:
            for number, text in enumerate(texts):
                tasks.create_task(pushing.ask(Message(text, f"c{number % 3}", f"m{number}")))
        await pushing.ask(Message("/clear_all", "c1", "m9", "clear_all"))
        await wait_until(lambda: nothing_open(harness))


async def test_every_key_that_a_desk_leaves_ends_unless_it_is_a_stream_or_made_once(
    harness: WorkerHarness,
) -> None:
    await work(harness)

    keys = [(key, row_of(key)) for key in await keys_of(harness)]
    streams = [key.name for key, _ in keys if ":stream:" in key.name]
    consumers = [await harness.client.xinfo_consumers(name, broker_keys.GROUP) for name in streams]

    assert [key for key, row in keys if row.kind != key.kind] == [], "each has its type"
    assert len({row.name for _, row in keys}) > 10
    endless = {key.name for key, _ in keys if key.lives_ms < 0}
    assert endless == {key.name for key, row in keys if STAYS.match(row.dies)}
    assert [key for key, row in keys if row.dies.startswith(ENDS_WITH_WORK)] == [], "all is over"
    assert consumers == [[]] * len(streams), "workers that left leave no consumer"
