import asyncio

import httpx
import pytest

from broker.transport.connect import connect
from envelope.role import Role
from gateway.telegram.connection import HEADER
from tests.gateway.telegram.server_process import serve_telegram
from tests.support.chat_harness import ANSWER, TEXTS, wait_until_acknowledged
from tests.support.drafting import DraftedAnswer
from tests.support.fake_telegram import BotApi
from tests.support.telegram_harness import PERSON, SECRET
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

pytestmark = [pytest.mark.redis, pytest.mark.slow]
UPDATE = {
    "update_id": 1,
    "message": {
        "message_id": 1,
        "date": 1,
        "chat": {"id": 7, "type": "private"},
        "from": PERSON,
        "text": "How?",
    },
}


@pytest.mark.parametrize("method", ["sendMessage", "editMessageText"])
async def test_a_process_killed_while_it_speaks_to_telegram_leaves_one_outcome(
    redis_url: str, api: BotApi, method: str
) -> None:
    harness = WorkerHarness(lambda: connect(redis_url), played=False)
    await harness.client.flushall()
    api.gates[method] = asyncio.Event()
    async with harness.open(), httpx.AsyncClient() as client:
        async with serve_telegram(redis_url, api.url) as (first, url):
            sent = await client.post(url, json=UPDATE, headers={HEADER: SECRET})
            assert sent.status_code == 200
            await wait_until(lambda: api.called(method))
            first.kill()
            await first.wait()
        api.gates.pop(method).set()

        async with serve_telegram(redis_url, api.url) as (_, url):
            await wait_until(lambda: any(ANSWER in text for text in api.texts(7)))
            await wait_until_acknowledged(harness, "telegram")
            again = await client.post(url, json=UPDATE, headers={HEADER: SECRET})
            assert again.status_code == 200

    assert sum(ANSWER in text for text in api.texts(7)) == 1
    await harness.close()


async def test_the_outcome_replaces_the_draft_that_a_killed_process_left(
    redis_url: str, api: BotApi
) -> None:
    harness = WorkerHarness(lambda: connect(redis_url), played=False)
    await harness.client.flushall()
    api.gates["editMessageText"] = asyncio.Event()
    drafted = DraftedAnswer(harness)
    drafted.script()
    async with harness.open(), httpx.AsyncClient() as client:
        async with serve_telegram(redis_url, api.url) as (first, url):
            sent = await client.post(url, json=UPDATE, headers={HEADER: SECRET})
            assert sent.status_code == 200
            await wait_until(lambda: api.called("editMessageText"))
            first.kill()
            await first.wait()
        api.gates.pop("editMessageText").set()
        drafted.first.set()
        drafted.whole.set()

        async with serve_telegram(redis_url, api.url) as (_, url):
            again = await client.post(url, json=UPDATE, headers={HEADER: SECRET})
            assert again.status_code == 200
            await wait_until(lambda: any("priority" in text for text in api.texts(7)))
            await wait_until_acknowledged(harness, "telegram")

    (said,) = api.chats.values()
    notice = TEXTS.text("push_draft", "en")
    assert [notice in version for version in said.versions] == [False, True]
    assert notice not in said.text
    assert len(harness.script.seen[Role.RESPONSE]) == 1
    await harness.close()
