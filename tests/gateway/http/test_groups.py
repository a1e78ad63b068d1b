"""Whose documents a request may read: groups come from the key, never from the request."""

from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from envelope.question import Question
from gateway.api_keys import Scope, make_key
from tests.support.http_server import HttpServerFixture

MESSAGES = "/v1/conversations/c1/messages"
SENT = {"text": "How much does a manager earn?", "message_id": "m1"}
FORGED = ("x-groups", "x-refdesk-groups", "x-person-groups", "groups", "x-forwarded-groups")


async def read_accepted(server: HttpServerFixture, message_id: str = "m1") -> dict[str, Any]:
    """Return what the journal says about who asked."""
    question = Question(
        tenant="acme", assistant="docs", conversation_id="c1", message_id=message_id
    )
    journal = await server.door.replies.read_journal(question)
    return dict(journal[0].fields)


async def test_a_question_has_the_groups_of_its_key(http_server: HttpServerFixture) -> None:
    client = await http_server.secret(groups=("sales", "hr"))

    assert (await client.post(MESSAGES, json=SENT)).status_code == 200

    assert (await read_accepted(http_server))["groups"] == ["hr", "sales"]


async def test_a_key_without_groups_records_none(http_server: HttpServerFixture) -> None:
    client = await http_server.secret()

    assert (await client.post(MESSAGES, json=SENT)).status_code == 200

    assert "groups" not in await read_accepted(http_server)


async def test_no_header_and_no_field_of_a_request_gives_groups(
    http_server: HttpServerFixture,
) -> None:
    client = await http_server.secret()
    in_body = await client.post(MESSAGES, json={**SENT, "groups": ["hr"]})
    in_payload = await client.post(MESSAGES, json={**SENT, "payload": {"groups": ["hr"]}})
    assert (in_body.status_code, in_payload.status_code) == (400, 400)

    sent = await client.post(
        f"{MESSAGES}?groups=hr", json=SENT, headers=dict.fromkeys(FORGED, "hr")
    )

    assert sent.status_code == 200
    assert "groups" not in await read_accepted(http_server)


async def test_a_key_without_the_groups_reads_no_answer_of_one_that_has_them(
    http_server: HttpServerFixture,
) -> None:
    person = await http_server.secret(groups=("hr",))
    other = await http_server.secret(groups=("sales",), scopes=frozenset(Scope))
    assert (await person.post(MESSAGES, json=SENT)).status_code == 200

    async def attack(client: httpx.AsyncClient) -> list[int]:
        return [
            (await client.get("/v1/conversations/c1")).status_code,
            (await client.get(f"{MESSAGES}/m1/events")).status_code,
            (await client.post(f"{MESSAGES}/m1/cancel")).status_code,
            (await client.post(MESSAGES, json=SENT)).status_code,
        ]

    assert await attack(other) == [404, 404, 404, 409]
    assert await attack(person) == [200, 200, 200, 200]


async def test_a_conversation_shows_each_person_the_messages_for_their_groups(
    http_server: HttpServerFixture,
) -> None:
    person = await http_server.secret(groups=("hr",))
    other = await http_server.secret()
    await person.post(MESSAGES, json=SENT)
    await other.post(MESSAGES, json={"text": "How do I add a rule?", "message_id": "m2"})

    def ids(answer: httpx.Response) -> list[str]:
        return [message["message_id"] for message in answer.json()["messages"]]

    assert ids(await person.get("/v1/conversations/c1")) == ["m1", "m2"]
    shown = await other.get("/v1/conversations/c1")
    assert ids(shown) == ["m2"]
    assert "manager" not in shown.text


async def test_a_key_that_lost_a_group_reads_no_earlier_answer(
    http_server: HttpServerFixture,
) -> None:
    client = await http_server.secret(groups=("hr",))
    await client.post(MESSAGES, json=SENT)
    [key] = await http_server.keys.all()

    await http_server.keys.put(key.model_copy(update={"groups": ()}))

    assert (await client.get("/v1/conversations/c1")).status_code == 404
    assert (await client.get(f"{MESSAGES}/m1/events")).status_code == 404


def test_a_public_key_has_no_groups() -> None:
    with pytest.raises(ValidationError, match="everybody can have a public key"):
        make_key("public", tenant="acme", origins=("https://a.test",), groups=("hr",))


@pytest.mark.parametrize("group", ["", "a,b", "a\nb", "x" * 65])
def test_a_key_with_an_unusable_group_is_not_made(group: str) -> None:
    with pytest.raises(ValidationError, match="name of a group"):
        make_key("secret", tenant="acme", groups=(group,))


def test_a_key_without_groups_is_stored_as_earlier_versions_read_it() -> None:
    assert "groups" not in make_key("secret", tenant="acme")[0].encode()
    assert "groups" in make_key("secret", tenant="acme", groups=("hr",))[0].encode()
