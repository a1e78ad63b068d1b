"""What others send to the address that Slack calls, and what Slack itself would never send."""

import asyncio
import hashlib
import hmac
import json
import random
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
from structlog.testing import capture_logs

from tests.gateway.connections.raw_connection import RawConnection
from tests.gateway.hostile.values import NOT_JSON, bent
from tests.support.fake_slack import BOT, TEAM
from tests.support.slack_harness import SIGNING_SECRET, SlackHarness

BENT = 150
SEED = 15
CANARY = "marimba"


def signature_of(body: bytes, at: str, secret: str = SIGNING_SECRET) -> str:
    digest = hmac.new(secret.encode(), f"v0:{at}:".encode() + body, hashlib.sha256)
    return f"v0={digest.hexdigest()}"


async def call(desk: SlackHarness, body: bytes, headers: dict[str, Any]) -> tuple[int, list[Any]]:
    """Call the address; return the status and the lines of the log but those of work."""
    with capture_logs() as logged:
        answer = await desk.client.post(desk.url, content=body, headers=headers, timeout=None)
    assert CANARY not in answer.text
    return answer.status_code, [line for line in logged if line["event"].startswith("webhook")]


def sign_headers(body: bytes, kind: str = "application/json") -> dict[str, str]:
    at = str(int(time.time()))
    headers = {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": signature_of(body, at)}
    return {"Content-Type": kind, **headers}


@pytest.mark.parametrize(
    ("at", "signature"),
    [
        (None, None),
        (None, "v0=" + "0" * 64),
        ("now", None),
        ("now", ""),
        ("now", "v0="),
        ("now", "v0=" + "0" * 64),
        ("now", "v1=" + "0" * 64),
        ("now", "v0=" + "g" * 64),
        ("now", "v0=" + "0" * 6_000),
        ("now", b"v0=\xff\xfe"),
        ("now", "\u00e9".encode("latin-1") * 67),
        ("", "v0=" + "0" * 64),
        ("soon", "v0=" + "0" * 64),
        ("-1", "v0=" + "0" * 64),
        ("1e9", "v0=" + "0" * 64),
        ("9" * 400, "v0=" + "0" * 64),
        (b"\xb2\xb3", "v0=" + "0" * 64),
    ],
)
async def test_a_request_that_slack_did_not_sign_is_refused_in_one_line(
    desk: SlackHarness, at: Any, signature: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    headers = {"Content-Type": "application/json"}
    if at is not None:
        headers["X-Slack-Request-Timestamp"] = str(int(time.time())) if at == "now" else at
    if signature is not None:
        headers["X-Slack-Signature"] = signature
    body = json.dumps({"type": "event_callback", "event": {"text": CANARY}}).encode()

    status, logged = await call(desk, body, headers)

    assert status == 401
    assert [line["event"] for line in logged] == ["webhook_rejected"]
    assert CANARY not in str(logged) + "".join(capsys.readouterr())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded"])
async def test_a_signed_body_that_is_no_event_is_a_4xx_and_one_line(
    desk: SlackHarness, kind: str
) -> None:
    for body in NOT_JSON:
        status, logged = await call(desk, body, sign_headers(body, kind))

        assert 400 <= status < 500, body[:40]
        assert [line["event"] for line in logged] == ["webhook_rejected"], body[:40]


@pytest.mark.slow
async def test_events_and_presses_of_another_form_break_nothing(desk: SlackHarness) -> None:
    chance = random.Random(SEED)
    event = {
        "type": "event_callback", "team_id": TEAM, "api_app_id": "A1", "event_id": "Ev1",
        "event": {
            "type": "message", "channel": "C1", "user": "U1", "text": f"<@{BOT}> {CANARY}",
            "ts": "1700000000.000001", "thread_ts": "1700000000.000001", "channel_type": "channel",
            "subtype": "message_changed", "message": {"ts": "1.1", "user": "U1", "text": CANARY,
            "edited": {"ts": "2.2"}}, "previous_message": {"ts": "1.1", "user": "U1", "text": "a"},
        },
        "authorizations": [{"team_id": TEAM, "user_id": BOT, "is_bot": True}],
    }  # fmt: skip
    press = {
        "type": "block_actions", "team": {"id": TEAM}, "user": {"id": "U1", "team_id": TEAM},
        "api_app_id": "A1", "channel": {"id": "C1"},
        "message": {"ts": "1.1", "text": "a", "blocks": [], "thread_ts": "1.1"},
        "actions": [{"type": "button", "block_id": "b", "action_id": "choose:0",
                     "value": CANARY, "action_ts": "1900000000.000001"}],
    }  # fmt: skip
    for number in range(BENT):
        made = bent(press if number % 3 == 0 else event, chance)
        body = json.dumps(made).encode()

        status, logged = await call(desk, body, sign_headers(body))

        assert status < 500, (number, made, logged)
        assert len(logged) <= 1
        assert "exc_info" not in str(logged), (number, made)
        assert status == 200 or logged
        assert CANARY not in str(logged)


@pytest.mark.parametrize("at", ["1", "soon"])
async def test_a_request_that_cannot_come_from_slack_is_refused_before_its_body_is_read(
    desk: SlackHarness, at: str
) -> None:
    target = urlsplit(desk.url)
    line = RawConnection(*await asyncio.open_connection(target.hostname, target.port))
    await line.send(
        f"POST {target.path} HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n"
        f"X-Slack-Request-Timestamp: {at}\r\nX-Slack-Signature: v0={'0' * 64}\r\n\r\n".encode()
    )

    assert await line.status() == 401
    line.close()
