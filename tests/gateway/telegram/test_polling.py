import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest
from structlog.dev import ConsoleRenderer
from structlog.testing import capture_logs

from gateway.telegram.door import known
from gateway.telegram.polling import Duty, Polling
from gateway.telegram.taking import Updates
from memory.duty import RedisDuty
from tests.gateway.pushing.rig import ANSWER, push_door_of, until
from tests.gateway.telegram.api import BotApi, RefusedError, flood
from tests.gateway.telegram.rig import PERSON, calls_of, channel_of, settled
from tests.worker.cast import House

CONFLICT_SECONDS = 0.05
KEEP_SECONDS = 0.02
HOOKED = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)


def told(number: int, text: str = "How?") -> dict[str, Any]:
    message = {"message_id": number, "date": 1, "chat": {"id": 7, "type": "private"},
               "from": PERSON, "text": text}  # fmt: skip
    return {"update_id": number, "message": message}


@dataclass
class Told:
    """A duty that is whose it is told to be."""

    mine: bool = False
    asked: int = 0
    left: bool = False

    async def keep(self, seconds: float) -> bool:
        assert seconds > KEEP_SECONDS
        self.asked += 1
        return self.mine

    async def leave(self) -> None:
        self.left = True


class Deaf(Told):
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


def on_duty(house: House, holder: str) -> RedisDuty:
    return RedisDuty(house.client, "telegram", "polling", holder)


@asynccontextmanager
async def polling(house: House, api: BotApi, duty: Duty | None = None) -> AsyncIterator[None]:
    """Have a process of its own poll while inside."""
    calls = calls_of(house, api)
    async with known(calls.bot) as me, push_door_of(house, channel_of(calls, api)) as door:
        updates = Updates(calls, me, door)
        poll = Polling(
            calls.bot,
            updates,
            duty=duty or Told(mine=True),
            unavailable=door.unavailable,
            conflict_seconds=CONFLICT_SECONDS,
            keep_seconds=KEEP_SECONDS,
        )
        door.beside(poll.run())
        yield


async def answered(house: House, api: BotApi, count: int) -> None:
    await until(lambda: sum(ANSWER in text for text in api.texts(7)) == count)
    await settled(house, api)
    await until(lambda: api.updates == [])
    assert len(api.chats) == count


async def test_of_two_processes_one_polls_and_the_other_goes_on_when_it_stops(
    house: House, api: BotApi
) -> None:
    async with house.open(), AsyncExitStack() as first:
        await first.enter_async_context(polling(house, api, on_duty(house, "first")))
        await until(lambda: api.polls > 0)
        async with polling(house, api, on_duty(house, "second")):
            api.tell(told(1))
            await answered(house, api, 1)
            await first.aclose()
            api.tell(told(2))
            await answered(house, api, 2)

    assert api.conflicts == []


async def test_who_died_on_duty_is_followed_by_another(house: House, api: BotApi) -> None:
    await on_duty(house, "dead").keep(0.3)
    async with house.open(), polling(house, api, on_duty(house, "another")):
        api.tell(told(1))
        await answered(house, api, 1)


async def test_who_is_not_on_duty_does_not_poll(house: House, api: BotApi) -> None:
    duty = Told()
    async with polling(house, api, duty):
        await until(lambda: duty.asked > 2)
        assert api.polls == 0
        duty.mine = True
        await until(lambda: api.polls > 0)
    assert duty.left


async def test_who_polls_ends_also_when_a_client_loses_the_cancellation(
    house: House, api: BotApi
) -> None:
    duty = Deaf()
    async with polling(house, api, duty):
        await duty.asks.wait()
    assert duty.left


async def test_two_processes_that_both_poll_take_in_each_update_once_and_either_goes_on_alone(
    house: House, api: BotApi
) -> None:
    async with house.open():
        with capture_logs() as logged:
            async with polling(house, api):
                async with polling(house, api):
                    await until(lambda: len(api.conflicts) > 3)
                    api.tell(told(1))
                    await answered(house, api, 1)
                api.tell(told(2))
                await answered(house, api, 2)

    said = [line["event"] for line in logged]
    assert said.count("another_process_polls") == 2  # each once a minute
    assert "polling_failed" not in said
    assert "beside_failed" not in said


async def test_an_old_update_that_comes_again_after_a_restart_is_answered_once(
    house: House, api: BotApi
) -> None:
    async with house.open():
        async with polling(house, api):
            api.tell(told(1))
            await answered(house, api, 1)

        async with polling(house, api):
            api.tell(told(1))
            api.tell(told(2))
            await answered(house, api, 2)


@pytest.mark.parametrize(
    "refusal", [RefusedError(409, HOOKED), flood(1), RefusedError(502, "Bad Gateway")]
)
async def test_polling_waits_while_telegram_gives_nothing_and_goes_on_then(
    house: House, api: BotApi, refusal: RefusedError
) -> None:
    api.refusals["getUpdates"] = [refusal]
    async with house.open(), polling(house, api):
        api.tell(told(1))
        await answered(house, api, 1)


async def test_an_update_that_nobody_can_read_does_not_keep_those_after_it(
    house: House, api: BotApi
) -> None:
    async with house.open(), polling(house, api):
        api.tell(told(1, "half of a character \ud800"))
        api.tell(told(2))

        await answered(house, api, 1)


@pytest.mark.parametrize(
    ("refusal", "event"),
    [
        (RefusedError(409, HOOKED), "webhook_is_set"),
        (RefusedError(409, "Conflict: terminated by other getUpdates"), "another_process_polls"),
    ],
)
async def test_who_gets_the_updates_instead_is_told_in_one_line_of_a_terminal(
    house: House, api: BotApi, refusal: RefusedError, event: str
) -> None:
    api.refusals["getUpdates"] = [refusal]
    with capture_logs() as logged:
        async with polling(house, api):
            await until(lambda: api.polls)

    (line,) = [line for line in logged if line["event"] == event]
    assert line.pop("log_level") == "warning"
    shown: dict[str, Any] = {**line, "level": "warning", "logger": "gateway"}
    shown["timestamp"] = "2026-11-21T16:08:57.334765Z"
    assert len(ConsoleRenderer(colors=False)(None, "", shown)) <= 80
