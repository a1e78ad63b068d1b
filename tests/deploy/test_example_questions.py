"""Every example question ends as its file says: offline, and where it is translated."""

import json

import pytest

from llm.tasks.translate import Output as Translation
from tests.deploy.conftest import OpenApp
from tests.support.app_harness import EXAMPLES, Fields, PartlyScriptedModel

pytestmark = pytest.mark.slow

QUESTIONS = [
    json.loads(line)
    for line in (EXAMPLES / "sms_platform_questions.jsonl").read_text("utf-8").splitlines()
]
WITHOUT_TRANSLATION = frozenset(
    {
        "Сколько попыток повтора у вебхука?",
        "¿Cuánto tiempo es válido el enlace para restablecer la contraseña?",
        "SMSのルーティングルールを設定するにはどうすればよいですか?",
        "¿Cómo lo configuro?",
        "Wie richte ich das ein?",
    }
)
"""No word of theirs is in a page, and offline nothing translates: declined, not guessed."""


async def test_the_example_questions_end_as_expected_offline(open_app: OpenApp) -> None:
    async with open_app() as harness:
        replies = [await harness.driver().say(asked["question"]) for asked in QUESTIONS]

    expected = [
        {**asked, "expected": "refused"} if asked["question"] in WITHOUT_TRANSLATION else asked
        for asked in QUESTIONS
    ]
    assert "\n".join(filter(None, map(differing, expected, replies))) == ""


async def test_the_example_questions_end_as_expected_where_they_are_translated(
    open_app: OpenApp,
) -> None:
    model = PartlyScriptedModel(
        translate=[Translation(text_eng=asked["english"], confidence=0.95) for asked in QUESTIONS]
    )

    async with open_app(model) as harness:
        replies = [await harness.driver().say(asked["question"]) for asked in QUESTIONS]

    ended = [(reply["outcome"], reply["language"]) for reply in replies]
    assert ended == [(asked["expected"], asked["language"]) for asked in QUESTIONS]


def differing(asked: Fields, reply: Fields) -> str:
    """What is not as expected of a reply; empty when all is."""
    ended = (reply["outcome"], reply["language"])
    if ended != (asked["expected"], asked["language"]):
        return f"{asked['question']}: ended {ended}"
    if asked["expected"] != "answered":
        return ""
    paths = [source["path"] for source in reply["sources"]]
    if not any(path.endswith(asked["page"]) for path in paths):
        return f"{asked['question']}: cites {paths}"
    missing = [part for part in asked["must_contain"] if part not in reply["text"]]
    return f"{asked['question']}: does not say {missing}" if missing else ""
