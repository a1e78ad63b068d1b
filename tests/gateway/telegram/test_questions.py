import asyncio
from typing import Any

import pytest

from envelope.role import Role
from gateway.chat.ports import ChatPolicy
from gateway.telegram.connection import connect_bot, receive_updates
from memory.presence import RedisDuty
from tests.support.chat_harness import (
    ANSWER,
    AT_ONCE,
    TEXTS,
    WORKING,
    open_connector,
)
from tests.support.fake_telegram import BotApi, RefusedError, units
from tests.support.telegram_harness import (
    TelegramHarness,
    calls_of,
    channel_of,
    telegram_desk,
    wait_until_settled,
)
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness


async def wait_until_answered(desk: TelegramHarness, count: int = 1, *, chat: int = 7) -> None:
    await wait_until(lambda: sum(ANSWER in text for text in desk.api.texts(chat)) == count)
    await wait_until_settled(desk.harness, desk.api)


async def test_a_question_gets_a_placeholder_that_becomes_its_answer(desk: TelegramHarness) -> None:
    await desk.say("How do I add a rule?")

    await wait_until_answered(desk)
    (said,) = desk.api.chats.values()
    assert said.versions in ([WORKING], ["…"])
    assert desk.api.called("sendChatAction")[0]["action"] == "typing"


async def test_an_update_that_comes_twice_is_answered_once(desk: TelegramHarness) -> None:
    update = await desk.say("How?")
    await desk.send(update)
    await wait_until_answered(desk)
    await desk.send(update)

    await wait_until_settled(desk.harness, desk.api)
    assert len(desk.harness.script.seen[Role.RESPONSE]) == 1
    assert len(desk.api.chats) == 1


async def test_only_requests_with_the_secret_token_are_accepted(desk: TelegramHarness) -> None:
    answer = await desk.send(desk.message("How?"), secret="another")  # noqa: S106 - a wrong one

    assert answer.status_code == 401
    assert desk.api.chats == {}


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


async def test_a_very_long_answer_is_split_within_the_limit_and_loses_nothing(
    desk: TelegramHarness,
) -> None:
    words = [f"w{number}😀" for number in range(1_500)]
    code = "\n".join(f"line {number}" for number in range(900))
    markdown = f"{ANSWER} {' '.join(words)}\n\n```python\n{code}\n```"
    desk.harness.script.next(Role.RESPONSE, {"response": markdown})

    await desk.say("How?")

    await wait_until_answered(desk)
    said = list(desk.api.chats.values())
    assert all(units(one.text) <= 4096 for one in said)
    together = "\n".join(one.text for one in said).split()
    assert together == f"{ANSWER} {' '.join(words)} {code}".split()
    coded = [one for one in said if "line " in one.text]
    assert len(coded) > 1
    assert all(any(entity["type"] == "pre" for entity in one.fields["entities"]) for one in coded)


async def test_entities_that_telegram_refuses_become_plain_text(desk: TelegramHarness) -> None:
    refusal = RefusedError(400, "Bad Request: can't parse entities: unsupported")
    desk.api.refusals["editMessageText"] = [refusal]
    desk.harness.script.next(Role.RESPONSE, {"response": f"**{ANSWER}**"})

    await desk.say("How?")

    await wait_until_answered(desk)
    (said,) = desk.api.chats.values()
    assert "entities" not in said.fields


async def test_flood_limits_are_waited_out(desk: TelegramHarness) -> None:
    for method in ("sendMessage", "editMessageText"):
        flood = RefusedError(429, "Too Many Requests: retry after 1", retry_after=1)
        desk.api.refusals[method] = [flood]

    await desk.say("How?")

    await wait_until_answered(desk)
    assert len(desk.api.chats) == 1


async def test_an_option_is_asked_once_by_a_short_token(desk: TelegramHarness) -> None:
    desk.harness.script.next(Role.GUARDRAILS, {"within_scope": True, "needs_clarification": True,
        "clarification_reason": "ambiguous_query", "clarification_message": "-"})  # fmt: skip
    action = {"label": "One", "value": "Option one " * 30, "kind": "option"}
    desk.harness.script.next(Role.CLARIFICATION, {"suggested_actions": [action]})
    await desk.say("How?")
    await wait_until(lambda: any(said.buttons for said in desk.api.chats.values()))
    ((id_, said),) = desk.api.chats.items()
    token = said.buttons[0]["callback_data"]

    stranger = {"id": 8, "is_bot": False, "first_name": "Eve"}
    await desk.send(desk.press(id_, "no-such-token", person=stranger))
    await desk.send(desk.press(id_, token))
    await desk.send(desk.press(id_, token))

    await wait_until_answered(desk)
    notices = [call.get("text") for call in desk.api.called("answerCallbackQuery")]
    assert notices == [TEXTS.text("push_expired", "en"), None, None]
    assert desk.harness.script.seen[Role.LANG][1]["text"] == action["value"].strip()
    assert len(desk.api.chats) == 2


async def test_the_open_questions_of_a_message_are_buttons_below_the_answer(
    desk: TelegramHarness,
) -> None:
    desk.harness.script.next(
        Role.ESSENCE, {"canonical_question": "How?", "remaining_questions": ["Who may?"]}
    )
    await desk.say("How, and who may?")
    await wait_until_answered(desk)
    ((id_, said),) = desk.api.chats.items()

    await desk.send(desk.press(id_, said.buttons[0]["callback_data"]))

    await wait_until(lambda: len(desk.harness.script.seen[Role.LANG]) > 1)
    assert desk.harness.script.seen[Role.LANG][1]["text"] == "Who may?"


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


async def test_an_edited_question_is_asked_again(harness: WorkerHarness, api: BotApi) -> None:
    async with telegram_desk(harness, api) as desk:
        await desk.say("How?", id_=1)
        await wait_until(lambda: api.texts(7) == [WORKING])
        await desk.say("How many?", id_=1, edit_date=1_700_000_005)

        async with harness.open():
            await wait_until_answered(desk)
            texts = [seen["text"] for seen in harness.script.seen[Role.LANG]]
            assert texts == ["How many?"]
            assert len(api.chats) == 1


async def test_a_burst_is_one_question(harness: WorkerHarness, api: BotApi) -> None:
    async with telegram_desk(harness, api, policy=ChatPolicy(burst_seconds=0.5)) as desk:
        for text in ("I have", "a question"):
            await desk.say(text)
        async with harness.open():
            await wait_until_answered(desk)

        assert [seen["text"] for seen in harness.script.seen[Role.LANG]] == ["I have\na question"]
        assert len(api.chats) == 1


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
