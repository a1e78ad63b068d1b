"""What people choose and how they fared follows them across conversations, and can be erased."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deploy.assembly.recording import record_waiting
from gateway.chat.people import PersonDigests
from knowledge.embedding import Embedder
from tests.desk.test_acts_over_http import NEW_WEBHOOK, WEBHOOK
from tests.desk.test_conversations import asks_for_essence, make_draft, make_understanding
from tests.gateway.erasing.canary import values_with
from tests.support.app_harness import settings_of
from tests.support.folder_copy import copy_folder
from tests.support.http_desk import HttpDesk, open_http_desk
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.slow
CHOICE = make_understanding("-", act="preference", style="shorter", answer_language="de")
PLAIN = make_understanding(WEBHOOK, context_type="new_topic")
GERMAN = make_draft("Öffnen Sie Developers > Webhooks und wählen Sie New webhook. [1][2][3]")
PERSON = "/v1/person"


@pytest.fixture
async def desk(
    library: Path, embedder: Embedder, tmp_path: Path, server: ModelServer
) -> AsyncIterator[HttpDesk]:
    own = copy_folder(library, tmp_path / "data")
    settings = settings_of(own, **asks_for_essence(server))
    async with open_http_desk(settings, embedder, scopes=["ask", "read", "forget", "feedback",
                                                          "documents"]) as opened:  # fmt: skip
        yield opened


async def digest(desk: HttpDesk, person: str) -> str:
    secret: bytes = await desk.client.get("rd:keys:links")
    return PersonDigests(secret).of(desk.key.tenant, person)


async def say(desk: HttpDesk, conversation: str, person: str, text: str) -> str:
    path = f"/v1/conversations/{conversation}/messages"
    answer = await desk.http.post(path, json={"text": text, "user_id": person})
    assert answer.json()["outcome"] == "answered"
    return str(answer.json()["text"])


async def test_a_choice_holds_in_every_conversation_of_the_person_and_in_no_other(
    desk: HttpDesk, server: ModelServer
) -> None:
    server.will_send(CHOICE, PLAIN, GERMAN, PLAIN, NEW_WEBHOOK)

    said = await say(desk, "c1", "ada", "Bitte ab jetzt kurz und auf Deutsch.")
    await say(desk, "c2", "ada", WEBHOOK)
    await say(desk, "c3", "bob", WEBHOOK)

    assert said.startswith("So antworte ich ab jetzt")
    asked = [json.dumps(received.body) for received in server.received]
    assert ["The user wants it short" in item for item in asked] == [
        False,
        False,
        True,
        False,
        False,
    ]
    known = [
        (await desk.http.get(PERSON, params={"user_id": text})).json() for text in ("ada", "bob")
    ]
    assert [item["preferences"] for item in known] == [
        {"language": "de", "style": "shorter"},
        {"language": None, "style": None},
    ]
    shown = await say(desk, "c4", "ada", "/get_stats")
    assert "Sprache der Antworten: Deutsch" in shown
    assert "Form der Antworten: kurz" in shown


async def test_statistics_of_a_person_count_all_their_conversations(
    desk: HttpDesk, server: ModelServer
) -> None:
    server.will_send(PLAIN, NEW_WEBHOOK, PLAIN, NEW_WEBHOOK, PLAIN, NEW_WEBHOOK)
    for conversation, person in (("c1", "ada"), ("c2", "ada"), ("c3", "bob")):
        await say(desk, conversation, person, WEBHOOK)
    assert desk.runtime is not None
    await record_waiting(desk.runtime)

    mine = (await desk.http.get(PERSON, params={"user_id": "ada"})).json()["statistics"]
    all_of_them = (await desk.http.get("/v1/people")).json()

    counts = (mine["questions"], mine["conversations"], mine["answered"], mine["languages"])
    assert counts == (2, 2, 2, 1)
    assert {person["person"]: person["questions"] for person in all_of_them["people"]} == {
        await digest(desk, "ada"): 2,
        await digest(desk, "bob"): 1,
    }
    assert (await desk.http.get(PERSON)).status_code == 400


async def test_a_person_who_is_forgotten_stands_in_no_key_and_in_no_record(
    desk: HttpDesk, server: ModelServer
) -> None:
    server.will_send(CHOICE, PLAIN, GERMAN)
    await say(desk, "c1", "ada", "Bitte ab jetzt kurz und auf Deutsch.")
    await say(desk, "c2", "ada", WEBHOOK)
    assert desk.runtime is not None
    await record_waiting(desk.runtime)
    pseudonym = await digest(desk, "ada")
    assert await values_with(desk.client, pseudonym)

    erased = (await desk.http.delete(PERSON, params={"user_id": "ada"})).json()
    await record_waiting(desk.runtime)

    assert erased == {"conversations": 2, "has_more": False}
    assert await values_with(desk.client, pseudonym) == []
    assert (await desk.http.get("/v1/people")).json()["people"] == []
    known = (await desk.http.get(PERSON, params={"user_id": "ada"})).json()
    assert known["preferences"] == {"language": None, "style": None}
    assert known["statistics"]["questions"] == 0


async def test_a_person_who_clears_everything_chose_nothing(
    desk: HttpDesk, server: ModelServer
) -> None:
    server.will_send(CHOICE)
    await say(desk, "c1", "ada", "Bitte ab jetzt kurz und auf Deutsch.")

    await say(desk, "c2", "ada", "/clear_all")

    assert await desk.client.keys("rd:person:*") == []
