"""What people write and press in Telegram, who is answered, and how much one person may ask."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from envelope.question import Question
from envelope.role import Role
from gateway.chat.people import PersonLimits
from gateway.chat.ports import ChatGroups
from gateway.telegram.connection import connect_bot, receive_updates
from gateway.telegram.updates import TelegramAudience
from memory.presence import RedisDuty
from tests.support.chat_harness import ANSWER, AT_ONCE, TEXTS, WORKING, open_connector
from tests.support.fake_telegram import BotApi, RefusedError
from tests.support.telegram_harness import (
    PERSON,
    TelegramHarness,
    calls_of,
    channel_of,
    telegram_desk,
    wait_until_settled,
)
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

GROUP_ID = -100


def of(id_: int, language: str = "en") -> dict[str, Any]:
    """Whose message it is, in a private chat of theirs."""
    person = {"id": id_, "is_bot": False, "first_name": "Ann", "language_code": language}
    return {"from": person, "chat": {"id": id_, "type": "private"}}


async def test_a_group_that_is_not_listed_gets_nothing(harness: WorkerHarness, api: BotApi) -> None:
    audience = TelegramAudience(chats=frozenset({GROUP_ID, 7}))
    async with harness.open(), telegram_desk(harness, api, audience=audience) as desk:
        strange = desk.group("@desk_bot How?", chat={"id": -666, "type": "supergroup"})
        assert (await desk.send(strange)).status_code == 200
        await desk.send(desk.group("@desk_bot How?"))
        await desk.say("How?")

        await wait_until_answered(desk, chat=GROUP_ID)
        await wait_until_answered(desk)
        assert api.texts(-666) == []
        assert desk.connector.refusals.counts == {"not_allowed": 1}


@pytest.mark.parametrize(
    "audience",
    [TelegramAudience(chats=frozenset({GROUP_ID})), TelegramAudience(users=frozenset({7}))],
)
async def test_a_stranger_in_a_private_chat_is_notified_once_in_the_own_language(
    harness: WorkerHarness, api: BotApi, audience: TelegramAudience
) -> None:
    async with harness.open(), telegram_desk(harness, api, audience=audience) as desk:
        for _ in range(3):
            await desk.say("How?", **of(9, "de"))
        await desk.send(desk.group("@desk_bot How?"))

        await wait_until_answered(desk, chat=GROUP_ID)
        assert api.texts(9) == [TEXTS.text("push_not_allowed", "de")]
        assert desk.connector.refusals.counts == {"not_allowed": 3}


async def test_a_listed_group_answers_listed_people_alone(
    harness: WorkerHarness, api: BotApi
) -> None:
    audience = TelegramAudience(chats=frozenset({GROUP_ID}), users=frozenset({7}))
    async with harness.open(), telegram_desk(harness, api, audience=audience) as desk:
        stranger = {"id": 9, "is_bot": False, "first_name": "Eve"}
        await desk.send(desk.group("@desk_bot How?", **{"from": stranger}))
        await desk.send(desk.group("@desk_bot How?"))

        await wait_until_answered(desk, chat=GROUP_ID)
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

        await wait_until_answered(desk)
        await wait_until(lambda: len(api.texts(9)) >= 3)
        notice = TEXTS.text("push_limited_minute", "en")
        notices = [text for chat in (9, GROUP_ID) for text in api.texts(chat) if text == notice]
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
    groups = ChatGroups({"7": ("hr",)}, {str(GROUP_ID): ("sales",)})
    policy = replace(AT_ONCE, groups=groups)
    async with harness.open(), telegram_desk(harness, api, policy=policy) as desk:
        await desk.say("How?", id_=1)
        await desk.send(desk.group("@desk_bot How?", message_id=2))
        await desk.say("How?", **of(9), id_=3)
        for chat in (7, GROUP_ID, 9):
            await wait_until_answered(desk, chat=chat)

        replies = harness.make_broker().replies
        asked = [
            (await replies.read_journal(question))[0].fields.get("groups")
            for conversation, message_id in (
                ("telegram/7:0", "1"),
                (f"telegram/{GROUP_ID}:0:7", "2"),
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


async def wait_until_answered(desk: TelegramHarness, count: int = 1, *, chat: int = 7) -> None:
    await wait_until(lambda: sum(ANSWER in text for text in desk.api.texts(chat)) == count)
    await wait_until_settled(desk.harness, desk.api)


async def test_a_question_gets_a_placeholder_that_becomes_its_answer(desk: TelegramHarness) -> None:
    await desk.say("How do I add a rule?")

    await wait_until_answered(desk)
    (said,) = desk.api.chats.values()
    assert said.versions in ([WORKING], ["…"])
    assert desk.api.called("sendChatAction")[0]["action"] == "typing"


async def test_groups_are_answered_only_when_addressed_and_topics_are_kept(
    desk: TelegramHarness,
) -> None:
    for update in (
        desk.group("nobody is asked"),
        desk.group("/help@other_bot"),
        desk.group("@desk_bot How?", message_thread_id=5, is_topic_message=True),
    ):
        assert (await desk.send(update)).status_code == 200

    await wait_until_answered(desk, chat=-100)
    (sent,) = desk.api.called("sendMessage")
    assert sent["message_thread_id"] == "5"
    assert sent["reply_parameters"]["allow_sending_without_reply"] is True
    assert desk.harness.script.seen[Role.LANG][0]["text"] == "How?"


@pytest.mark.parametrize(
    ("command", "shown"),
    [("/start", "push_start"), ("/help", "help_title"), ("/language", "push_language")],
)
async def test_commands_are_answered(desk: TelegramHarness, command: str, shown: str) -> None:
    await desk.say(command)

    await wait_until(lambda: any(TEXTS.text(shown, "en") in text for text in desk.api.texts(7)))
    await wait_until_settled(desk.harness, desk.api)
    (said,) = desk.api.chats.values()
    assert len(said.buttons) == (len(TEXTS.languages) if command == "/language" else 0)


async def test_clear_and_a_named_language_reach_the_desk(desk: TelegramHarness) -> None:
    await desk.say("/clear")
    await wait_until(lambda: desk.api.texts(7) == ["Done."])
    await desk.say("/language de")

    await wait_until(lambda: desk.api.texts(7) == ["Done.", "Done."])


async def test_long_polling_confirms_an_update_after_it_was_taken_in(
    harness: WorkerHarness, api: BotApi
) -> None:
    calls = calls_of(harness, api)
    message: dict[str, Any] = {
        "message_id": 1,
        "date": 1,
        "chat": {"id": 7, "type": "private"},
        "from": {"id": 7, "is_bot": False, "first_name": "Ann"},
        "text": "How?",
    }
    async with (
        harness.open(),
        connect_bot(calls.bot) as me,
        open_connector(harness, channel_of(calls, api), policy=AT_ONCE) as connector,
        receive_updates(
            calls, me, connector, TEXTS, how=RedisDuty(harness.client, "telegram", "polling", "one")
        ),
    ):
        api.queue_update({"update_id": 1, "message": message})

        await wait_until(lambda: any(ANSWER in text for text in api.texts(7)))
        await wait_until(lambda: api.updates == [])


async def test_a_process_that_stops_before_acknowledging_leaves_the_outcome_to_another(
    harness: WorkerHarness, api: BotApi
) -> None:
    api.gates["editMessageText"] = asyncio.Event()
    async with harness.open():
        async with telegram_desk(harness, api, lease_seconds=0.2) as desk:
            await desk.say("How?")
            await wait_until(lambda: any(ANSWER in text for text in api.texts(7)))
        assert await harness.client.xlen("rd:{0}:results:telegram") == 1

        api.gates.pop("editMessageText").set()
        async with telegram_desk(harness, api, lease_seconds=0.2) as desk:
            await wait_until_answered(desk)

    assert len(api.chats) == 1
    assert len(api.called("editMessageText")) >= 2


GROUP: dict[str, Any] = {"id": -100, "type": "supergroup", "title": "Team"}


EVE: dict[str, Any] = {"id": 8, "is_bot": False, "first_name": "Eve", "language_code": "de"}


FROM_EVE: dict[str, Any] = {"from": EVE, "chat": {"id": 8, "type": "private"}}


OPTIONS = [
    {"label": "One", "value": "Option one " * 30, "kind": "option"},
    {"label": "Page", "value": "-", "kind": "source", "url": "http://localhost:8000/page"},
]


async def test_a_reply_to_the_bot_in_a_group_needs_no_mention(desk: TelegramHarness) -> None:
    mine = {"message_id": 5, "date": 1, "chat": GROUP, "text": "-",
            "from": {"id": 42, "is_bot": True, "first_name": "Desk"}}  # fmt: skip
    await desk.send(desk.group("to Eve", reply_to_message={**mine, "from": EVE}))
    await desk.send(desk.group("And then?", reply_to_message=mine))
    await desk.send(desk.group("nobody is asked", **{"from": {**EVE, "is_bot": True}}))

    await wait_until_answered(desk, chat=-100)
    assert [seen["text"] for seen in desk.harness.script.seen[Role.LANG]] == ["And then?"]


async def test_a_notice_that_waits_for_its_turn_delays_nobody_else(
    harness: WorkerHarness, api: BotApi
) -> None:
    api.speed = 0.05
    async with telegram_desk(harness, api, quota=0) as desk:
        for number in range(8):
            update = desk.message(f"{number}")
            assert (await desk.send(update)).status_code == 200

        # The ninth of one chat is read while the notices of those before it still wait.
        assert len(api.chats) < 8


@pytest.mark.parametrize(
    "refusal",
    [
        RefusedError(403, "Forbidden: bot was blocked by the user"),
        RefusedError(403, "Forbidden: user is deactivated"),
        RefusedError(400, "Bad Request: chat not found"),
    ],
)
async def test_a_user_who_blocks_the_bot_is_abandoned_at_once_and_delays_nobody(
    harness: WorkerHarness, api: BotApi, refusal: RefusedError
) -> None:
    async with telegram_desk(harness, api) as desk:
        lost = desk.message("How?", **FROM_EVE)
        await desk.send(lost)
        await wait_until(lambda: api.texts(8) == [TEXTS.text("push_working", "de")])
        api.closed["8"] = refusal
        async with harness.open():
            await desk.say("How?")
            await wait_until_answered(desk)

        question = desk.connector.name_question("8:0", str(lost["message"]["message_id"]))
        assert desk.connector.tally.counts == {"delivery_abandoned": 1, "answered": 1}
        assert "done" in await desk.connector.memory.fields(question)  # nobody types for it
        assert await desk.connector.memory.open_messages(question) == {}
    tried = [call for call in api.called("editMessageText") if call["chat_id"] == "8"]
    assert len(tried) == 2  # the answer, and the notice that it was refused


async def test_a_group_that_became_a_supergroup_gets_its_answers_there(
    harness: WorkerHarness, api: BotApi
) -> None:
    async with telegram_desk(harness, api) as desk:
        chat = {"id": -5, "type": "group", "title": "Team"}
        await desk.send(desk.group("@desk_bot How?", chat=chat))
        await wait_until(lambda: api.texts(-5) == [WORKING])
        api.moved["-5"] = -1005
        api.chats.clear()
        async with harness.open():
            await wait_until_answered(desk, chat=-1005)

    assert len(api.chats) == 1


async def test_the_answer_of_a_deleted_topic_stands_in_its_group(
    harness: WorkerHarness, api: BotApi
) -> None:
    async with telegram_desk(harness, api) as desk:
        await desk.send(desk.group("@desk_bot How?", message_thread_id=5, is_topic_message=True))
        await wait_until(lambda: api.texts(-100) == [WORKING])
        api.gone_topics.add("5")
        api.chats.clear()
        async with harness.open():
            await wait_until_answered(desk, chat=-100)

    assert len(api.chats) == 1


async def test_an_address_that_telegram_refuses_in_a_button_costs_no_other_button(
    desk: TelegramHarness,
) -> None:
    desk.harness.script.ask_back(suggested_actions=OPTIONS)

    await desk.say("How?")

    await wait_until(lambda: any(said.buttons for said in desk.api.chats.values()))
    await wait_until_settled(desk.harness, desk.api)
    (said,) = desk.api.chats.values()
    assert [button["text"] for button in said.buttons] == ["One"]


async def test_only_who_asked_may_press_in_a_group_and_others_are_notified(
    harness: WorkerHarness, api: BotApi
) -> None:
    async with harness.open():
        async with telegram_desk(harness, api) as desk:
            harness.script.ask_back(suggested_actions=OPTIONS[:1])
            await desk.send(desk.group("@desk_bot How?"))
            await wait_until(lambda: any(said.buttons for said in api.chats.values()))
            await wait_until_settled(harness, api)
        ((id_, said),) = api.chats.items()
        token = said.buttons[0]["callback_data"]

        async with telegram_desk(harness, api) as desk:
            for person, data in (
                (EVE, token), (PERSON, "guessed"), (PERSON, token), (PERSON, token),
            ):  # fmt: skip
                pressed = desk.press(id_, data, person=person, chat=GROUP)
                assert (await desk.send(pressed)).status_code == 200
            await wait_until_answered(desk, chat=-100)
            await wait_until(lambda: not said.buttons)

    notices = [call.get("text") for call in api.called("answerCallbackQuery")]
    assert notices == [
        TEXTS.text("push_expired", "de"),
        TEXTS.text("push_expired", "en"),
        None,
        None,
    ]
    assert [seen["text"] for seen in harness.script.seen[Role.LANG]][1:] == [
        OPTIONS[0]["value"].strip()
    ]
    assert len(api.chats) == 2


async def test_a_press_under_a_message_too_old_to_be_shown_is_handled(
    desk: TelegramHarness,
) -> None:
    await desk.say("How?")
    await wait_until_answered(desk)
    ((id_, said),) = desk.api.chats.items()

    await desk.send(desk.press(id_, said.buttons[1]["callback_data"], date=0))

    await wait_until(lambda: desk.api.called("answerCallbackQuery"))
    assert desk.api.called("answerCallbackQuery")[0]["text"] == TEXTS.text("push_thanks", "en")


async def test_the_last_of_two_edits_in_a_second_is_asked(
    harness: WorkerHarness, api: BotApi
) -> None:
    async with telegram_desk(harness, api) as desk:
        await desk.say("How?", id_=1)
        for text in ("How many?", "How much?"):
            await desk.say(text, id_=1, edit_date=1_700_000_005)
        async with harness.open():
            await wait_until_answered(desk)

    assert [seen["text"] for seen in harness.script.seen[Role.LANG]] == ["How much?"]
    assert len(api.chats) == 1


async def test_no_link_of_an_answer_becomes_a_preview(desk: TelegramHarness) -> None:
    await desk.say("How?")
    await wait_until_answered(desk)

    shown = [*desk.api.called("sendMessage"), *desk.api.called("editMessageText")]
    assert all(call["link_preview_options"] == {"is_disabled": True} for call in shown)


async def test_commands_are_described_in_every_language_and_answered_by_name_in_a_group(
    desk: TelegramHarness,
) -> None:
    await desk.send(desk.group("/help@desk_bot", entities=None))

    await wait_until(
        lambda: any(TEXTS.text("help_title", "en") in text for text in desk.api.texts(-100))
    )
    languages = [language for language in TEXTS.languages if "-" not in language]
    await wait_until(lambda: len(desk.api.called("setMyCommands")) > len(languages))
    commands = desk.api.called("setMyCommands")
    assert [call.get("language_code") for call in commands] == [None, *languages]
    assert [each["command"] for each in commands[-1]["commands"]] == ["language", "clear", "help"]
    assert commands[-1]["commands"][1]["description"] == TEXTS.text("help_clear_history", "zh")
