"""Whatever a model was talked into, no message in Slack leads elsewhere."""

import json
from functools import partial
from typing import Any

from envelope.role import Role
from tests.citations.shapes import PAGE, SHAPES, SOURCE, leads_elsewhere
from tests.support.fake_slack import BOT
from tests.support.slack_harness import SlackHarness, wait_until_settled
from tests.support.waiting import wait_until


def texts(part: Any) -> list[dict[str, Any]]:
    """Every text object in blocks."""
    if isinstance(part, list):
        return [text for one in part for text in texts(one)]
    if not isinstance(part, dict):
        return []
    own = [part] if part.get("type") == "mrkdwn" else []
    return own + [text for one in part.values() for text in texts(one)]


def has_answered(desk: SlackHarness, count: int) -> bool:
    """Whether that many outcomes were shown."""
    return desk.connector.tally.counts.get("answered", 0) >= count


async def test_no_shape_of_a_foreign_link_reaches_slack(desk: SlackHarness) -> None:
    for shape in SHAPES:
        desk.harness.script.next(Role.RESPONSE, {"response": shape.text, "sources_used": [SOURCE]})
    for number in range(len(SHAPES)):
        await desk.say(f"<@{BOT}> How?")
        await wait_until(partial(has_answered, desk, number + 1))
    await wait_until_settled(desk.harness, desk.api)

    shown = desk.api.shown()
    assert len(shown) == len(SHAPES)
    for shape in SHAPES:
        assert any(shape.kept in text for text in shown), shape.name
    calls = [call for name, call in desk.api.calls if name.startswith("chat.")]
    assert not leads_elsewhere(json.dumps(calls))
    assert {call["parse"] for call in calls if "text" in call} == {"none"}
    written = [text for said in desk.api.posts.values() for text in texts(said.blocks)]
    assert written
    assert all(text["verbatim"] for text in written)
    assert f"<{PAGE}|" in json.dumps(written)


async def test_a_question_back_in_slack_leads_nowhere(desk: SlackHarness) -> None:
    text = SHAPES[12].text
    act = {"within_scope": True, "needs_clarification": True,
           "clarification_reason": "ambiguous_query", "clarification_message": "-"}  # fmt: skip
    actions = [
        {"label": text, "value": "One", "kind": "option"},
        {"label": "Page", "value": "-", "kind": "source", "url": "https://a@evil.test/"},
    ]
    desk.harness.script.next(Role.GUARDRAILS, act)
    desk.harness.script.next(Role.CLARIFICATION, {"response": text, "suggested_actions": actions})

    await desk.say(f"<@{BOT}> How?")

    await wait_until(lambda: any(said.buttons for said in desk.api.posts.values()))
    await wait_until_settled(desk.harness, desk.api)
    assert not leads_elsewhere(json.dumps([call for _, call in desk.api.calls]))
