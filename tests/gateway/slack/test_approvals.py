"""Approve and deny as buttons of Slack: once, in time, and by the person who asked."""

from typing import Any

import pytest

from envelope.envelope import Envelope
from tests.support.fake_slack import BOT, SlackApi
from tests.support.pausing_flow import AskingTool, make_flow
from tests.support.slack_harness import SlackHarness, slack_desk, wait_until_settled
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

MENTION = f"<@{BOT}>"
FOREIGN = "pause_foreign/en"


@pytest.fixture
def tool(harness: WorkerHarness) -> AskingTool:
    """The tool that needs an approval, in a desk that pauses for it."""
    made = AskingTool("approval")
    harness.flows = {Envelope.flow: make_flow("approval")}
    harness.further_agents = [made]
    return made


async def ask(desk: SlackHarness) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """Have U1 ask; return the post with the buttons, its event, and the buttons."""
    event = await desk.say(f"{MENTION} How?")
    await wait_until(lambda: any(said.buttons for said in desk.api.posts.values()))
    await wait_until_settled(desk.harness, desk.api)
    (ts,) = desk.api.posts
    return ts, event, desk.api.posts[ts].buttons


def count_shown(api: SlackApi, text: str) -> int:
    return sum(text in shown for shown in api.shown())


async def test_the_words_of_another_person_in_the_thread_approve_nothing(
    harness: WorkerHarness, api: SlackApi, tool: AskingTool
) -> None:
    async with harness.open(), slack_desk(harness, api) as desk:
        _, event, _ = await ask(desk)
        await desk.say("approve/en", thread_ts=event["ts"], user="U2")
        await wait_until(lambda: count_shown(api, FOREIGN) == 1)
        await wait_until_settled(harness, api)

    assert len(tool.ran) == 3
    assert {said.thread for said in api.posts.values()} == {event["ts"]}
