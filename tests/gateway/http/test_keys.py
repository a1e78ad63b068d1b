"""Who may come in, and where to: keys, tenants, visitors, origins, limits."""

import json
import re
import time
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from envelope.role import Role
from gateway.api_keys import Scope, id_of
from tests.support.http_server import WEBSITE, FakeDocuments, HttpServerFixture, open_http_server
from tests.support.worker_harness import WorkerHarness

MESSAGES = "/v1/conversations/c1/messages"
QUESTION = {"text": "How do I add a rule?"}
OPEN = {"/healthz", "/readyz", "/v1/reader/{ticket}", "/v1/reader/{ticket}/{picture}"}
"""Routes that say nothing of anybody, and those whose links are keys themselves."""
BODIES: dict[str, object] = {
    "/v1/conversations/{conversation_id}/messages": QUESTION,
    "/v1/conversations/{conversation_id}/messages/{message_id}/feedback": {"rating": "up"},
    "/v1/chat/completions": {"model": "docs", "messages": [{"role": "user", "content": "Hi?"}]},
}


def every_route(http_server: HttpServerFixture) -> list[tuple[str, str]]:
    """Method and path of every route of the application but the open ones."""
    results = [
        (method, route.path_format)
        for route in http_server.routes
        if isinstance(route, APIRoute) and route.include_in_schema and route.path not in OPEN
        for method in sorted(route.methods or ())
    ]
    assert len(results) >= 6
    return results


async def call(client: httpx.AsyncClient, method: str, path: str, **names: str) -> httpx.Response:
    """Call a route, its names filled in."""
    names = {
        "conversation_id": "c1",
        "message_id": "m1",
        "model": "docs",
        "document_id": "a/b",
        **names,
    }
    body = BODIES.get(path) if method == "POST" else None
    return await client.request(method, path.format(**names), json=body)


async def test_no_route_answers_without_a_key_once_there_is_one(
    http_server: HttpServerFixture,
) -> None:
    await http_server.key()
    for client in (
        http_server.client(),
        http_server.client("nonsense"),
        http_server.client("refdesk_secret_x_y"),
    ):
        for method, path in every_route(http_server):
            answer = await call(client, method, path)

            assert answer.status_code == 401, (method, path)
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_revoked_key_and_a_forged_one_open_nothing(http_server: HttpServerFixture) -> None:
    token = await http_server.key()
    [key] = await http_server.keys.all()
    assert (await http_server.client(token).post(MESSAGES, json=QUESTION)).status_code == 200

    forged = await http_server.client(f"{token[:-1]}{'A' if token[-1] != 'A' else 'B'}").get(
        MESSAGES[:19]
    )
    await http_server.keys.put(key.model_copy(update={"revoked_at": 1.0}))
    revoked = await http_server.client(token).post(MESSAGES, json=QUESTION)
    await http_server.keys.put(key.model_copy(update={"expires_at": 1.0}))
    expired = await http_server.client(token).post(MESSAGES, json=QUESTION)

    assert [forged.status_code, revoked.status_code, expired.status_code] == [401] * 3


async def test_only_a_hash_of_a_key_is_stored(http_server: HttpServerFixture) -> None:
    token = await http_server.key()

    stored = await http_server.harness.client.hgetall("rd:keys")

    secret = token.split("_", 3)[3]
    assert len(secret) > 20
    assert secret not in str(stored)


async def test_only_a_hash_of_a_visitors_token_is_stored(http_server: HttpServerFixture) -> None:
    visitor = await http_server.visitor(await http_server.public())

    kept = [key async for key in http_server.harness.client.scan_iter("rd:*:visit")]
    stored = await http_server.harness.client.mget(kept)

    assert len(kept) == 1
    assert visitor.client.headers["X-Conversation-Token"] not in str([*kept, *stored])
    assert (await visitor.client.get(visitor.path)).status_code == 200


@pytest.mark.parametrize("scope", sorted(Scope))
async def test_a_key_without_a_scope_cannot_use_its_routes(
    http_server: HttpServerFixture, scope: Scope
) -> None:
    client = await http_server.secret(scopes=frozenset(Scope) - {scope})

    refused = [
        answer.json()["error"]["code"]
        for method, path in every_route(http_server)
        if (answer := await call(client, method, path)).status_code == 403
    ]

    assert refused
    assert set(refused) == {"missing_scope"}


async def test_no_route_shows_a_tenant_what_is_anothers(http_server: HttpServerFixture) -> None:
    word = "xylophone"
    owner, stranger = await http_server.secret("acme"), await http_server.secret("other")
    sent = {"text": f"What is a {word}?", "message_id": "m1"}
    await owner.post(MESSAGES, json=sent)
    await owner.post(f"{MESSAGES}/m1/feedback", json={"rating": "up", "reason": word})
    before = (await owner.get("/v1/conversations/c1")).json()

    for method, path in every_route(http_server):
        answer = await call(stranger, method, path)

        assert word not in answer.text, (method, path)
        assert "acme" not in answer.text, (method, path)
    assert (await owner.get("/v1/conversations/c1")).json() == before


async def test_two_visitors_of_one_widget_see_nothing_of_each_other(
    http_server: HttpServerFixture,
) -> None:
    token = await http_server.public()
    ann, ben = await http_server.visitor(token), await http_server.visitor(token)
    sent = {"text": "What is a xylophone?", "message_id": "m1"}
    assert (await ann.client.post(f"{ann.path}/messages", json=sent)).status_code == 200

    for method, path in every_route(http_server):
        if "{conversation_id}" not in path:
            continue
        answer = await call(ben.client, method, path, conversation_id=ann.conversation_id)
        assert answer.status_code == 404, (method, path)
        tokenless = http_server.client(token, Origin=WEBSITE)
        without = await call(tokenless, method, path, conversation_id=ann.conversation_id)
        assert (without.status_code, without.json()["error"]["code"]) == (
            403,
            "missing_conversation_token",
        )

    [message] = (await ann.client.get(ann.path)).json()["messages"]
    assert message["text"] == sent["text"]
    assert (await ben.client.get(ben.path)).json()["messages"] == []


async def test_a_public_key_opens_no_conversation_of_a_secret_one(
    http_server: HttpServerFixture,
) -> None:
    owner = await http_server.secret()
    await owner.post(MESSAGES, json=QUESTION)
    visitor = await http_server.visitor(await http_server.public())

    answer = await visitor.client.get("/v1/conversations/c1")

    assert answer.status_code == 404


async def test_a_forgotten_visit_is_over(http_server: HttpServerFixture) -> None:
    visitor = await http_server.visitor(await http_server.public())
    await visitor.client.post(f"{visitor.path}/messages", json=QUESTION)

    forgotten = await visitor.client.delete(visitor.path)

    assert forgotten.status_code == 204
    assert (await visitor.client.get(visitor.path)).status_code == 404


@pytest.mark.parametrize(
    "origin", ["https://evil.test", "http://www.acme.test", f"{WEBSITE}.evil.test", "null", None]
)
async def test_a_public_key_works_from_its_websites_alone(
    http_server: HttpServerFixture, origin: str | None
) -> None:
    headers = {} if origin is None else {"Origin": origin}

    answer = await http_server.client(await http_server.public(), **headers).post(
        "/v1/conversations"
    )

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "origin_not_allowed")
    # The page may read why, and nothing that it says is a secret.
    assert answer.headers.get("access-control-allow-origin") == origin
    assert WEBSITE not in answer.text


async def test_browsers_may_read_answers_on_the_websites_of_public_keys_alone(
    http_server: HttpServerFixture,
) -> None:
    await http_server.public()
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x"}

    allowed = await http_server.client(Origin=WEBSITE, **asked).options(MESSAGES)
    foreign = await http_server.client(Origin="https://evil.test", **asked).options(MESSAGES)
    opened = await http_server.client(await http_server.public(), Origin=WEBSITE).post(
        "/v1/conversations"
    )
    owner = http_server.client(await http_server.key(), Origin="https://evil.test")
    secret = await owner.post(MESSAGES, json=QUESTION)
    unknown = await owner.get("/v1/conversations/nobodys")

    assert [allowed.status_code, foreign.status_code] == [204, 204]
    assert "X-Conversation-Token" in allowed.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in allowed.headers
    assert opened.headers["access-control-allow-origin"] == WEBSITE
    assert "Origin" in opened.headers["vary"]
    assert [secret.status_code, unknown.status_code] == [200, 404]
    assert "access-control-allow-origin" not in {*secret.headers, *unknown.headers}


async def test_a_limit_holds_over_two_processes(any_harness: WorkerHarness) -> None:
    async with (
        any_harness.open(),
        open_http_server(any_harness) as first,
        open_http_server(any_harness) as second,
    ):
        token = await first.key(requests_per_minute=4)
        clients = [first.client(token), second.client(token)]

        answers = [await clients[n % 2].get("/v1/conversations/c1") for n in range(6)]

    assert [answer.status_code for answer in answers] == [404] * 4 + [429] * 2
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 15
    assert answers[-1].json()["error"]["type"] == "rate_limit_error"


@pytest.mark.parametrize(
    ("proxies", "statuses"),
    [
        ((), [200, 429, 429, 429]),
        (("192.0.2.1",), [200, 429, 429, 429]),
        (("127.0.0.1",), [200, 200, 429, 429]),
        (("127.0.0.0/8", "192.0.2.0/24"), [200, 200, 429, 429]),
    ],
)
async def test_visitors_behind_a_trusted_proxy_have_limits_of_their_own(
    harness: WorkerHarness, proxies: tuple[str, ...], statuses: list[int]
) -> None:
    addresses = ["203.0.113.1", "203.0.113.2", "203.0.113.1", "198.51.100.9, 203.0.113.2"]
    async with harness.open(), open_http_server(harness, trusted_proxies=proxies) as http_server:
        visitor = await http_server.visitor(await http_server.public(visitor_questions_per_day=1))

        answers = [
            await visitor.client.post(
                f"{visitor.path}/messages", json=QUESTION, headers={"X-Forwarded-For": address}
            )
            for address in addresses
        ]

    # What the last one's own client claimed, left of what the proxy saw, counts for nothing.
    assert [answer.status_code for answer in answers] == statuses


@pytest.mark.parametrize(("proxies", "scheme"), [((), "http"), (("127.0.0.1",), "https")])
async def test_links_have_the_scheme_that_a_trusted_proxy_names(
    harness: WorkerHarness, proxies: tuple[str, ...], scheme: str
) -> None:
    cited = {"number": 1, "chunk_id": "rules#1", "title": "Rules"}
    harness.script.next(Role.RESPONSE, {"sources_used": [cited]})
    server = open_http_server(harness, trusted_proxies=proxies, documents=FakeDocuments())
    async with harness.open(), server as http_server:
        client = await http_server.secret()
        forwarded = {"X-Forwarded-Proto": "https", "Host": "desk.acme.test"}
        answer = await client.post(MESSAGES, json=QUESTION, headers=forwarded)

    link = answer.json()["sources"][0]["link"]
    assert link.startswith(f"{scheme}://desk.acme.test/v1/reader/")


async def test_without_keys_the_machine_itself_is_let_in_and_no_website(
    http_server: HttpServerFixture,
) -> None:
    for headers in (
        {"Host": "evil.test"},
        {"Origin": "https://evil.test"},
        {"Origin": "http://127.0.0.1:1"},
        {"Host": "127.0.0.1.evil.test"},
        {"X-Forwarded-For": "203.0.113.7"},
    ):
        answer = await http_server.client(**headers).post(MESSAGES, json=QUESTION)

        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_local")
    assert (await http_server.client().post(MESSAGES, json=QUESTION)).status_code == 200


async def test_a_server_that_had_a_key_needs_one_after_redis_forgot_it(
    http_server: HttpServerFixture,
) -> None:
    await http_server.key()
    assert (await http_server.client().post(MESSAGES, json=QUESTION)).status_code == 401

    await http_server.harness.client.flushall()

    for method, path in every_route(http_server):
        answer = await call(http_server.client(), method, path)
        assert answer.status_code == 401, (method, path)


async def test_a_server_to_the_network_lets_nobody_in_without_a_key(harness: WorkerHarness) -> None:
    async with open_http_server(harness, open_tenant=None) as http_server:
        for method, path in every_route(http_server):
            answer = await call(http_server.client(), method, path)

            assert answer.status_code == 401, (method, path)


async def test_no_log_line_names_a_key_a_token_or_a_text(
    http_server: HttpServerFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    token = await http_server.public()
    ann = await http_server.visitor(token)
    sent = {"text": "What is a xylophone?", "message_id": "m1"}
    capsys.readouterr()

    await ann.client.post(f"{ann.path}/messages?assistant=docs&x=marimba", json=sent)
    await http_server.client("refdesk_secret_marimba").get("/v1/conversations/marimba")
    await http_server.client(token, Origin="https://marimba.test").get("/marimba")

    said = capsys.readouterr()
    logged = said.out + said.err
    assert len(re.findall(r"request_id=", logged)) == 3
    for word in (token, token[-20:], ann.client.headers["X-Conversation-Token"], "xylo", "marimba"):
        assert word not in logged


async def test_every_answer_has_a_request_id(http_server: HttpServerFixture) -> None:
    client = http_server.client()

    given = await client.get("/v1/conversations/c1", headers={"X-Request-Id": "abc-1"})
    odd = await client.get("/nowhere", headers={"X-Request-Id": "a b"})

    assert given.headers["x-request-id"] == given.json()["error"]["request_id"] == "abc-1"
    assert re.fullmatch(r"[0-9a-f]{32}", odd.headers["x-request-id"])


async def test_the_journal_names_the_request(http_server: HttpServerFixture) -> None:
    client = http_server.client(**{"X-Request-Id": "abc-1"})
    await client.post(MESSAGES, json={**QUESTION, "message_id": "m1"})

    [question] = await http_server.harness.broker.admin.find_questions("m1")
    [first, *_] = await http_server.harness.broker.replies.read_journal(question)

    assert first.fields["request_id"] == "abc-1"


async def test_a_body_that_is_too_large_is_not_even_read(http_server: HttpServerFixture) -> None:
    client = http_server.client()

    async def endless() -> Any:
        for _ in range(20):
            yield b" " * 100_000

    response = await client.post(MESSAGES, content=b"{" + b" " * 600_000)
    streamed = await client.post(MESSAGES, content=endless())

    assert [response.status_code, streamed.status_code] == [413, 413]
    assert json.loads(response.text)["error"]["code"] == "body_too_large"


async def test_the_owner_sees_when_a_key_was_last_used(http_server: HttpServerFixture) -> None:
    client, unused = await http_server.secret(), await http_server.secret()
    before = time.time()
    await client.get("/v1/conversations/c1")
    await http_server.client("refdesk_secret_0123456789ab_" + "x" * 43).get("/v1/conversations/c1")

    uses = await http_server.keys.uses()

    used, other = (id_of(item.headers["Authorization"].split()[1]) for item in (client, unused))
    assert list(uses) == [used]
    assert other not in uses
    assert used is not None
    assert uses[used] >= int(before)
