"""Whose documents a request may read: groups come from the key, never from the request."""

import time
from typing import Any

import httpx
import jwt
import pytest
from pydantic import ValidationError

from envelope.question import Question
from gateway.api_keys import Key, Scope, make_key
from gateway.person_tokens import PersonTokens, TrustedIssuer
from gateway.signing_keys import LEAST_SECONDS, SigningKeys
from tests.gateway.http.conftest import SHELF
from tests.gateway.http.test_documents import ask_for_source
from tests.support.http_server import HttpServerFixture, open_http_server
from tests.support.identity_provider import CLIENT_ID, ISSUER, KEYS_ADDRESS, FakeIdentityProvider
from tests.support.worker_harness import WorkerHarness

MESSAGES = "/v1/conversations/c1/messages"
SENT = {"text": "How much does a manager earn?", "message_id": "m1"}
STREAM = {"Accept": "text/event-stream"}
FORGED = ("x-groups", "x-refdesk-groups", "x-person-groups", "groups", "x-forwarded-groups")


async def read_accepted(server: HttpServerFixture, message_id: str = "m1") -> dict[str, Any]:
    """Return what the journal says about who asked."""
    question = Question(
        tenant="acme", assistant="docs", conversation_id="c1", message_id=message_id
    )
    journal = await server.channel.replies.read_journal(question)
    return dict(journal[0].fields)


async def test_a_question_has_the_groups_of_its_key(http_server: HttpServerFixture) -> None:
    client = await http_server.secret(groups=("sales", "hr"))

    assert (await client.post(MESSAGES, json=SENT)).status_code == 200

    assert (await read_accepted(http_server))["groups"] == ["hr", "sales"]


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
            (await client.post(f"{MESSAGES}/m1/feedback", json={"rating": "up"})).status_code,
            (await client.post(MESSAGES, json=SENT)).status_code,
            (await client.post(MESSAGES, json=SENT, headers=STREAM)).status_code,
        ]

    assert await attack(other) == [404, 404, 404, 404, 409, 409]
    [message] = (await person.get("/v1/conversations/c1")).json()["messages"]
    assert "feedback" not in message
    assert await attack(person) == [200, 200, 200, 204, 200, 200]


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
    with pytest.raises(ValidationError, match="a public key must not have groups"):
        make_key("public", tenant="acme", origins=("https://a.test",), groups=("hr",))


@pytest.mark.parametrize("group", ["", "a,b", "a\nb", "x" * 65])
def test_a_key_with_an_unusable_group_is_not_made(group: str) -> None:
    with pytest.raises(ValidationError, match="name of a group"):
        make_key("secret", tenant="acme", groups=(group,))


def test_a_key_without_groups_is_stored_as_earlier_versions_read_it() -> None:
    assert "groups" not in make_key("secret", tenant="acme")[0].encode()
    assert "groups" in make_key("secret", tenant="acme", groups=("hr",))[0].encode()


def sign(key: Key, *groups: str, seconds: float = 600.0) -> str:
    claims = {"aud": key.id, "exp": time.time() + seconds, "groups": list(groups)}
    return jwt.encode(claims, key.person_secret, algorithm="HS256")


async def test_a_program_asks_for_each_person_with_their_groups(
    http_server: HttpServerFixture,
) -> None:
    client = await http_server.secret(person_groups=("hr", "sales"))
    [key] = await http_server.keys.all()

    for message_id, stated in (("m1", ("hr",)), ("m2", ("sales", "board")), ("m3", ())):
        headers = {"X-Person-Token": sign(key, *stated)}
        sent = {**SENT, "message_id": message_id}
        assert (await client.post(MESSAGES, json=sent, headers=headers)).status_code == 200

    assert (await read_accepted(http_server, "m1"))["groups"] == ["hr"]
    assert (await read_accepted(http_server, "m2"))["groups"] == ["sales"]
    assert "groups" not in await read_accepted(http_server, "m3")
    assert (await client.get(f"{MESSAGES}/m1/events")).status_code == 404


async def test_a_visitor_of_a_website_has_the_groups_that_the_website_signed(
    http_server: HttpServerFixture,
) -> None:
    visitor = await http_server.visitor(await http_server.public(person_groups=("hr",)))
    [key] = await http_server.keys.all()
    visitor.client.headers["X-Person-Token"] = sign(key, "hr")

    answer = await visitor.client.post(f"{visitor.path}/messages", json=SENT)
    assert answer.status_code == 200
    del visitor.client.headers["X-Person-Token"]

    assert (await visitor.client.get(visitor.path)).json()["messages"] == []


async def test_a_request_with_a_forged_token_is_refused_and_not_asked_without_groups(
    http_server: HttpServerFixture,
) -> None:
    client = await http_server.secret(person_groups=("hr",))
    other = make_key("secret", tenant="acme", person_groups=("hr",))[0]

    refused = await client.post(MESSAGES, json=SENT, headers={"X-Person-Token": sign(other, "hr")})

    assert refused.status_code == 401
    assert refused.json()["error"]["code"] == "invalid_person_token"
    assert not await http_server.channel.replies.read_journal(
        Question(tenant="acme", assistant="docs", conversation_id="c1", message_id="m1")
    )


async def test_an_outage_of_the_provider_of_persons_is_told_as_one_and_counts_as_no_guess(
    harness: WorkerHarness,
) -> None:
    provider = FakeIdentityProvider(now=time.time(), claims={"groups": ["hr"]}, is_away=True)

    async def find_address() -> str:
        return KEYS_ADDRESS

    keys = SigningKeys(find_address, provider, provider.clock)
    persons = PersonTokens([TrustedIssuer(ISSUER, CLIENT_ID, "acme", keys)])
    async with harness.open(), open_http_server(harness, persons=persons) as server:
        client = await server.secret(person_groups=("hr",))
        client.headers["X-Person-Token"] = provider.token()
        away = await client.post(MESSAGES, json=SENT)
        provider.is_away, provider.now = False, provider.now + LEAST_SECONDS
        back = await client.post(MESSAGES, json=SENT)

        assert away.status_code == 503
        assert away.json()["error"]["code"] == "identity_provider_unavailable"
        assert back.status_code == 200
        assert (await read_accepted(server, "m1"))["groups"] == ["hr"]


async def test_a_link_shows_what_its_key_and_its_person_may_read_now(
    http_server: HttpServerFixture,
) -> None:
    client = await http_server.secret(groups=("board",), person_groups=("hr", "sales"))
    [key] = await http_server.keys.all()
    client.headers["X-Person-Token"] = sign(key, "hr")
    link = (await ask_for_source(http_server, client))["link"]
    SHELF.readers.clear()

    await http_server.client().get(link)
    await http_server.client().get(link, headers={"X-Person-Token": sign(key, "sales")})
    await http_server.keys.put(key.model_copy(update={"groups": (), "person_groups": ("sales",)}))
    await http_server.client().get(link)

    assert SHELF.readers == [("board", "hr"), ("board", "hr"), ()]


async def test_a_link_ends_with_the_token_of_its_person(http_server: HttpServerFixture) -> None:
    client = await http_server.secret(person_groups=("hr",))
    [key] = await http_server.keys.all()
    client.headers["X-Person-Token"] = sign(key, "hr", seconds=-30)  # within the leeway

    link = (await ask_for_source(http_server, client))["link"]

    assert (await http_server.client().get(link)).status_code == 404
