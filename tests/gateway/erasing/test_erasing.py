"""A word that somebody wrote is found nowhere once its conversation is forgotten."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from broker.keys import record_of
from broker.transport.connect import connect
from envelope.outcome import RetryAfter
from envelope.question import Question
from envelope.role import Role
from gateway.conversations import Conversations
from gateway.desk import Desk, Message, erase
from memory.model_calls import RedisCacheStore
from tests.gateway.erasing.canary import files_with, keys_with, make_canary
from tests.gateway.erasing.conftest import RewritingHarness, run_restarted
from tests.support.http_server import HttpServerFixture, open_http_server
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.redis]

PATH = "/v1/conversations/c1"
ASKS_BACK = {"needs_clarification": True, "clarification_reason": "ambiguous_query"}
LONG_AGO = 3_600


@dataclass
class ErasureDriver:
    """A conversation about one word, in which everything happens that leaves something."""

    harness: RewritingHarness
    http_server: HttpServerFixture
    client: httpx.AsyncClient
    word: str = field(default_factory=make_canary)
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(self, text: str, message_id: str) -> Any:
        sent = {"text": text, "message_id": message_id}
        return await self.client.post(f"{PATH}/messages", json=sent)

    async def leave_traces(self) -> None:
        """Leave an answer, a question back, a thumb with a reason and a dead letter."""
        script, word = self.harness.script, self.word
        script.next(Role.RESPONSE, {"response": f"Open {word} [1]."})
        assert (await self.ask(f"How do I add {word}?", "m1")).json()["outcome"] == "answered"
        rated = {"rating": "down", "reason": f"no {word}"}
        await self.client.post(f"{PATH}/messages/m1/feedback", json=rated)
        script.next(Role.ESSENCE, {**ASKS_BACK, "canonical_question": f"What of {word}?"})
        script.next(Role.CLARIFICATION, {"response": f"Which {word}?"})
        assert (await self.ask(f"And {word}?", "m2")).json()["outcome"] == "clarification"
        script.next(Role.SEARCH, *[ValueError(f"broken by {word}")] * 3)
        assert (await self.ask(f"Again {word}?", "m3")).json()["outcome"] == "failed"
        assert len(await self.harness.broker.admin.list_dead_letters()) > 0

    async def under_way(self, tasks: asyncio.TaskGroup) -> None:
        """Have a question worked on, with a paid answer that others share, and one behind it."""
        held = self.harness.script.hold(Role.ESSENCE, canonical_question=f"late {self.word}")
        self.goes_on = held.goes_on
        tasks.create_task(self.ask(f"Now {self.word}?", "m4"))
        await held.reached.wait()
        await self.share("m4")
        tasks.create_task(self.ask(f"And then {self.word}?", "m5"))
        await wait_until(lambda: self.harness.client.exists("rd:{0}:conversation:acme/docs/c1"))

    async def share(self, message_id: str) -> None:
        """Share what a model answered, as an agent does."""
        store = RedisCacheStore(self.harness.client, shards=1, record_of=record_of(1))
        await store.put(
            Shared(name_question_of(message_id)), self.word.encode(), ttl_seconds=LONG_AGO
        )

    async def is_gone(self) -> None:
        """Check that the word is nowhere, and gets nowhere again."""
        assert await keys_with(self.harness.client, self.word) == []


@dataclass
class Shared:
    question: Question
    tenant: str = "acme"
    assistant: str = "docs"
    content_hash: str = "hash"


def name_question_of(message_id: str, conversation_id: str = "c1") -> Question:
    return Question(
        tenant="acme", assistant="docs", conversation_id=conversation_id, message_id=message_id
    )


async def by_http(driver: ErasureDriver) -> None:
    assert (await driver.client.delete(PATH)).status_code == 204


async def by_operator(driver: ErasureDriver) -> None:
    stored = Conversations(driver.harness.client, shards=1, ttl_seconds=60)
    assert (await erase(driver.harness.broker.eraser, stored, name_question_of("-"))).found


async def by_command(driver: ErasureDriver) -> None:
    driver.goes_on.set()
    driver.harness.script.next(Role.COMMAND, {"forget": "all"})
    reply = await driver.ask("/clear_all", "m9")
    assert reply.json()["outcome"] == "answered"


async def by_operator_of(harness: RewritingHarness) -> None:
    stored = Conversations(harness.client, shards=1, ttl_seconds=60)
    assert (await erase(harness.broker.eraser, stored, name_question_of("-"))).messages == 2_300


async def submit_question(desk: Desk, message: Message) -> Question:
    await desk.submit(message)
    return desk.question(message)


Way = Callable[[ErasureDriver], Awaitable[None]]


@pytest.mark.parametrize("way", [by_http, by_operator, by_command])
async def test_a_word_is_found_nowhere_once_its_conversation_is_forgotten(
    way: Way, harness: RewritingHarness, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with harness.open(), open_http_server(harness) as http_server:
        driver = ErasureDriver(
            harness,
            http_server,
            await http_server.secret(scopes=("ask", "read", "feedback", "forget")),
        )
        await driver.leave_traces()
        async with asyncio.TaskGroup() as tasks:
            await driver.under_way(tasks)
            kinds = {key.split(":")[2] for key in await keys_with(harness.client, driver.word)}
            assert kinds >= {"journal", "letters", "mem", "conversation", "frames"}, kinds
            assert files_with(folder, driver.word)

            await way(driver)
            await driver.is_gone()
            driver.goes_on.set()
        await wait_until(lambda: _is_idle(harness))

        await driver.is_gone()
        await wait_until(lambda: _is_written_anew(folder, driver.word))
        log = capsys.readouterr().err
    assert driver.word not in log
    assert "hop_failed" in log


async def _is_idle(harness: RewritingHarness) -> bool:
    return not await harness.client.exists("rd:{0}:deadlines")


async def _is_written_anew(folder: Path, word: str) -> bool:
    return files_with(folder, word) == []


async def test_entries_waiting_for_vanished_workers_are_forgotten_too(
    harness: RewritingHarness, folder: Path
) -> None:
    async with open_http_server(harness) as http_server:
        driver = ErasureDriver(
            harness, http_server, await http_server.secret(scopes=("ask", "read", "forget"))
        )
        async with asyncio.TaskGroup() as tasks:
            async with harness.open():
                harness.script.next(Role.ESSENCE, RetryAfter(8.0, f"away for {driver.word}"))
                parked = tasks.create_task(driver.ask(f"Parked {driver.word}?", "m1"))
                await wait_until(lambda: harness.client.exists("rd:{0}:parked"))
            other = tasks.create_task(driver.ask(f"Waiting {driver.word}?", "m2"))
            await wait_until(lambda: harness.client.exists("rd:{0}:conversation:acme/docs/c1"))
            assert await keys_with(harness.client, driver.word)

            await by_http(driver)

            await driver.is_gone()
        assert [reply.json()["outcome"] for reply in (await parked, await other)] == [
            "superseded",
            "superseded",
        ]


async def test_two_who_forget_at_once_and_one_who_forgets_again_all_succeed(
    harness: RewritingHarness,
) -> None:
    async with harness.open(), open_http_server(harness) as http_server:
        driver = ErasureDriver(
            harness, http_server, await http_server.secret(scopes=("ask", "feedback", "forget"))
        )
        await driver.leave_traces()

        async with asyncio.TaskGroup() as tasks:
            both = [tasks.create_task(driver.client.delete(PATH)) for _ in range(2)]
        again = await driver.client.delete(PATH)

        assert [reply.status_code for reply in (*[await task for task in both], again)] == [204] * 3
        await driver.is_gone()
        reply = await driver.ask("And now?", "m6")
        assert reply.json()["outcome"] == "answered"


async def test_a_conversation_of_thousands_of_messages_leaves_no_journal(
    harness: RewritingHarness,
) -> None:
    word = make_canary()
    async with asyncio.TaskGroup() as tasks:
        desk = harness.desk(deadline_seconds=60.0)
        for number in range(2_300):
            message = Message(f"Number {number} of {word}?", "c1", f"m{number}")
            tasks.create_task(harness.broker.producer.cancel(await submit_question(desk, message)))

    await by_operator_of(harness)

    assert await keys_with(harness.client, word) == []


async def test_an_acknowledged_erasure_survives_a_killed_redis(
    harness: RewritingHarness, server: "subprocess.Popen[bytes]", folder: Path
) -> None:
    async with harness.open(), open_http_server(harness) as http_server:
        driver = ErasureDriver(
            harness, http_server, await http_server.secret(scopes=("ask", "feedback", "forget"))
        )
        await driver.leave_traces()
        await by_http(driver)

    server.kill()
    server.wait()
    with run_restarted(folder):
        fresh = connect(f"unix://{folder / 'r.sock'}")
        left = await keys_with(fresh, driver.word)
        await fresh.aclose()
    assert left == []
