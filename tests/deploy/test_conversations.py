"""Conversations of several turns: by rules, and with a model on the wire."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.conftest import OpenApp
from tests.deploy.test_conversation_acts import asks_for_essence, make_draft, make_understanding
from tests.support.app_harness import options, refdesk
from tests.support.folder_copy import copy_folder
from tests.support.model_server import running_server

pytestmark = pytest.mark.slow
DATA = tomllib.loads(Path(__file__).with_name("conversations.toml").read_text(encoding="utf-8"))
SMS_DOMAIN = {
    "domain_name": "SMS platform documentation",
    "domain_scope": "setting up and running an SMS messaging platform",
}
CONVERSATIONS = DATA["conversation"]


def find_differences(
    expected: dict[str, Any], reply: dict[str, Any], roles: list[str]
) -> list[str]:
    """Return what a reply is other than expected, each with what was found."""
    page = reply["sources"][0]["path"] if reply["sources"] else None
    found = {
        "outcome": reply["outcome"],
        "reason": reply.get("clarification_reason"),
        "question": reply["question"],
        "language": reply["language"],
        "options": options(reply),
        "page": page,
        "hops": reply.get("hops"),
    }
    wrong = [
        f"{name}: expected {expected[name]!r}, found {value!r}"
        for name, value in found.items()
        if name in expected and expected[name] != value
    ]
    text = reply["text"]
    wrong += [f"asked {role}" for role in expected.get("without", ()) if role in roles]
    wrong += [f"lacks {part!r}: {text}" for part in expected.get("says", ()) if part not in text]
    return wrong + [f"says {part!r}: {text}" for part in expected.get("never", ()) if part in text]


def script_of(turns: list[dict[str, Any]]) -> list[Any]:
    """Return what the model answers over a conversation, in order."""
    script: list[Any] = []
    for turn in turns:
        if understood := turn.get("understood"):
            fields = dict(understood)
            script.append(make_understanding(fields.pop("canonical_question"), **fields))
        if draft := turn.get("draft"):
            script.append(make_draft(draft))
    return script


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda one: str(one["name"]))
async def test_every_reply_of_a_conversation_is_what_the_person_needs(
    open_app: OpenApp, conversation: dict[str, Any]
) -> None:
    turns = conversation["turns"]
    script = script_of(turns)
    wrong: dict[str, list[str]] = {}
    async with running_server() as server:
        server.will_send(*script)
        settings = asks_for_essence(server) if script else {}
        async with open_app(**settings) as harness:
            driver = harness.driver()
            for turn in turns:
                reply = await driver.say(turn["say"])
                expected = {"outcome": "answered", **turn}
                roles = await driver.roles(reply)
                if differences := find_differences(expected, reply, roles):
                    wrong[turn["say"]] = differences

    assert wrong == {}
    assert len(server.received) == len(script)


def test_a_terminal_shows_the_options_and_takes_their_number(library: Path, tmp_path: Path) -> None:
    data = copy_folder(library, tmp_path / "data")
    turns = ("Which limits are there?", "1", "danke")
    given = "\n".join((*turns, "/quit", "")).encode()

    chat = refdesk(data, "chat", given=given, **SMS_DOMAIN)

    shown = " ".join(chat.stdout.split())
    assert (chat.returncode, chat.stderr) == (0, "")
    assert "Which of these do you mean?" in shown
    assert "Sources" in shown
    assert "Gern geschehen" in shown
