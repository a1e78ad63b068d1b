"""Attacks over HTTP on a real index: people of one key, with and without the token of a group."""

import base64
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from knowledge.embedding import Embedder
from tests.support.app_harness import settings_of
from tests.support.http_desk import HttpDesk, open_http_desk
from tests.support.restricted_documents import AMOUNT, SITE

pytestmark = pytest.mark.slow
BONUS = "What is the bonus of a manager?"
VAGUE = "What is paid?"
MESSAGES = "/v1/conversations/c1/messages"
COMPLETIONS = "/v1/chat/completions"


class PersonClient(HttpDesk):
    """A server over an index with hidden pages, and the key that everybody in the test uses."""

    async def send(self, path: str, body: dict[str, Any], *groups: str) -> httpx.Response:
        """Send a request as a person of these groups."""
        headers = {"X-Person-Token": self.sign(*groups)} if groups else {}
        return await self.http.post(path, json=body, headers=headers)

    def sign(self, *groups: str, seconds: float = 600, secret: str = "") -> str:
        """A token of a person, as the website of the key makes it."""
        claims = {"aud": self.key.id, "exp": time.time() + seconds, "groups": list(groups)}
        return jwt.encode(claims, secret or self.key.person_secret, algorithm="HS256")


@pytest.fixture
async def desk(restricted: Path, embedder: Embedder) -> AsyncIterator[PersonClient]:
    settings = settings_of(restricted, require_keys=True)
    async with open_http_desk(settings, embedder, person_groups=("board", "hr")) as opened:
        yield PersonClient(opened.http, opened.keys, opened.key, opened.client)


def rewrite(link: str, **changes: Any) -> str:
    """A link whose ticket says something else, under the signature that it had."""
    address, _, ticket = link.partition("#")[0].rpartition("/")
    body, _, signature = ticket.partition(".")
    stated = {**json.loads(base64.urlsafe_b64decode(body)), **changes}
    return f"{address}/{base64.urlsafe_b64encode(json.dumps(stated).encode()).decode()}.{signature}"


async def test_a_link_cannot_be_turned_to_a_hidden_document(desk: PersonClient) -> None:
    travel = {"text": "Which train tickets does the company pay?", "message_id": "m1"}
    public = (await desk.send(MESSAGES, travel)).json()["sources"][0]["link"]
    hidden = (await desk.send(MESSAGES, {"text": "What is Project Falcon?"}, "board")).json()
    assert hidden["sources"][0]["chunk_id"].startswith("docs/falcon#")
    opened = hidden["sources"][0]["link"]

    assert (await desk.http.get(public)).status_code == 200
    assert "Lyon" in (await desk.http.get(opened)).text
    forged = [
        rewrite(public, chunk_id="docs/falcon#0"),
        rewrite(public, groups=["board"]),
        rewrite(public, chunk_id="docs/falcon#0", groups=["board"]),
        rewrite(opened, expires_at=int(time.time()) + 10**9),
        opened.partition(".ey")[0].rpartition(".")[0],
        "http://desk.test/v1/reader/docs%2Ffalcon",
        "http://desk.test/v1/documents/docs/falcon",
    ]
    for link in forged:
        answer = await desk.http.get(link)
        assert answer.status_code in {403, 404}, link
        assert "Falcon" not in answer.text.replace("docs/falcon", "")

    await desk.keys.put(desk.key.model_copy(update={"person_groups": ("hr",)}))
    assert (await desk.http.get(opened)).status_code == 404
    assert (await desk.http.get(public)).status_code == 200


async def test_a_forged_or_ended_token_asks_nothing(desk: PersonClient) -> None:
    tokens = {
        "ended": desk.sign("hr", seconds=-120),
        "of another secret": desk.sign("hr", secret="x" * 48),
        "without a signature": desk.sign("hr").rpartition(".")[0] + ".",
        "no token": "hr",
    }
    for kind, token in tokens.items():
        headers = {"X-Person-Token": token}
        for path, body in ((MESSAGES, {"text": BONUS}), (COMPLETIONS, complete(BONUS))):
            refused = await desk.http.post(path, json=body, headers=headers)
            assert refused.status_code == 401, kind
            assert refused.json()["error"]["code"] == "invalid_person_token"
    assert (await desk.http.get("/v1/conversations/c1")).status_code == 404


def complete(text: str, *turns: tuple[str, str], **more: Any) -> dict[str, Any]:
    """A request for a completion after these turns."""
    messages = [{"role": role, "content": content} for role, content in (*turns, ("user", text))]
    return {"model": "default", "messages": messages, **more}


async def test_a_completion_takes_over_nothing_of_another_person_of_the_same_key(
    desk: PersonClient,
) -> None:
    asked = (await desk.send(COMPLETIONS, complete(VAGUE), "board")).json()
    shown = asked["choices"][0]["message"]["content"]
    [number] = [
        line.partition(".")[0].strip() for line in shown.splitlines() if "Bonus of managers" in line
    ]
    history = (("user", VAGUE), ("assistant", shown))
    chosen = (await desk.send(COMPLETIONS, complete(number, *history), "board")).json()
    assert AMOUNT in chosen["choices"][0]["message"]["content"]
    desk.http.headers["Idempotency-Key"] = "k1"
    assert AMOUNT in (await desk.send(COMPLETIONS, complete(BONUS), "hr")).text

    repeated = await desk.send(COMPLETIONS, complete(BONUS))
    streamed = await desk.send(COMPLETIONS, complete(BONUS, stream=True))
    del desk.http.headers["Idempotency-Key"]
    taken = await desk.send(COMPLETIONS, complete(number, *history))
    kept = complete("Repeat your last answer", conversation_id="c9")
    await desk.send(COMPLETIONS, complete(BONUS, conversation_id="c9"), "hr")
    followed = await desk.send(COMPLETIONS, kept)

    assert (repeated.status_code, streamed.status_code) == (409, 409)
    for answer in (repeated, streamed, taken, followed):
        assert AMOUNT not in answer.text
        assert f"{SITE}/bonus" not in answer.text
    assert (await desk.http.get("/v1/conversations/c9")).text.count(BONUS) == 0


async def test_a_key_without_the_scope_learns_of_no_document(desk: PersonClient) -> None:
    answers = {
        path: await desk.http.get(f"/v1/documents{path}")
        for path in ("", "/docs/falcon", "/docs/nothing", "?pattern=docs/*", "/docs%2Ffalcon")
    }
    removed = await desk.http.delete("/v1/documents", params={"pattern": "*"})

    said = {
        (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["message"])
        for answer in (*answers.values(), removed)
    }
    assert {(status, code) for status, code, _ in said} == {(403, "missing_scope")}
    assert len(said) == 1
    asked = {"text": "What is Project Falcon?"}
    assert "Lyon" in (await desk.send(MESSAGES, asked, "board")).text
