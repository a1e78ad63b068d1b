import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from structlog.dev import ConsoleRenderer
from structlog.testing import capture_logs

from broker.transport.connect import connect
from gateway.telegram.connection import HEADER, Polling, Updates, connect_bot
from memory.presence import RedisDuty
from tests.gateway.telegram.server_process import serve_telegram
from tests.support.chat_harness import ANSWER, open_connector, wait_until_acknowledged
from tests.support.fake_telegram import BotApi, RefusedError, flood
from tests.support.telegram_harness import PERSON, SECRET, calls_of, channel_of, wait_until_settled
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

CONFLICT_SECONDS = 0.05


KEEP_SECONDS = 0.02


HOOKED = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)


def make_update(number: int, text: str = "How?") -> dict[str, Any]:
    message = {"message_id": number, "date": 1, "chat": {"id": 7, "type": "private"},
               "from": PERSON, "text": text}  # fmt: skip
    return {"update_id": number, "message": message}


@dataclass
class ScriptedDuty(RedisDuty):
    """A duty that is held when the test says so."""

    mine: bool = False
    asked: int = 0
    left: bool = False

    async def keep(self, seconds: float) -> bool:
        assert seconds > KEEP_SECONDS
        self.asked += 1
        return self.mine

    async def leave(self) -> None:
        self.left = True


class UnresponsiveApi(ScriptedDuty):
    """A duty whose client loses a cancellation inside its first command."""

    def __init__(self) -> None:
        super().__init__(mine=True)
        self.asks = asyncio.Event()

    async def keep(self, seconds: float) -> bool:
        if not self.asks.is_set():
            self.asks.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        return await super().keep(seconds)


def on_duty(harness: WorkerHarness, holder: str) -> RedisDuty:
    return RedisDuty(harness.client, "telegram", "polling", holder)


@asynccontextmanager
async def polling(
    harness: WorkerHarness, api: BotApi, duty: RedisDuty | None = None
) -> AsyncIterator[None]:
    """Have a separate process poll while inside."""
    calls = calls_of(harness, api)
    async with (
        connect_bot(calls.bot) as me,
        open_connector(harness, channel_of(calls, api)) as connector,
    ):
        updates = Updates(calls, me, connector)
        poll = Polling(
            calls.bot,
            updates,
            duty=duty or ScriptedDuty(mine=True),
            unavailable=connector.unavailable,
            conflict_seconds=CONFLICT_SECONDS,
            keep_seconds=KEEP_SECONDS,
        )
        connector.spawn(poll.run())
        yield


async def wait_until_answered(harness: WorkerHarness, api: BotApi, count: int) -> None:
    await wait_until(lambda: sum(ANSWER in text for text in api.texts(7)) == count)
    await wait_until_settled(harness, api)
    await wait_until(lambda: api.updates == [])
    assert len(api.chats) == count


async def test_of_two_processes_one_polls_and_the_other_goes_on_when_it_stops(
    harness: WorkerHarness, api: BotApi
) -> None:
    async with harness.open(), AsyncExitStack() as first:
        await first.enter_async_context(polling(harness, api, on_duty(harness, "first")))
        await wait_until(lambda: api.polls > 0)
        async with polling(harness, api, on_duty(harness, "second")):
            api.queue_update(make_update(1))
            await wait_until_answered(harness, api, 1)
            await first.aclose()
            api.queue_update(make_update(2))
            await wait_until_answered(harness, api, 2)

    assert api.conflicts == []


async def test_another_process_polls_after_the_polling_process_died(
    harness: WorkerHarness, api: BotApi
) -> None:
    await on_duty(harness, "dead").keep(0.3)
    async with harness.open(), polling(harness, api, on_duty(harness, "another")):
        api.queue_update(make_update(1))
        await wait_until_answered(harness, api, 1)


async def test_only_the_process_on_duty_polls(harness: WorkerHarness, api: BotApi) -> None:
    duty = ScriptedDuty()
    async with polling(harness, api, duty):
        await wait_until(lambda: duty.asked > 2)
        assert api.polls == 0
        duty.mine = True
        await wait_until(lambda: api.polls > 0)
    assert duty.left


async def test_polling_ends_even_if_a_client_loses_the_cancellation(
    harness: WorkerHarness, api: BotApi
) -> None:
    duty = UnresponsiveApi()
    async with polling(harness, api, duty):
        await duty.asks.wait()
    assert duty.left


async def test_two_processes_that_both_poll_take_in_each_update_once_and_either_goes_on_alone(
    harness: WorkerHarness, api: BotApi
) -> None:
    async with harness.open():
        with capture_logs() as logged:
            async with polling(harness, api):
                async with polling(harness, api):
                    await wait_until(lambda: len(api.conflicts) > 3)
                    api.queue_update(make_update(1))
                    await wait_until_answered(harness, api, 1)
                api.queue_update(make_update(2))
                await wait_until_answered(harness, api, 2)

    said = [line["event"] for line in logged]
    assert said.count("polling_conflict") == 2  # each once a minute
    assert "polling_failed" not in said
    assert "background_task_failed" not in said


async def test_an_old_update_that_comes_again_after_a_restart_is_answered_once(
    harness: WorkerHarness, api: BotApi
) -> None:
    async with harness.open():
        async with polling(harness, api):
            api.queue_update(make_update(1))
            await wait_until_answered(harness, api, 1)

        async with polling(harness, api):
            api.queue_update(make_update(1))
            api.queue_update(make_update(2))
            await wait_until_answered(harness, api, 2)


@pytest.mark.parametrize(
    "refusal", [RefusedError(409, HOOKED), flood(1), RefusedError(502, "Bad Gateway")]
)
async def test_polling_waits_while_telegram_gives_nothing_and_goes_on_then(
    harness: WorkerHarness, api: BotApi, refusal: RefusedError
) -> None:
    api.refusals["getUpdates"] = [refusal]
    async with harness.open(), polling(harness, api):
        api.queue_update(make_update(1))
        await wait_until_answered(harness, api, 1)


async def test_an_update_that_nobody_can_read_does_not_keep_those_after_it(
    harness: WorkerHarness, api: BotApi
) -> None:
    async with harness.open(), polling(harness, api):
        api.queue_update(make_update(1, "half of a character \ud800"))
        api.queue_update(make_update(2))

        await wait_until_answered(harness, api, 1)


@pytest.mark.parametrize(
    ("refusal", "event"),
    [
        (RefusedError(409, HOOKED), "polling_blocked_by_webhook"),
        (RefusedError(409, "Conflict: terminated by other getUpdates"), "polling_conflict"),
    ],
)
async def test_the_command_names_the_other_receiver_of_the_updates_in_one_line(
    harness: WorkerHarness, api: BotApi, refusal: RefusedError, event: str
) -> None:
    api.refusals["getUpdates"] = [refusal]
    with capture_logs() as logged:
        async with polling(harness, api):
            await wait_until(lambda: api.polls)

    (line,) = [line for line in logged if line["event"] == event]
    assert line.pop("log_level") == "warning"
    shown: dict[str, Any] = {**line, "level": "warning", "logger": "gateway"}
    shown["timestamp"] = "2026-11-21T16:08:57.334765Z"
    assert len(ConsoleRenderer(colors=False)(None, "", shown)) <= 80


pytestmark = [pytest.mark.redis, pytest.mark.slow]


UPDATE = {
    "update_id": 1,
    "message": {
        "message_id": 1,
        "date": 1,
        "chat": {"id": 7, "type": "private"},
        "from": PERSON,
        "text": "How?",
    },
}


@pytest.mark.parametrize("method", ["sendMessage", "editMessageText"])
async def test_a_process_killed_while_it_speaks_to_telegram_leaves_one_outcome(
    redis_url: str, api: BotApi, method: str
) -> None:
    harness = WorkerHarness(lambda: connect(redis_url), played=False)
    await harness.client.flushall()
    api.gates[method] = asyncio.Event()
    async with harness.open(), httpx.AsyncClient(timeout=None) as client:
        async with serve_telegram(redis_url, api.url) as (first, url):
            sent = await client.post(url, json=UPDATE, headers={HEADER: SECRET})
            assert sent.status_code == 200
            await wait_until(lambda: api.called(method))
            first.kill()
            await first.wait()
        api.gates.pop(method).set()

        async with serve_telegram(redis_url, api.url) as (_, url):
            await wait_until(lambda: any(ANSWER in text for text in api.texts(7)))
            await wait_until_acknowledged(harness, "telegram")
            again = await client.post(url, json=UPDATE, headers={HEADER: SECRET})
            assert again.status_code == 200

    assert sum(ANSWER in text for text in api.texts(7)) == 1
    await harness.close()
