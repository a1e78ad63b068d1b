"""What a pause keeps, with results of tools, is found nowhere once it is forgotten or over."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis

from broker.keys import record_of
from envelope.conversation import PauseReply
from envelope.outcome import Wrote
from envelope.question import Question
from envelope.role import Role
from gateway.conversations import Conversations
from gateway.desk import Desk, Message, erase
from manager.flows import NEWEST
from manager.machine import Limits
from memory.conversation import RedisMemory
from memory.key_names import conversation_keys
from memory.receipts import RECEIPT_SECONDS, RedisReceipts
from tests.gateway.erasing.canary import files_with, make_canary, values_with
from tests.gateway.erasing.conftest import RewritingHarness
from tests.gateway.http.conftest import any_harness
from tests.support.pausing_flow import AskingReads, AskingTool, AskingWrites, make_flow
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

__all__ = ["any_harness"]

pytestmark = pytest.mark.slow

ASKED = Message("How do I add a rule?", "c1", "m1")
APPROVED = PauseReply(pause_id="m1", approve=True)


class SecretTool(AskingTool):
    """Returns a word with the call that needs no approval, before the pause."""

    def __init__(self, word: str) -> None:
        super().__init__("approval")
        self._word = word

    async def work(self, reads: AskingReads) -> Any:
        if reads.tool_call["key"] == "free":
            return Wrote(AskingWrites(multi_tool_results={"free": self._word}))
        return await super().work(reads)


@pytest.fixture
async def either(any_harness: WorkerHarness) -> AsyncIterator[WorkerHarness]:
    """A desk on an embedded and on a real Redis that compresses nothing: a dump shows each byte."""
    if isinstance(any_harness.client, FakeAsyncRedis):
        yield any_harness
        return
    await any_harness.client.config_set("rdbcompression", "no")
    yield any_harness
    await any_harness.client.config_set("rdbcompression", "yes")


class CallName:
    """The identity of a tool call with an effect."""

    action, name = "act", "call-1"


def prepare(harness: WorkerHarness, word: str) -> None:
    harness.flows = {NEWEST["search"]: make_flow("approval")}
    harness.further_agents = [SecretTool(word)]


async def keep_receipt(harness: WorkerHarness, question: Question, word: str) -> str:
    """Store the result of a call with an effect; return its key."""
    receipts = RedisReceipts(
        harness.client, question, branch="t1", delivery="1-0", shards=1, record_of=record_of(1)
    )
    await receipts.claim(CallName())
    await receipts.finish(CallName(), word.encode())
    return conversation_keys(question, 1).receipts


async def by_operator(harness: WorkerHarness, desk: Desk) -> None:
    stored = Conversations(harness.client, shards=1, ttl_seconds=60)
    assert (await erase(harness.broker.eraser, stored, desk.question(ASKED))).found


async def by_command(harness: WorkerHarness, desk: Desk) -> None:
    harness.script.next(Role.COMMAND, {"forget": "all"})
    reply = await desk.ask(Message("/clear_all", "c1", "m9", command="clear_all"))
    assert reply["outcome"] == "answered"


Way = Callable[[WorkerHarness, Desk], Awaitable[None]]


@pytest.mark.parametrize("way", [by_operator, by_command])
async def test_an_open_pause_leaves_no_byte_once_its_conversation_is_forgotten(
    either: WorkerHarness, way: Way
) -> None:
    word = make_canary()
    prepare(either, word)

    async with either.open() as desk:
        await desk.ask(ASKED)
        keys = conversation_keys(desk.question(ASKED), 1)
        assert keys.kept in await values_with(either.client, word)

        await way(either, desk)

        assert await values_with(either.client, word) == []
        late = await desk.ask(Message("-", "c1", "m10", pause_reply=APPROVED))
    assert (late["outcome"], late["text"]) == ("refused", "pause_over/en")
    assert await values_with(either.client, word) == []


async def test_a_resumed_message_leaves_no_byte_once_its_conversation_is_forgotten(
    either: WorkerHarness,
) -> None:
    word = make_canary()
    prepare(either, word)

    async with either.open() as desk:
        await desk.ask(ASKED)
        held = either.script.hold(Role.RESPONSE)
        async with asyncio.TaskGroup() as tasks:
            reply = tasks.create_task(desk.ask(Message("-", "c1", "m2", pause_reply=APPROVED)))
            await held.reached.wait()
            await keep_receipt(either, desk.question(Message("-", "c1", "m2")), word)
            keys = conversation_keys(desk.question(ASKED), 1)
            assert {keys.kept, keys.receipts} <= {*await values_with(either.client, word)}

            await by_operator(either, desk)

            assert await values_with(either.client, word) == []
            held.goes_on.set()
        await wait_until(lambda: _is_idle(either))

    assert (await reply)["outcome"] == "superseded"
    assert await values_with(either.client, word) == []


async def test_an_expired_pause_leaves_no_byte_of_its_payload(either: WorkerHarness) -> None:
    word = make_canary()
    prepare(either, word)
    either.limits = Limits(pause_seconds=1.0)
    either.memory = RedisMemory(either.client, shards=1, ttl_seconds=1)

    async with either.open():
        desk = either.desk(deadline_seconds=2.0, keep_seconds=1.0)
        asked = await desk.ask(ASKED)
        assert asked["outcome"] == "clarification"
        kept = conversation_keys(desk.question(ASKED), 1).kept
        assert 0 < await either.client.pttl(kept) <= 3_000

        async def is_gone() -> bool:
            return await values_with(either.client, word) == []

        await wait_until(is_gone)


async def test_the_result_of_an_effect_expires_after_a_day(either: WorkerHarness) -> None:
    desk = either.desk()
    await desk.submit(ASKED)

    key = await keep_receipt(either, desk.question(ASKED), make_canary())

    assert 0 < await either.client.ttl(key) <= RECEIPT_SECONDS


@pytest.mark.redis
async def test_no_file_of_redis_holds_a_byte_of_a_forgotten_pause(
    harness: RewritingHarness, folder: Path
) -> None:
    word = make_canary()
    prepare(harness, word)

    async with harness.open() as desk:
        await desk.ask(ASKED)
        assert files_with(folder, word)
        await by_operator(harness, desk)

        async def is_rewritten() -> bool:
            return files_with(folder, word) == []

        await wait_until(is_rewritten)


async def _is_idle(harness: WorkerHarness) -> bool:
    return not await harness.client.exists("rd:{0}:deadlines")
