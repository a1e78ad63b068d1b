"""The sign that somebody works at a message stays until nobody does any more."""

import asyncio
import json

import pytest

from envelope.question import Question
from envelope.role import Role
from gateway.chat.connector import ChatChannel
from gateway.chat.placeholder import TypingIndicator
from gateway.chat.ports import CallSkippedError, ChatPolicy, PermanentError, RetryableError
from tests.support.chat_harness import (
    ANSWER,
    TEXTS,
    WITH_DRAFTS,
    Holding,
    memory_of,
    open_connector,
    say,
    wait_until_acknowledged,
)
from tests.support.drafting import FIRST, SECOND, DraftedAnswer
from tests.support.fake_channel import FakeChannel, make_incoming
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

EACH = ChatPolicy(burst_seconds=0.0, supersedes=False)


async def test_a_sign_that_was_left_to_an_edit_goes_when_that_is_not_accepted(
    harness: WorkerHarness,
) -> None:
    fake_channel = FakeChannel()
    broker = harness.make_broker(quota=0)
    broker.producer = full = Holding(broker.producer, "submit")
    async with (
        open_connector(harness, fake_channel, policy=EACH) as connector,
        open_connector(harness, fake_channel, policy=EACH, broker=broker) as other,
        asyncio.TaskGroup() as tasks,
    ):
        await say(connector, "1", "one", 1.0)
        await fake_channel.signed.wait()
        edit = make_incoming(connector.name_question("c", "1:2"), "eins", 2.0, edits="1")
        tasks.create_task(other.intake.accept(edit))
        await full.holds.wait()
        await wait_until_acknowledged(harness, "wall")
        assert "rested" not in fake_channel.calls

        full.goes_on.set()

        await wait_until(lambda: "rested" in fake_channel.calls)


async def test_a_sign_goes_also_when_its_own_event_comes_again_meanwhile(
    harness: WorkerHarness,
) -> None:
    fake_channel = FakeChannel()
    async with open_connector(harness, fake_channel, policy=EACH) as connector:
        message = make_incoming(connector.name_question("c", "1"), "one", 1.0)
        await connector.memory.note(message.question, post=json.dumps(message.post))
        await connector.memory.open(message.question, message.order)
        signs = TypingIndicator(connector.memory, fake_channel, deadline_seconds=60.0)

        await signs.rest(message.question, message.post)

    assert fake_channel.calls == ["rested"]


NOTICE = f"_{TEXTS.text('push_draft', 'en')}_"
WHOLE = f"{FIRST} {SECOND}"


def shows(channel: FakeChannel, text: str) -> bool:
    """Whether the channel's one post shows a draft."""
    return list(channel.posts.values()) == [f"{text}\n\n{NOTICE}"]


async def wait_until_answered(
    harness: WorkerHarness, channel: FakeChannel, text: str = WHOLE
) -> None:
    """Wait until the outcome is shown, and nothing is left to do."""
    await wait_until(lambda: text in channel.posts.values())
    await wait_until_acknowledged(harness, channel.name)


async def test_a_placeholder_shows_the_draft_and_then_the_answer(harness: WorkerHarness) -> None:
    channel, drafted = FakeChannel(), DraftedAnswer(harness)
    drafted.script()

    async with open_connector(harness, channel, policy=WITH_DRAFTS) as connector, harness.open():
        await say(connector, "1", "How?", 1.0)
        await wait_until(lambda: shows(channel, FIRST))
        drafted.first.set()
        await wait_until(lambda: shows(channel, WHOLE))
        drafted.whole.set()
        await wait_until_answered(harness, channel)

    assert list(channel.posts.values()) == [WHOLE]


@pytest.mark.parametrize(("draft_seconds", "shown"), [(0.01, True), (None, False)])
async def test_a_question_says_whether_its_channel_shows_drafts(
    harness: WorkerHarness, draft_seconds: float | None, shown: bool
) -> None:
    channel = FakeChannel()
    policy = ChatPolicy(burst_seconds=0.0, draft_seconds=draft_seconds)

    async with open_connector(harness, channel, policy=policy) as connector, harness.open():
        question = connector.name_question("c", "1")
        await connector.intake.accept(make_incoming(question, "How?", 1.0))
        await wait_until_answered(harness, channel, ANSWER)

    [reads] = harness.script.seen[Role.RESPONSE]
    assert reads["shows_drafts"] is shown


async def test_a_channel_that_shows_no_drafts_edits_its_placeholder_once(
    harness: WorkerHarness,
) -> None:
    channel, drafted = FakeChannel(), DraftedAnswer(harness)
    drafted.script()
    drafted.first.set()
    drafted.whole.set()

    async with (
        open_connector(harness, channel, policy=ChatPolicy(burst_seconds=0.0)) as connector,
        harness.open(),
    ):
        await say(connector, "1", "How?", 1.0)
        await wait_until_answered(harness, channel)

    assert channel.versions == [WHOLE]


async def test_a_rejected_draft_disappears_with_the_next_edit(harness: WorkerHarness) -> None:
    channel, rejected = FakeChannel(), DraftedAnswer(harness)
    rejected.script_rejection()
    again = harness.script.hold(Role.RESPONSE)

    async with open_connector(harness, channel, policy=WITH_DRAFTS) as connector, harness.open():
        await say(connector, "1", "How?", 1.0)
        await wait_until(lambda: shows(channel, FIRST))
        rejected.first.set()
        rejected.whole.set()
        await wait_until(lambda: list(channel.posts.values()) == [TEXTS.text("push_working", "en")])
        again.goes_on.set()
        await wait_until_answered(harness, channel, ANSWER)

    assert list(channel.posts.values()) == [ANSWER]


async def test_the_outcome_waits_for_the_edit_of_a_draft(harness: WorkerHarness) -> None:
    channel, drafted = FakeChannel(draft_gate=asyncio.Event()), DraftedAnswer(harness)
    drafted.script()

    async with open_connector(harness, channel, policy=WITH_DRAFTS) as connector, harness.open():
        question = connector.name_question("c", "1")
        await connector.intake.accept(make_incoming(question, "How?", 1.0))
        await channel.drafted.wait()
        drafted.first.set()
        drafted.whole.set()
        await wait_until(lambda: _has_stopped_drafts(connector, question))
        before = list(channel.versions)
        assert channel.draft_gate is not None
        channel.draft_gate.set()
        await wait_until_answered(harness, channel)

    assert before == []
    assert channel.versions == [f"{FIRST}\n\n{NOTICE}", WHOLE]


async def _has_stopped_drafts(connector: ChatChannel, question: Question) -> bool:
    return "drafts_stopped" in await connector.memory.fields(question)


async def test_no_draft_is_shown_after_an_outcome(harness: WorkerHarness) -> None:
    memory = memory_of(harness, "wall")
    question = harness.desk().name_question("c", "1")

    assert await memory.begin_draft(question, seconds=60.0)
    assert 0 < await memory.stop_drafts(question) <= 60.0
    await memory.end_draft(question)

    assert await memory.stop_drafts(question) == 0
    assert not await memory.begin_draft(question, seconds=60.0)
    assert await memory.stop_drafts(question) == 0


@pytest.mark.parametrize(
    "refusal",
    [
        CallSkippedError("no turn"),
        RetryableError("asked too often", 0.01, by_platform=True),
        PermanentError("never"),
    ],
)
async def test_a_draft_that_the_platform_refuses_costs_the_outcome_nothing(
    harness: WorkerHarness, refusal: Exception
) -> None:
    channel, drafted = FakeChannel(refusals={"draft": [refusal]}), DraftedAnswer(harness)
    drafted.script()

    async with open_connector(harness, channel, policy=WITH_DRAFTS) as connector, harness.open():
        await say(connector, "1", "How?", 1.0)
        await wait_until(lambda: "draft" in channel.calls)
        drafted.first.set()
        drafted.whole.set()
        await wait_until_answered(harness, channel)

    assert channel.calls.count("edit") == 1
    assert list(channel.posts.values()) == [WHOLE]
