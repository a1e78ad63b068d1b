"""Approve and deny as buttons of Slack: once, in time, and by the person who asked."""

from typing import Any

import pytest

from envelope.envelope import Envelope
from manager.machine import Limits
from tests.support.chat_harness import ANSWER
from tests.support.fake_slack import BOT, SlackApi
from tests.support.pausing_flow import AskingTool, make_flow
from tests.support.slack_harness import SlackHarness, slack_desk, wait_until_settled
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

MENTION = f"<@{BOT}>"
FOREIGN, OVER = "pause_foreign/en", "pause_over/en"


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


@pytest.mark.parametrize(("number", "runs"), [(0, 5), (1, 3)], ids=["approve", "deny"])
async def test_pressing_twice_has_one_effect(
    harness: WorkerHarness, api: SlackApi, tool: AskingTool, number: int, runs: int
) -> None:
    async with harness.open(), slack_desk(harness, api) as desk:
        ts, _, buttons = await ask(desk)
        for _ in range(2):
            assert (await desk.press(ts, buttons[number])).status_code == 200
        await wait_until(lambda: count_shown(api, ANSWER))
        await wait_until_settled(harness, api)
        await desk.press(ts, buttons[1 - number])
        await wait_until(lambda: count_shown(api, OVER))
        await wait_until_settled(harness, api)

    assert [one["text"]["text"] for one in buttons[:2]] == ["approve/en", "deny/en"]
    assert len(tool.ran) == runs
    assert count_shown(api, ANSWER) == 1


async def test_another_person_is_refused_in_the_thread_and_the_buttons_stay_for_the_first(
    harness: WorkerHarness, api: SlackApi, tool: AskingTool
) -> None:
    async with harness.open(), slack_desk(harness, api) as desk:
        ts, event, (approve, deny, *_) = await ask(desk)
        for button in (approve, deny):
            await desk.press(ts, button, user="U2")
        await wait_until(lambda: count_shown(api, FOREIGN) == 2)
        await desk.say("approve/en", thread_ts=event["ts"], user="U2")
        await wait_until(lambda: count_shown(api, FOREIGN) == 3)
        await wait_until_settled(harness, api)
        buttons_then, ran_then = list(api.posts[ts].buttons), len(tool.ran)
        await desk.press(ts, approve)
        await wait_until(lambda: count_shown(api, ANSWER))
        await wait_until(lambda: not api.posts[ts].buttons)
        await wait_until_settled(harness, api)

    assert [one["value"] for one in buttons_then[:2]] == [approve["value"], deny["value"]]
    assert (ran_then, len(tool.ran)) == (3, 5)
    assert {said.thread for said in api.posts.values()} == {event["ts"]}


async def test_pressing_after_the_expiry_runs_nothing_and_says_so(
    harness: WorkerHarness, api: SlackApi, tool: AskingTool
) -> None:
    harness.limits = Limits(pause_seconds=0.0)
    async with harness.open(), slack_desk(harness, api) as desk:
        ts, _, (approve, *_) = await ask(desk)
        await desk.press(ts, approve)
        await wait_until(lambda: count_shown(api, OVER))
        await wait_until_settled(harness, api)

    assert len(tool.ran) == 3
