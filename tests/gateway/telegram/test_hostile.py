"""What others send to the webhook, and what Telegram itself would never send."""

import asyncio
import json
import random
from typing import Any
from urllib.parse import urlsplit

import pytest
from structlog.testing import capture_logs

from gateway.telegram.connection import HEADER
from tests.gateway.connections.raw_connection import RawConnection
from tests.gateway.hostile.values import NOT_JSON, bent
from tests.support.telegram_harness import PERSON, SECRET, TelegramHarness

BENT = 150
SEED = 15
CANARY = "marimba"


async def call(
    desk: TelegramHarness, body: bytes, headers: dict[str, Any]
) -> tuple[int, list[Any]]:
    """Call the webhook; return the status and the lines of the log but those of work."""
    with capture_logs() as logged:
        answer = await desk.client.post(desk.url, content=body, headers=headers)
    assert CANARY not in answer.text
    return answer.status_code, [line for line in logged if line["event"].startswith("webhook")]


@pytest.mark.parametrize("secret", [None, "", "another", SECRET[:-1], b"\xff\xfe", "x" * 9_000])
async def test_a_wrong_secret_is_refused_in_one_line(desk: TelegramHarness, secret: Any) -> None:
    headers = {} if secret is None else {HEADER: secret}

    status, logged = await call(desk, CANARY.encode(), headers)

    assert status == 401
    assert [line["event"] for line in logged] == ["webhook_rejected"]


async def test_a_request_that_cannot_come_from_telegram_is_refused_before_its_body_is_read(
    desk: TelegramHarness,
) -> None:
    target = urlsplit(desk.url)
    line = RawConnection(*await asyncio.open_connection(target.hostname, target.port))
    await line.send(
        f"POST {target.path} HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n".encode()
    )

    assert await line.status() == 401
    line.close()


@pytest.mark.slow
async def test_a_body_that_is_no_update_is_a_4xx_and_one_line(desk: TelegramHarness) -> None:
    for body in (*NOT_JSON, b'{"update_id": true}', b'{"update_id": "1"}', b"x" * 2_000_000):
        status, logged = await call(desk, body, {HEADER: SECRET})

        assert 400 <= status < 500, body[:40]
        assert [line["event"] for line in logged] == ["webhook_rejected"], body[:40]


@pytest.mark.slow
async def test_updates_of_another_form_break_nothing(desk: TelegramHarness) -> None:
    chance = random.Random(SEED)
    message = {
        "message_id": 1, "date": 1_700_000_000, "chat": {"id": 7, "type": "private"},
        "from": PERSON, "text": f"/help {CANARY}", "message_thread_id": 3, "is_topic_message": True,
        "entities": [{"type": "bot_command", "offset": 0, "length": 5}],
        "reply_to_message": {"message_id": 2, "date": 1, "chat": {"id": 7, "type": "private"}},
    }  # fmt: skip
    query = {
        "id": "q1", "from": PERSON, "chat_instance": "1", "data": CANARY, "message": message,
    }  # fmt: skip
    for number in range(BENT):
        kind, value = ("callback_query", query) if number % 3 == 0 else ("message", message)
        made = bent({"update_id": 9000 + number, kind: value}, chance)
        body = json.dumps(made).encode()

        status, logged = await call(desk, body, {HEADER: SECRET})

        assert status < 500, (number, made, logged)
        assert status == 200 or len(logged) == 1
        assert "exc_info" not in str(logged), (number, made)
        assert CANARY not in str(logged)
