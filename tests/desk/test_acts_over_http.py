"""Conversation acts as people of the API meet them: played over HTTP, with a model on the wire."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from knowledge.embedding import Embedder
from tests.desk.test_conversations import asks_for_essence, make_draft, make_understanding
from tests.support.app_harness import settings_of
from tests.support.folder_copy import copy_folder
from tests.support.http_desk import HttpDesk, open_http_desk
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.slow
WEBHOOK = "How do I create a webhook?"
ERROR = "What is error 4029?"
FURTHER = ("What is a sender ID?", "How do I rent a number?")
SEVERAL = "webhook, error 4029, sender ID, number: how?"
NEW_WEBHOOK = make_draft("Open Developers > Webhooks and choose New webhook. [1][2][3]")
FOUR = make_understanding(SEVERAL, context_type="new_topic", questions=[WEBHOOK, ERROR, *FURTHER])


@pytest.fixture
async def desk(
    library: Path, embedder: Embedder, tmp_path: Path, server: ModelServer
) -> AsyncIterator[HttpDesk]:
    # A copy: a key that is created in it would be demanded of every later test.
    own = copy_folder(library, tmp_path / "data")
    settings = settings_of(own, **asks_for_essence(server))
    async with open_http_desk(settings, embedder) as opened:
        yield opened


async def test_acts_work_where_the_client_keeps_the_conversation(
    desk: HttpDesk, server: ModelServer
) -> None:
    server.will_send(
        FOUR,
        NEW_WEBHOOK,
        make_understanding("-", act="rephrase", style="shorter"),
        NEW_WEBHOOK,
        make_understanding("-", act="thanks"),
    )
    messages: list[dict[str, str]] = []

    async def say(text: str) -> dict[str, Any]:
        messages.append({"role": "user", "content": text})
        body = {"model": "default", "messages": messages}
        answer = (await desk.http.post("/v1/chat/completions", json=body)).json()
        content = answer["choices"][0]["message"]["content"]
        messages.append({"role": "assistant", "content": content})
        return dict(answer)

    await say(SEVERAL)
    first = await say("1")
    assert ERROR in json.dumps(first["refdesk"]["suggested_actions"])
    short = await say("shorter, please")

    assert [item["refdesk"]["question"] for item in (first, short)] == [WEBHOOK, WEBHOOK]
    thanks = await say("Thanks!")
    assert thanks["refdesk"]["outcome"] == "answered"
