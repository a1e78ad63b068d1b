"""The same word, written in a chat, to OpenAI's client, or long ago: it is found nowhere either."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest

from broker.maintenance.erasure import Rewriting
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from envelope.role import Role
from gateway.chat.delivery import Choice
from gateway.chat.ports import PermanentError
from gateway.chat_channels import CHAT_CHANNELS
from gateway.conversations import Conversations
from gateway.desk import erase
from memory.conversation import RedisMemory
from tests.gateway.erasing.canary import files_with, keys_with, make_canary
from tests.gateway.erasing.conftest import RewritingHarness
from tests.support.chat_harness import ANSWER, TEXTS, open_connector, say, wait_until_acknowledged
from tests.support.fake_channel import FakeChannel, make_incoming
from tests.support.http_server import open_http_server
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

pytestmark = [pytest.mark.slow, pytest.mark.redis]

ASKS_BACK = {"needs_clarification": True, "clarification_reason": "ambiguous_query"}


async def is_gone(harness: WorkerHarness, folder: Path, word: str) -> None:
    """Check that a word is in no key now, and soon in no file."""
    assert await keys_with(harness.client, word) == []

    async def is_rewritten() -> bool:
        return files_with(folder, word) == []

    await wait_until(is_rewritten)


@pytest.mark.parametrize("name", [spec.name for spec in CHAT_CHANNELS])
async def test_a_chat_that_is_cleared_leaves_no_word(
    name: str, harness: RewritingHarness, folder: Path
) -> None:
    fake_channel, word = FakeChannel(name=name), make_canary()
    async with harness.open(), open_connector(harness, fake_channel) as connector:
        asked = connector.name_question("c", "1")
        harness.script.next(Role.RESPONSE, {"response": f"Open {word} [1]."})
        await connector.intake.accept(make_incoming(asked, f"How do I add {word}?", 1.0))
        await wait_until_acknowledged(harness, name)
        await connector.buttons.store(Choice(question=asked, number="0", label=word, ask=word))
        await say(connector, "1:2", f"or {word}", 1.5, edits="1")
        await wait_until_acknowledged(harness, name)
        assert await keys_with(harness.client, word)

        harness.script.next(Role.COMMAND, {"forget": "all"})
        await say(connector, "2", "/clear_all", 2.0, command="clear_all")
        await wait_until(lambda: "Done." in fake_channel.posts.values())
        await wait_until_acknowledged(harness, name)

        await is_gone(harness, folder, word)


async def test_a_chat_is_cleared_also_when_the_confirmation_cannot_be_sent(
    harness: RewritingHarness, folder: Path
) -> None:
    fake_channel, word = FakeChannel(name="slack"), make_canary()
    async with harness.open(), open_connector(harness, fake_channel) as connector:
        await say(connector, "1", f"How do I add {word}?", 1.0)
        await wait_until(lambda: ANSWER in fake_channel.posts.values())
        await wait_until_acknowledged(harness, "slack")

        fake_channel.refusals["edit"] = [PermanentError("the bot was removed")]
        harness.script.next(Role.COMMAND, {"forget": "all"})
        await say(connector, "2", "/clear_all", 2.0, command="clear_all")
        await wait_until(lambda: not fake_channel.refusals["edit"])
        await wait_until_acknowledged(harness, "slack")

        await is_gone(harness, folder, word)


async def test_an_operator_forgets_a_chat_with_all_that_its_channel_keeps(
    harness: RewritingHarness, folder: Path
) -> None:
    fake_channel, word = FakeChannel(name="slack"), make_canary()
    async with harness.open(), open_connector(harness, fake_channel) as connector:
        await say(connector, "1", f"How do I add {word}?", 1.0)
        await wait_until(lambda: ANSWER in fake_channel.posts.values())
        await wait_until_acknowledged(harness, "slack")
        held = harness.script.hold(Role.ESSENCE, canonical_question=word)
        await say(connector, "2", f"And {word}?", 2.0)
        await held.reached.wait()

        stored = Conversations(harness.client, shards=1, ttl_seconds=60)
        erased = await erase(harness.broker.eraser, stored, connector.name_question("c", "-"))
        held.goes_on.set()

        assert (erased.messages, erased.ended) == (2, 1)
        superseded = TEXTS.text("superseded", "en")
        await wait_until(lambda: superseded in fake_channel.posts.values())
        await is_gone(harness, folder, word)


async def test_data_that_a_client_stores_is_kept_only_while_it_is_needed(
    harness: RewritingHarness, folder: Path
) -> None:
    word = make_canary()
    async with harness.open(), open_http_server(harness) as http_server:
        token = await http_server.key(scopes=("ask", "read", "forget"))
        async with openai.AsyncOpenAI(
            base_url=f"{http_server.url}/v1", api_key=token, max_retries=0
        ) as client:
            harness.script.next(Role.ESSENCE, {**ASKS_BACK, "canonical_question": word})
            harness.script.next(Role.CLARIFICATION, {"response": f"Which {word}?"})
            completion: Any = await client.chat.completions.create(
                model="docs", messages=[{"role": "user", "content": f"How do I add {word}?"}]
            )
            again: Any = await client.chat.completions.create(
                model="docs", messages=[{"role": "user", "content": f"How do I drop {word}?"}]
            )

        remembered = [key for key in await keys_with(harness.client, word) if ":mem:" in key]
        assert [key.rpartition(":")[2] for key in remembered] == ["pause"]
        assert await harness.client.ttl(remembered[0]) <= 86_400
        [thread] = await harness.client.keys("rd:thread:*")

        forgets = http_server.client(token)
        for item in (completion, again):
            name = item.id.removeprefix("chatcmpl-")
            assert (
                await forgets.delete(
                    f"/v1/conversations/completion-{name}", headers={"X-Assistant": "docs"}
                )
            ).status_code == 204

        assert not await harness.client.exists(thread)
        await is_gone(harness, folder, word)


class FleetingHouse(RewritingHarness):
    """A desk that keeps everything for a moment."""

    def make_broker(self, **options: Any) -> RedisBroker:
        fleeting = {
            "ttl_seconds": 0.5,
            "dead_letter_ttl_seconds": 0.5,
            "rewriting": Rewriting(0.0, 0.5),
        }
        return super().make_broker(**{**fleeting, **options})


@pytest.fixture
async def fleeting(server: object, folder: Path) -> AsyncIterator[FleetingHouse]:
    url = f"unix://{folder / 'r.sock'}"
    made = FleetingHouse(lambda: connect(url), played=False, lease_seconds=1.0)
    made.memory = RedisMemory(made.client, shards=1, ttl_seconds=1)
    yield made
    await made.close()


async def test_expired_data_is_found_nowhere(fleeting: FleetingHouse, folder: Path) -> None:
    word = make_canary()
    async with fleeting.open(), open_http_server(fleeting) as http_server:
        client = await http_server.secret(scopes=("ask", "read"))
        fleeting.script.next(Role.SEARCH, {}, *[ValueError(word)] * 3)
        fleeting.script.next(Role.RESPONSE, {"response": f"Open {word} [1]."})
        for number in range(2):
            sent = {"text": f"How do I add {word}?", "message_id": f"m{number}"}
            await client.post("/v1/conversations/c1/messages", json=sent)
        assert files_with(folder, word)

        async def has_expired() -> bool:
            return await keys_with(fleeting.client, word) == []

        await wait_until(has_expired)
        await is_gone(fleeting, folder, word)
