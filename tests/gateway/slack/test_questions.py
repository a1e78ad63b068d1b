from tests.gateway.pushing.rig import ANSWER, WORKING, acknowledged, until
from tests.gateway.slack.api import BOT
from tests.gateway.slack.rig import SlackDesk


async def answered(desk: SlackDesk, count: int = 1) -> None:
    """Wait until so many answers are shown and nothing is left to do."""
    await until(lambda: sum(ANSWER in shown for shown in desk.api.shown()) == count)
    await acknowledged(desk.house, "slack")
    await until(lambda: not desk.api.reactions)


async def test_a_mention_is_answered_in_its_thread_with_eyes_until_then(desk: SlackDesk) -> None:
    event = await desk.say(f"<@{BOT}> How do I add a rule?")

    await answered(desk)
    (said,) = desk.api.posts.values()
    assert said.thread == event["ts"]
    assert said.versions in ([WORKING], ["…"])
    assert desk.api.reacted == [("C1", event["ts"], "eyes")]
