"""Who is answered on Telegram, and how much one person may ask."""

from dataclasses import replace
from typing import Any

import pytest

from envelope.question import Question
from gateway.chat.people import PersonLimits
from gateway.chat.ports import ChatGroups
from gateway.telegram.updates import TelegramAudience
from tests.support.chat_harness import ANSWER, AT_ONCE, TEXTS
from tests.support.fake_telegram import BotApi
from tests.support.telegram_harness import TelegramHarness, telegram_desk, wait_until_settled
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

GROUP = -100


def of(id_: int, language: str = "en") -> dict[str, Any]:
    """Whose message it is, in a private chat of theirs."""
    person = {"id": id_, "is_bot": False, "first_name": "Ann", "language_code": language}
    return {"from": person, "chat": {"id": id_, "type": "private"}}


async def wait_until_answered(desk: TelegramHarness, chat: int, count: int = 1) -> None:
    await wait_until(lambda: sum(ANSWER in text for text in desk.api.texts(chat)) == count)
    await wait_until_settled(desk.harness, desk.api)


async def test_a_group_that_is_not_listed_gets_nothing(harness: WorkerHarness, api: BotApi) -> None:
    audience = TelegramAudience(chats=frozenset({GROUP, 7}))
    async with harness.open(), telegram_desk(harness, api, audience=audience) as desk:
        strange = desk.group("@desk_bot How?", chat={"id": -666, "type": "supergroup"})
        assert (await desk.send(strange)).status_code == 200
        await desk.send(desk.group("@desk_bot How?"))
        await desk.say("How?")

        await wait_until_answered(desk, GROUP)
        await wait_until_answered(desk, 7)
        assert api.texts(-666) == []
        assert desk.connector.refusals.counts == {"not_allowed": 1}


@pytest.mark.parametrize(
    "audience",
    [TelegramAudience(chats=frozenset({GROUP})), TelegramAudience(users=frozenset({7}))],
)
async def test_a_stranger_in_a_private_chat_is_notified_once_in_the_own_language(
    harness: WorkerHarness, api: BotApi, audience: TelegramAudience
) -> None:
    async with harness.open(), telegram_desk(harness, api, audience=audience) as desk:
        for _ in range(3):
            await desk.say("How?", **of(9, "de"))
        await desk.send(desk.group("@desk_bot How?"))

        await wait_until_answered(desk, GROUP)
        assert api.texts(9) == [TEXTS.text("push_not_allowed", "de")]
        assert desk.connector.refusals.counts == {"not_allowed": 3}


async def test_a_listed_group_answers_listed_people_alone(
    harness: WorkerHarness, api: BotApi
) -> None:
    audience = TelegramAudience(chats=frozenset({GROUP}), users=frozenset({7}))
    async with harness.open(), telegram_desk(harness, api, audience=audience) as desk:
        stranger = {"id": 9, "is_bot": False, "first_name": "Eve"}
        await desk.send(desk.group("@desk_bot How?", **{"from": stranger}))
        await desk.send(desk.group("@desk_bot How?"))

        await wait_until_answered(desk, GROUP)
        assert desk.connector.refusals.counts == {"not_allowed": 1}


async def test_a_stranger_presses_no_button(harness: WorkerHarness, api: BotApi) -> None:
    audience = TelegramAudience(users=frozenset({7}))
    async with harness.open(), telegram_desk(harness, api, audience=audience) as desk:
        press = desk.press(1, "0" * 30, person={"id": 9, "is_bot": False, "first_name": "Eve"})
        assert (await desk.send(press)).status_code == 200

        assert desk.connector.refusals.counts == {"not_allowed": 1}
        assert api.called("answerCallbackQuery") == []


async def test_one_person_cannot_ask_without_end_and_is_notified_once(
    harness: WorkerHarness, api: BotApi
) -> None:
    limits = PersonLimits(per_minute=2, per_day=None)
    async with harness.open(), telegram_desk(harness, api, limits=limits) as desk:
        for _ in range(5):
            await desk.say("How?", **of(9))
        await desk.send(desk.group("@desk_bot How?", **{"from": of(9)["from"]}))
        await desk.say("How?")

        await wait_until_answered(desk, 7)
        await wait_until(lambda: len(api.texts(9)) >= 3)
        notice = TEXTS.text("push_limited_minute", "en")
        notices = [text for chat in (9, GROUP) for text in api.texts(chat) if text == notice]
        # Two, where the minute ended meanwhile.
        assert len(notices) in {1, 2}
        assert desk.connector.refusals.counts == {"limited_minute": 4}


async def test_an_update_that_comes_twice_counts_once_and_an_edit_counts_anew(
    harness: WorkerHarness, api: BotApi
) -> None:
    limits = PersonLimits(per_minute=None, per_day=2)
    async with harness.open(), telegram_desk(harness, api, limits=limits) as desk:
        update = await desk.say("How?")
        await desk.send(update)
        id_ = update["message"]["message_id"]
        await desk.say("How now?", id_=id_, edit_date=1)
        assert desk.connector.refusals.counts == {}
        await desk.say("And now?", id_=id_, edit_date=2)

        assert desk.connector.refusals.counts == {"limited_day": 1}


async def test_a_person_has_their_groups_in_a_private_chat_and_those_of_the_group_elsewhere(
    harness: WorkerHarness, api: BotApi
) -> None:
    groups = ChatGroups({"7": ("hr",)}, {str(GROUP): ("sales",)})
    policy = replace(AT_ONCE, groups=groups)
    async with harness.open(), telegram_desk(harness, api, policy=policy) as desk:
        await desk.say("How?", id_=1)
        await desk.send(desk.group("@desk_bot How?", message_id=2))
        await desk.say("How?", **of(9), id_=3)
        for chat in (7, GROUP, 9):
            await wait_until_answered(desk, chat)

        replies = harness.make_broker().replies
        asked = [
            (await replies.read_journal(question))[0].fields.get("groups")
            for conversation, message_id in (
                ("telegram/7:0", "1"),
                (f"telegram/{GROUP}:0:7", "2"),
                ("telegram/9:0", "3"),
            )
            for question in [
                Question(
                    tenant="acme",
                    assistant="docs",
                    conversation_id=conversation,
                    message_id=message_id,
                )
            ]
        ]
        assert asked == [["hr"], ["sales"], None]
