from tests.gateway.pushing.rig import ANSWER, WORKING, acknowledged, until
from tests.gateway.telegram.rig import TelegramDesk


async def test_a_question_gets_a_placeholder_that_becomes_its_answer(desk: TelegramDesk) -> None:
    await desk.say("How do I add a rule?")

    await until(lambda: any(ANSWER in text for text in desk.api.texts(7)))
    await acknowledged(desk.house, "telegram")
    (said,) = desk.api.chats.values()
    assert said.text.startswith(ANSWER)
    assert said.versions in ([WORKING], ["…"])
    assert desk.api.called("sendChatAction")[0]["action"] == "typing"
