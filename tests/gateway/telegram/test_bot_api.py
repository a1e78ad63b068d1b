import asyncio
import time
from collections import Counter
from typing import Any

from gateway.telegram.bot_api import RATES
from gateway.telegram.channel import TYPING_SECONDS
from memory.rate_limits import RedisTurns
from tests.support.chat_harness import ANSWER, WORKING
from tests.support.fake_telegram import IN_A_GROUP, IN_A_ROW, IN_A_SECOND, BotApi, flood
from tests.support.telegram_harness import TelegramHarness, telegram_desk, wait_until_settled
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

GROUP = -100


STREAM = "rd:{0}:results:telegram"


def of(id_: int) -> dict[str, Any]:
    """Whose message it is."""
    return {"from": {"id": id_, "is_bot": False, "first_name": "Ann", "language_code": "en"}}


def private(desk: TelegramHarness, id_: int) -> dict[str, Any]:
    """The update that Telegram sends of somebody's question in a private chat."""
    return desk.message("How?", chat={"id": id_, "type": "private"}, **of(id_))


def in_group(desk: TelegramHarness, id_: int) -> dict[str, Any]:
    return desk.group("@desk_bot How?", **of(id_))


async def all_answered(harness: WorkerHarness, api: BotApi, asked: dict[int, int]) -> None:
    """Wait until each chat has that many outcomes, and nothing is left to do."""
    count = sum(asked.values())
    await wait_until(
        lambda: sum(ANSWER in text for text in list_shown(api)) == count, patience_seconds=60.0
    )
    await wait_until_settled(harness, api)
    assert Counter(int(said.chat) for said in api.chats.values()) == asked


def list_shown(api: BotApi) -> list[str]:
    return [said.text for said in api.chats.values()]


def test_no_minute_holds_more_calls_than_telegram_allows() -> None:
    most = {name: rate.per_minute + rate.at_once for name, rate in RATES.items()}

    assert most["private"] < 60
    assert most["group"] < IN_A_GROUP
    assert RATES["all"].per_minute / 60 + RATES["all"].at_once < IN_A_SECOND
    assert max(RATES[kind].at_once for kind in ("private", "group")) < IN_A_ROW
    assert RATES["typing"].every_seconds <= TYPING_SECONDS < 5


async def burst(harness: WorkerHarness, api: BotApi, kinds: Any) -> None:
    """Have as many ask at once, at two processes."""
    async with (
        harness.open(),
        telegram_desk(harness, api) as desk,
        telegram_desk(harness, api) as other,
    ):
        asked = [kind(desk, 10 + number) for number, kind in enumerate(kinds)]
        processes = [desk, other] * len(asked)
        statuses = await asyncio.gather(
            *(process.send(update) for process, update in zip(processes, asked, strict=False))
        )

        assert {answer.status_code for answer in statuses} == {200}
        chats = Counter(update["message"]["chat"]["id"] for update in asked)
        await all_answered(harness, api, dict(chats))

    assert api.limited == []


async def test_a_burst_in_a_group_at_two_processes_meets_no_limit_and_everybody_is_answered(
    harness: WorkerHarness, api: BotApi
) -> None:
    api.speed = 15.0

    await burst(harness, api, [in_group] * 7 + [private] * 3)

    messages = [call for call in api.calls if call[0] in {"sendMessage", "editMessageText"}]
    assert sum(text["chat_id"] == str(GROUP) for _, text in messages) == 14


async def test_a_burst_of_many_chats_at_two_processes_meets_no_limit_and_everybody_is_answered(
    harness: WorkerHarness, api: BotApi
) -> None:
    api.speed = 2.0

    await burst(harness, api, [private] * 24)

    assert len(api.called("editMessageText")) == 24


async def test_a_limit_of_an_hour_is_kept_by_all_processes_and_holds_back_nobody_else(
    harness: WorkerHarness, api: BotApi
) -> None:
    api.refusals[f"editMessageText {GROUP}"] = [flood(3600)]
    lease: dict[str, Any] = {"lease_seconds": 0.5}
    async with (
        harness.open(),
        telegram_desk(harness, api, **lease) as desk,
        telegram_desk(harness, api, **lease) as other,
    ):
        await desk.send(in_group(desk, 7))
        await wait_until(lambda: not api.refusals[f"editMessageText {GROUP}"])
        for number, process in enumerate((desk, other) * 2):
            await process.send(private(desk, 10 + number))
        await wait_until(lambda: sum(ANSWER in text for text in list_shown(api)) == 4)
        counted = [process.connector.tally.counts for process in (desk, other)]
        await wait_until(lambda: failures(counted) >= 1)
        await harness.client.xclaim(
            STREAM, "workers", "lost", 0, await entries(harness), retrycount=25
        )
        before = failures(counted)
        await wait_until(lambda: failures(counted) >= before + 2)
        assert edits(api, GROUP) == 1

        await harness.client.delete(f"rd:push:telegram:pace:group%3A{GROUP}")
        await all_answered(harness, api, {GROUP: 1, **dict.fromkeys(range(10, 14), 1)})

    assert all("delivery_abandoned" not in counts for counts in counted)


def edits(api: BotApi, chat: int) -> int:
    return sum(call["chat_id"] == str(chat) for call in api.called("editMessageText"))


def failures(counted: list[dict[str, int]]) -> int:
    return sum(counts.get("delivery_failed", 0) for counts in counted)


async def entries(harness: WorkerHarness) -> list[Any]:
    return [id_ for id_, _ in await harness.client.xrange(STREAM)]


async def test_typing_and_placeholder_are_left_out_when_they_would_be_late_never_the_outcome(
    harness: WorkerHarness, api: BotApi
) -> None:
    turns = RedisTurns(harness.client, "telegram")
    for name in ("typing:7:0", "private:7"):
        await turns.hold(name, every_seconds=1.0, at_once=1, seconds=60.0)
    async with telegram_desk(harness, api) as desk:
        update = await desk.say("How?")
        question = desk.connector.name_question("7:0", str(update["message"]["message_id"]))

        async def is_left_out() -> bool:
            return "unsigned" in await desk.connector.memory.fields(question)

        await wait_until(is_left_out)
        async with harness.open():
            await harness.client.delete("rd:push:telegram:pace:private%3A7")
            await all_answered(harness, api, {7: 1})

    (said,) = api.chats.values()
    assert WORKING not in said.versions
    assert api.called("sendChatAction") == []


async def test_a_flood_of_typing_does_not_keep_the_placeholder(
    harness: WorkerHarness, api: BotApi
) -> None:
    api.refusals["sendChatAction"] = [flood(60)]
    async with telegram_desk(harness, api) as desk:
        await desk.say("How?")

        await wait_until(lambda: api.texts(7) == [WORKING])


async def test_typing_goes_on_in_its_topic_until_the_outcome_is_shown(
    harness: WorkerHarness, api: BotApi
) -> None:
    async with telegram_desk(harness, api) as desk:
        await desk.send(desk.group("@desk_bot How?", message_thread_id=5, is_topic_message=True))
        await wait_until(lambda: len(list_typing_calls(api, GROUP)) >= 4)
        async with harness.open():
            await all_answered(harness, api, {GROUP: 1})
        before = len(list_typing_calls(api, GROUP))
        await desk.send(private(desk, 10))
        await wait_until(lambda: len(list_typing_calls(api, 10)) >= 4)

    assert len(list_typing_calls(api, GROUP)) <= before + 1  # one may have been under way
    assert {typing_call["message_thread_id"] for typing_call in list_typing_calls(api, GROUP)} == {
        "5"
    }


async def test_those_who_wait_in_a_group_see_one_sign_of_typing(
    harness: WorkerHarness, api: BotApi
) -> None:
    api.speed = 8.0
    async with telegram_desk(harness, api) as desk, telegram_desk(harness, api) as other:
        began = time.monotonic()
        for number, process in enumerate((desk, other) * 2):
            await process.send(in_group(desk, 10 + number))
        await wait_until(lambda: len(list_typing_calls(api, GROUP)) >= 4)

        seconds = (time.monotonic() - began) * api.speed
        assert len(list_typing_calls(api, GROUP)) <= 1 + seconds / TYPING_SECONDS


def list_typing_calls(api: BotApi, chat: int) -> list[dict[str, Any]]:
    return [call for call in api.called("sendChatAction") if call["chat_id"] == str(chat)]
