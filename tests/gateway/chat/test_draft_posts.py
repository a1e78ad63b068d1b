"""The placeholder of a question shows how far its answer has come, and its outcome in the end."""

import asyncio

import pytest

from envelope.question import Question
from envelope.role import Role
from gateway.chat.connector import ChatChannel
from gateway.chat.errors import CallSkippedError, PermanentError, RetryableError
from gateway.chat.ports import ChatPolicy
from tests.support.chat_harness import (
    ANSWER,
    TEXTS,
    WITH_DRAFTS,
    memory_of,
    open_connector,
    wait_until_acknowledged,
)
from tests.support.drafting import FIRST, SECOND, DraftedAnswer
from tests.support.fake_channel import FakeChannel, make_incoming
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

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
        await connector.intake.accept(make_incoming(connector.name_question("c", "1"), "How?", 1.0))
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
        await connector.intake.accept(make_incoming(connector.name_question("c", "1"), "How?", 1.0))
        await wait_until_answered(harness, channel)

    assert channel.versions == [WHOLE]


async def test_a_rejected_draft_disappears_with_the_next_edit(harness: WorkerHarness) -> None:
    channel, rejected = FakeChannel(), DraftedAnswer(harness)
    rejected.script_rejection()
    going_on = asyncio.Event()
    harness.script.next(Role.RESPONSE, lambda _reads: _write_when(going_on))

    async with open_connector(harness, channel, policy=WITH_DRAFTS) as connector, harness.open():
        await connector.intake.accept(make_incoming(connector.name_question("c", "1"), "How?", 1.0))
        await wait_until(lambda: shows(channel, FIRST))
        rejected.first.set()
        rejected.whole.set()
        await wait_until(lambda: list(channel.posts.values()) == [TEXTS.text("push_working", "en")])
        going_on.set()
        await wait_until_answered(harness, channel, ANSWER)

    assert list(channel.posts.values()) == [ANSWER]


async def _write_when(going_on: asyncio.Event) -> dict[str, object]:
    await going_on.wait()
    return {}


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
        await connector.intake.accept(make_incoming(connector.name_question("c", "1"), "How?", 1.0))
        await wait_until(lambda: "draft" in channel.calls)
        drafted.first.set()
        drafted.whole.set()
        await wait_until_answered(harness, channel)

    assert channel.calls.count("edit") == 1
    assert list(channel.posts.values()) == [WHOLE]
