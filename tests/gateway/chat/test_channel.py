"""What holds in every chat: questions, outcomes, drafts and approvals, in Slack and Telegram."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from envelope.envelope import Envelope
from envelope.role import Role
from gateway.chat.ports import ChatPolicy
from manager.machine import Limits
from tests.support.chat_harness import (
    ANSWER,
    PLACEHOLDERS,
    TEXTS,
    WITH_DRAFTS,
    FlakyProducer,
    wait_until_acknowledged,
)
from tests.support.chat_platforms import Button, ChatPlatform, SlackPlatform, TelegramPlatform
from tests.support.drafting import DraftedAnswer
from tests.support.fake_slack import slack_api
from tests.support.fake_telegram import bot_api
from tests.support.held_answer import DEADLINE_SECONDS, PAGE, hold_answer
from tests.support.pausing_flow import AskingTool, make_flow
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

OVER = "pause_over/en"
DRAFT = TEXTS.text("push_draft", "en")
ASKS_BACK = {"needs_clarification": True, "clarification_reason": "ambiguous_query"}


@pytest.fixture(params=["slack", "telegram"])
async def platform(request: pytest.FixtureRequest) -> AsyncIterator[ChatPlatform]:
    if request.param == "slack":
        async with slack_api() as slack:
            yield SlackPlatform(slack)
    else:
        async with bot_api() as telegram:
            yield TelegramPlatform(telegram)


def count_shown(platform: ChatPlatform, text: str) -> int:
    return sum(text in shown for shown in platform.list_texts())


async def wait_until_answered(
    harness: WorkerHarness, platform: ChatPlatform, count: int = 1
) -> None:
    await wait_until(lambda: count_shown(platform, ANSWER) == count)
    await platform.wait_until_settled(harness)


async def test_a_message_that_a_platform_sends_twice_is_answered_once(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    async with harness.open(), platform.open(harness) as desk:
        await platform.ask(desk)
        assert await platform.send_again(desk) == 200
        await wait_until_answered(harness, platform)
        await platform.send_again(desk)
        await platform.wait_until_settled(harness)

    assert len(harness.script.seen[Role.RESPONSE]) == 1
    assert len(platform.list_texts()) == 1


async def test_an_event_that_cannot_be_taken_in_is_not_acknowledged(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    faltering = harness.make_broker()
    faltering.producer = FlakyProducer(faltering.producer, 1)
    async with harness.open(), platform.open(harness, broker=faltering) as desk:
        statuses = [await platform.write(desk), await platform.send_again(desk)]
        await wait_until_answered(harness, platform)

    assert statuses == [503, 200]


async def test_a_burst_is_one_question(harness: WorkerHarness, platform: ChatPlatform) -> None:
    async with platform.open(harness, policy=ChatPolicy(burst_seconds=0.5)) as desk:
        for text in ("I have", "a question", "about routing"):
            await platform.say(desk, text)
        async with harness.open():
            await wait_until_answered(harness, platform)

    [seen] = harness.script.seen[Role.LANG]
    assert seen["text"] == "I have\na question\nabout routing"
    assert len(platform.list_texts()) == 1


@pytest.mark.parametrize(("supersedes", "answers"), [(True, 1), (False, 2)])
async def test_a_newer_message_supersedes_or_waits_and_says_so(
    harness: WorkerHarness, platform: ChatPlatform, supersedes: bool, answers: int
) -> None:
    notice = TEXTS.text("superseded" if supersedes else "push_waiting", "de")
    policy = ChatPolicy(burst_seconds=0.0, supersedes=supersedes)
    async with platform.open(harness, policy=policy) as desk:
        await platform.say(desk, "First?", language="de")
        await wait_until(platform.list_texts)
        await platform.say(desk, "Second?", language="de")
        await wait_until(lambda: notice in platform.list_texts())
        async with harness.open():
            await wait_until_answered(harness, platform, answers)

    assert len(platform.list_texts()) == 2


async def test_the_sender_of_a_rejected_message_is_notified_once_in_their_language(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    async with platform.open(harness, quota=0) as desk:
        busy = await platform.ask(desk, "Wie?", language="de")
        assert await platform.send_again(desk) == 200
        long = await platform.ask(desk, "viel " * 2_000, language="de")
        await wait_until(lambda: len(platform.list_texts()) >= 2)

    notices = [TEXTS.text(key, "de") for key in ("push_busy", "push_too_long")]
    assert sorted(platform.list_texts()) == sorted(notices)
    assert platform.list_questions_replied_to() == {busy, long}
    assert platform.count_signs() == 0


async def test_a_very_long_answer_keeps_every_limit_and_loses_nothing(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    words = [f"w{number}&😀" for number in range(3_000)]
    code = [f"line{number}" for number in range(900)]
    text = "\n".join(("```python", *code, "```"))
    harness.script.next(Role.RESPONSE, {"response": f"{ANSWER} {' '.join(words)}\n\n{text}"})

    async with harness.open(), platform.open(harness) as desk:
        await platform.ask(desk)
        await wait_until_answered(harness, platform)

    shown = "\n".join(platform.list_texts()).replace("&amp;", "&").replace("```", " ").split()
    assert [word for word in shown if word[-1] == "😀"] == words
    assert [word for word in shown if word.startswith("line")] == code


async def test_markup_that_the_platform_refuses_becomes_plain_text(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    platform.refuse_markup()
    harness.script.next(Role.RESPONSE, {"response": f"**{ANSWER}**"})

    async with harness.open(), platform.open(harness) as desk:
        await platform.ask(desk)
        await wait_until_answered(harness, platform)

    assert not platform.shows_markup()


async def test_a_limit_that_is_met_all_the_same_loses_and_doubles_nothing(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    platform.limit_next(*platform.calls)
    policy = ChatPolicy(burst_seconds=0.0, supersedes=False)

    async with harness.open(), platform.open(harness, policy=policy) as desk:
        asked = [await platform.ask(desk) for _ in range(6)]
        await wait_until_answered(harness, platform, 6)

    assert platform.list_questions_replied_to() == {*asked}
    assert len(platform.list_texts()) == 6


async def test_an_outcome_waits_while_the_platform_does_not_know_the_token(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    platform.forget_token()

    async with harness.open(), platform.open(harness) as desk:
        await platform.ask(desk)
        await wait_until_answered(harness, platform)


async def test_the_open_questions_of_a_message_are_buttons_below_the_answer(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    harness.script.next(
        Role.ESSENCE, {"canonical_question": "How?", "remaining_questions": ["Who may?"]}
    )
    async with harness.open(), platform.open(harness) as desk:
        await platform.ask(desk, "How, and who may?")
        await wait_until_answered(harness, platform)
        await platform.press(desk, platform.list_buttons()[0])
        await wait_until(lambda: len(harness.script.seen[Role.LANG]) > 1)
        await wait_until_answered(harness, platform, 2)

    assert harness.script.seen[Role.LANG][1]["text"] == "Who may?"


@pytest.mark.parametrize(
    ("role", "act", "outcome"),
    [
        (Role.GUARDRAILS, ASKS_BACK, "clarification"),
        (Role.GUARDRAILS, {"within_scope": False}, "refused"),
        (Role.LANG, RuntimeError("broken"), "failed"),
    ],
)
async def test_a_question_back_a_refusal_and_an_apology_take_the_placeholder(
    harness: WorkerHarness, platform: ChatPlatform, role: Role, act: Any, outcome: str
) -> None:
    harness.script.next(role, *[act] * (9 if isinstance(act, Exception) else 1))

    async with harness.open(), platform.open(harness) as desk:
        asked = await platform.ask(desk)
        await wait_until(lambda: desk.connector.tally.counts)
        await platform.wait_until_settled(harness)

    [text] = platform.list_texts()
    assert desk.connector.tally.counts == {outcome: 1}
    assert text not in PLACEHOLDERS
    assert platform.list_questions_replied_to() == {asked}
    assert harness.script.seen[Role.LANG][0]["text"] == "How?"


async def test_a_reply_is_abandoned_after_twenty_failed_deliveries_and_the_process_continues(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    stream = f"rd:{{0}}:results:{platform.name}"
    async with platform.open(harness) as desk:
        await platform.ask(desk)
        await wait_until(platform.list_texts)
    async with harness.open():
        await wait_until(lambda: harness.client.xlen(stream))
    lost = harness.broker.result_list(platform.name, "lost")
    (result,) = await lost.take(slots=1, block_seconds=1.0)
    platform.refuse_outcomes()
    await harness.client.xclaim(stream, "workers", "lost", 0, [result.entry_id], retrycount=17)

    async with platform.open(harness, lease_seconds=0.2) as desk:
        await wait_until(lambda: desk.connector.tally.counts.get("delivery_abandoned"))
        await wait_until_acknowledged(harness, platform.name)
        platform.api.malformed.clear()
        async with harness.open():
            await platform.ask(desk)
            await wait_until(lambda: count_shown(platform, ANSWER))

    assert desk.connector.tally.counts["delivery_abandoned"] == 1
    assert 0 < desk.connector.tally.counts["delivery_failed"] <= 2


async def test_at_the_deadline_the_lack_of_time_and_the_nearest_page_are_shown(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    go_on = hold_answer(harness)
    chat = platform.open(harness, deadline_seconds=DEADLINE_SECONDS)
    async with harness.open(), chat as desk:
        await platform.ask(desk)
        await wait_until(lambda: desk.connector.tally.counts)
        await platform.wait_until_settled(harness)
        go_on.set()

    [text] = platform.list_texts()
    assert desk.connector.tally.counts == {"failed": 1}
    assert "deadline/en" in text
    assert PAGE.title in text


async def test_a_draft_that_grows_fast_meets_no_limit_and_gives_way_to_the_answer(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    drafted = DraftedAnswer(harness)
    drafted.script_many(150)

    async with harness.open(), platform.open(harness, policy=WITH_DRAFTS) as desk:
        await platform.ask(desk)
        await wait_until(lambda: count_shown(platform, DRAFT))
        drafted.first.set()
        await drafted.went_on.wait()
        drafted.whole.set()
        await wait_until(lambda: desk.connector.tally.counts)
        await platform.wait_until_settled(harness)

    [text] = platform.list_texts()
    assert platform.api.limited == []
    assert "Rules are tried by priority." in text
    assert DRAFT not in text


async def test_a_draft_that_is_refused_for_its_pace_waits_as_long_as_the_platform_says(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    platform.limit_next(platform.editing)
    drafted = DraftedAnswer(harness)
    drafted.script()

    async with harness.open(), platform.open(harness, policy=WITH_DRAFTS) as desk:
        await platform.ask(desk)
        await wait_until(lambda: platform.api.called(platform.editing))
        drafted.first.set()
        drafted.whole.set()
        await wait_until(lambda: desk.connector.tally.counts)
        await platform.wait_until_settled(harness)

    [text] = platform.list_texts()
    assert platform.api.impatient == []
    assert "Rules are tried by priority." in text


@pytest.fixture
def tool(harness: WorkerHarness) -> AskingTool:
    """The tool that needs an approval, in a desk that pauses for it."""
    made = AskingTool("approval")
    harness.flows = {Envelope.flow: make_flow("approval")}
    harness.further_agents = [made]
    return made


async def ask_for_approval(
    harness: WorkerHarness, platform: ChatPlatform, desk: Any
) -> tuple[str, list[Button]]:
    """Ask; return the id of the question, and the buttons to approve and to deny."""
    asked = await platform.ask(desk)
    await wait_until(platform.list_buttons)
    await platform.wait_until_settled(harness)
    return asked, platform.list_buttons()[:2]


@pytest.mark.parametrize(("number", "runs"), [(0, 5), (1, 3)], ids=["approve", "deny"])
async def test_pressing_twice_has_one_effect(
    harness: WorkerHarness, platform: ChatPlatform, tool: AskingTool, number: int, runs: int
) -> None:
    async with harness.open(), platform.open(harness) as desk:
        _, buttons = await ask_for_approval(harness, platform, desk)
        for _ in range(2):
            await platform.press(desk, buttons[number])
        await wait_until(lambda: count_shown(platform, ANSWER))
        await platform.wait_until_settled(harness)
        await platform.press(desk, buttons[1 - number])
        await wait_until(lambda: count_shown(platform, OVER))
        await platform.wait_until_settled(harness)

    labels = [button.fields["text"] for button in buttons]
    plain = [label["text"] if isinstance(label, dict) else label for label in labels]
    assert plain == ["approve/en", "deny/en"]
    assert len(tool.ran) == runs
    assert count_shown(platform, ANSWER) == 1


async def test_another_person_is_refused_and_the_buttons_stay_for_the_first(
    harness: WorkerHarness, platform: ChatPlatform, tool: AskingTool
) -> None:
    async with harness.open(), platform.open(harness) as desk:
        asked, buttons = await ask_for_approval(harness, platform, desk)
        for button in buttons:
            await platform.press(desk, button, is_other=True)
        await wait_until(lambda: platform.count_refused_presses() == 2)
        await platform.wait_until_settled(harness)
        kept, ran_then = platform.list_buttons()[:2], len(tool.ran)
        await platform.press(desk, buttons[0])
        await wait_until(lambda: count_shown(platform, ANSWER))
        await wait_until(lambda: buttons[0] not in platform.list_buttons())
        await platform.wait_until_settled(harness)

    assert kept == buttons
    assert (ran_then, len(tool.ran)) == (3, 5)
    assert platform.list_questions_replied_to() == {asked}


async def test_pressing_after_the_expiry_runs_nothing_and_says_so(
    harness: WorkerHarness, platform: ChatPlatform, tool: AskingTool
) -> None:
    harness.limits = Limits(pause_seconds=0.0)
    async with harness.open(), platform.open(harness) as desk:
        _, buttons = await ask_for_approval(harness, platform, desk)
        await platform.press(desk, buttons[0])
        await wait_until(lambda: count_shown(platform, OVER))
        await platform.wait_until_settled(harness)

    assert len(tool.ran) == 3


async def test_the_words_of_another_person_approve_nothing(
    harness: WorkerHarness, platform: ChatPlatform, tool: AskingTool
) -> None:
    async with harness.open(), platform.open(harness) as desk:
        asked, _ = await ask_for_approval(harness, platform, desk)
        await platform.approve_in_words(desk, asked)
        await platform.wait_until_settled(harness)

    assert len(tool.ran) % 3 == 0, "each question ran what needs no approval, and nothing else"
    assert count_shown(platform, ANSWER) == 0
