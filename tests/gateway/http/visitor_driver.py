"""Visitors of a website behind a proxy, and what attackers with its public key send."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx

from gateway.http.visitors import VisitorLimits
from tests.support.http_server import WEBSITE, HttpServerFixture, VisitorClient, open_http_server
from tests.support.worker_harness import WorkerHarness

PROXY = "127.0.0.1"
ATTACKER, NEIGHBOUR = "203.0.113.66", "203.0.113.67"
QUESTION = {"text": "How do I add a rule?"}
FEW = VisitorLimits(
    requests_per_minute=20,
    questions_per_minute=4,
    questions_per_day=10,
    failures_per_minute=6,
)


@asynccontextmanager
async def shop(
    harness: WorkerHarness, limits: VisitorLimits = FEW
) -> AsyncIterator[HttpServerFixture]:
    """Open a server behind a proxy, so that addresses are what it says."""
    server = open_http_server(harness, trusted_proxies=(PROXY,), limits=limits)
    async with harness.open(), server as http_server:
        yield http_server


async def key_of_shop(http_server: HttpServerFixture, **fields: object) -> str:
    return await http_server.public(
        **{"requests_per_minute": 40, "questions_per_day": 40, **fields}
    )


def at(
    http_server: HttpServerFixture, token: str, address: str, **headers: str
) -> httpx.AsyncClient:
    """Somebody at an address who says to come from the website."""
    return http_server.client(token, **{"Origin": WEBSITE, "X-Forwarded-For": address, **headers})


async def come(http_server: HttpServerFixture, token: str, address: str) -> VisitorClient:
    """A visitor at an address who opened a conversation."""
    client = at(http_server, token, address)
    opened = await client.post("/v1/conversations")
    assert opened.status_code == 201, opened.text
    client.headers["X-Conversation-Token"] = opened.json()["token"]
    return VisitorClient(client, opened.json()["conversation_id"])


async def ask(visitor: VisitorClient, text: str = "How do I add a rule?") -> httpx.Response:
    return await visitor.client.post(f"{visitor.path}/messages", json={"text": text})


async def without_a_token(
    http_server: HttpServerFixture, token: str, addresses: Sequence[str]
) -> list[int]:
    client = http_server.client(token, Origin=WEBSITE)
    return [
        await status_of(client, "/v1/conversations/c-1/messages", address) for address in addresses
    ]


async def with_a_bad_token(
    http_server: HttpServerFixture, token: str, addresses: Sequence[str]
) -> list[int]:
    client, statuses = http_server.client(token, Origin=WEBSITE), []
    for number, address in enumerate(addresses):
        client.headers["X-Conversation-Token"] = f"guess-{number}"
        statuses.append(await status_of(client, "/v1/conversations/c-1/messages", address))
    return statuses


async def with_fresh_conversations(
    http_server: HttpServerFixture, token: str, addresses: Sequence[str]
) -> list[int]:
    client, statuses = http_server.client(token, Origin=WEBSITE), []
    for address in addresses:
        client.headers["X-Forwarded-For"] = address
        opened = await client.post("/v1/conversations")
        statuses.append(opened.status_code)
        if opened.status_code == 201:
            client.headers["X-Conversation-Token"] = opened.json()["token"]
            path = f"/v1/conversations/{opened.json()['conversation_id']}/messages"
            statuses.append(await status_of(client, path, address))
    return statuses


async def with_one_conversation(
    http_server: HttpServerFixture, token: str, addresses: Sequence[str]
) -> list[int]:
    visitor = await come(http_server, token, addresses[0])
    path = f"{visitor.path}/messages"
    return [await status_of(visitor.client, path, address) for address in addresses]


async def status_of(client: httpx.AsyncClient, path: str, address: str) -> int:
    """Ask from an address."""
    headers = {"X-Forwarded-For": address}
    return (await client.post(path, json=QUESTION, headers=headers)).status_code


WAYS = [without_a_token, with_a_bad_token, with_fresh_conversations, with_one_conversation]
ONE_ADDRESS = [ATTACKER] * 45
ONE_NETWORK = [f"2001:db8:1:2::{number:x}" for number in range(1, 46)]
ONE_SITE = [f"2001:db8:1:{number:x}::1" for number in range(1, 51)]
MAPPED = [f"::ffff:{ATTACKER}", ATTACKER] * 22
