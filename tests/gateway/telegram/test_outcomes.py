"""Every message of people ends in one outcome in its chat, whatever Telegram refuses."""

from typing import Any

import pytest

from envelope.role import Role
from gateway.chat.ports import ChatPolicy
from tests.support.chat_harness import (
    ANSWER,
    TEXTS,
    WORKING,
    FlakyProducer,
)
from tests.support.fake_telegram import BotApi, RefusedError
from tests.support.telegram_harness import (
    PERSON,
    TelegramHarness,
    telegram_desk,
    wait_until_settled,
)
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

STREAM = "rd:{0}:results:telegram"
GROUP: dict[str, Any] = {"id": -100, "type": "supergroup", "title": "Team"}
EVE: dict[str, Any] = {"id": 8, "is_bot": False, "first_name": "Eve", "language_code": "de"}
FROM_EVE: dict[str, Any] = {"from": EVE, "chat": {"id": 8, "type": "private"}}
ASKS_BACK = {
    "within_scope": True,
    "needs_clarification": True,
    "clarification_reason": "ambiguous_query",
    "clarification_message": "-",
}
OPTIONS = [
    {"label": "One", "value": "Option one", "kind": "option"},
    {"label": "Page", "value": "-", "kind": "source", "url": "http://localhost:8000/page"},
]


async def wait_until_answered(desk: TelegramHarness, count: int = 1, *, chat: int = 7) -> None:
    await wait_until(lambda: sum(ANSWER in text for text in desk.api.texts(chat)) == count)
    await wait_until_settled(desk.harness, desk.api)


async def test_who_answers_the_bot_in_a_group_needs_no_mention(desk: TelegramHarness) -> None:
    mine = {"message_id": 5, "date": 1, "chat": GROUP, "text": "-",
            "from": {"id": 42, "is_bot": True, "first_name": "Desk"}}  # fmt: skip
    await desk.send(desk.group("to Eve", reply_to_message={**mine, "from": EVE}))
    await desk.send(desk.group("And then?", reply_to_message=mine))
    await desk.send(desk.group("nobody is asked", **{"from": {**EVE, "is_bot": True}}))

    await wait_until_answered(desk, chat=-100)
    assert [seen["text"] for seen in desk.harness.script.seen[Role.LANG]] == ["And then?"]


async def test_whose_message_telegram_cannot_accept_is_notified_once_in_the_own_language(
    harness: WorkerHarness, api: BotApi
) -> None:
    async with telegram_desk(harness, api, quota=0) as desk:
        update = desk.message("Wie?", **FROM_EVE)
        for _ in range(2):
            assert (await desk.send(update)).status_code == 200
        await desk.send(desk.group(f"@desk_bot {'many ' * 2_000}"))

        await wait_until(lambda: len(api.chats) == 2)
        assert api.texts(8) == [TEXTS.text("push_busy", "de")]
        assert api.texts(-100) == [TEXTS.text("push_too_long", "en")]
        assert api.called("sendChatAction") == []


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
async def test_who_blocks_the_bot_is_given_up_at_once_and_nobody_else_waits(
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
    assert len(tried) == 1


async def test_an_outcome_waits_while_telegram_does_not_know_the_token(
    desk: TelegramHarness,
) -> None:
    desk.api.refusals["editMessageText"] = [RefusedError(401, "Unauthorized")]

    await desk.say("How?")

    await wait_until_answered(desk)


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
    desk.harness.script.next(Role.GUARDRAILS, ASKS_BACK)
    desk.harness.script.next(Role.CLARIFICATION, {"suggested_actions": OPTIONS})

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
            harness.script.next(Role.GUARDRAILS, ASKS_BACK)
            harness.script.next(Role.CLARIFICATION, {"suggested_actions": OPTIONS[:1]})
            await desk.send(desk.group("@desk_bot How?"))
            await wait_until(lambda: any(said.buttons for said in api.chats.values()))
            await wait_until_settled(harness, api)
        ((id_, said),) = api.chats.items()
        token = said.buttons[0]["callback_data"]

        async with telegram_desk(harness, api) as desk:
            for person, data in ((EVE, token), (PERSON, "guessed"), (PERSON, token)):
                pressed = desk.press(id_, data, person=person, chat=GROUP)
                assert (await desk.send(pressed)).status_code == 200
            await wait_until_answered(desk, chat=-100)
            await wait_until(lambda: not said.buttons)

    notices = [call.get("text") for call in api.called("answerCallbackQuery")]
    assert notices == [TEXTS.text("push_expired", "de"), TEXTS.text("push_expired", "en"), None]
    assert [seen["text"] for seen in harness.script.seen[Role.LANG]][1:] == ["Option one"]
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


@pytest.mark.parametrize(("supersedes", "answers"), [(True, 1), (False, 2)])
async def test_a_newer_message_to_the_bot_supersedes_or_waits_and_says_so(
    harness: WorkerHarness, api: BotApi, supersedes: bool, answers: int
) -> None:
    policy = ChatPolicy(burst_seconds=0.0, supersedes=supersedes)
    async with telegram_desk(harness, api, policy=policy) as desk:
        await desk.send(desk.message("First?", **FROM_EVE))
        await wait_until(lambda: len(api.chats) == 1)
        await desk.send(desk.message("Second?", **FROM_EVE))
        notice = TEXTS.text("superseded" if supersedes else "push_waiting", "de")
        await wait_until(lambda: notice in api.texts(8))
        async with harness.open():
            await wait_until_answered(desk, answers, chat=8)

    assert len(api.chats) == 2


async def test_an_update_that_cannot_be_taken_in_is_to_be_sent_again(
    harness: WorkerHarness, api: BotApi
) -> None:
    faltering = harness.make_broker()
    faltering.producer = FlakyProducer(faltering.producer, 1)
    async with harness.open(), telegram_desk(harness, api, broker=faltering) as desk:
        update = desk.message("How?")

        statuses = [(await desk.send(update)).status_code for _ in range(2)]

        assert statuses == [503, 200]
        await wait_until_answered(desk)


async def test_commands_are_described_in_every_language_and_answered_by_name_in_a_group(
    desk: TelegramHarness,
) -> None:
    await desk.send(desk.group("/help@desk_bot", entities=None))

    await wait_until(
        lambda: any(TEXTS.text("help_title", "en") in text for text in desk.api.texts(-100))
    )
    await wait_until(lambda: len(desk.api.called("setMyCommands")) > len(TEXTS.languages))
    commands = desk.api.called("setMyCommands")
    assert [call.get("language_code") for call in commands] == [None, *TEXTS.languages]
    assert [each["command"] for each in commands[-1]["commands"]] == ["language", "clear", "help"]
    assert commands[-1]["commands"][1]["description"] == TEXTS.text("help_clear_history", "zh")
