"""Conversations reach webhooks and channels of Slack; a failure is reported."""

import json

import pytest
from standardwebhooks.webhooks import Webhook

from envelope.question import Question
from notifications.handover import (
    Case,
    HandOverError,
    MailReceiver,
    MailSender,
    WebhookReceiver,
    send_case,
)
from notifications.webhooks import WebhookTarget
from tests.notifications.conftest import Receiver
from tests.notifications.test_webhooks import NEW

QUESTION = Question(tenant="acme", assistant="docs", conversation_id="c", message_id="m")
CASE = Case(
    QUESTION,
    (("user", "Hello <!channel> <https://evil.test|ours>"), ("assistant", "I do not know.")),
    "",
    "en",
    "https://desk.test/v1/handover/x",
)


async def test_a_webhook_receives_the_conversation_signed(receiver: Receiver) -> None:
    endpoint = WebhookTarget(
        "handover", receiver.url, (b"new secret of the webhooks!",), is_private=True
    )

    assert await send_case([WebhookReceiver(endpoint)], CASE)

    [(headers, text)] = receiver.received
    body = Webhook(NEW).verify(text, headers)
    assert body["type"] == "handover.requested"
    assert body["data"]["turns"][1] == {"speaker": "assistant", "text": "I do not know."}
    assert body["data"]["reply_url"] == CASE.link


async def test_one_receiver_that_accepts_is_enough_and_none_is_not(receiver: Receiver) -> None:
    endpoint = WebhookTarget("handover", receiver.url, (), is_private=True)
    refused = WebhookReceiver(WebhookTarget("handover", receiver.url, ()))
    receiver.statuses = [500]

    assert not await send_case([refused, WebhookReceiver(endpoint)], CASE)
    assert await send_case([refused, WebhookReceiver(endpoint)], CASE)


async def test_a_mail_server_without_encryption_is_sent_nothing(receiver: Receiver) -> None:
    del receiver
    with pytest.raises(HandOverError):
        await MailReceiver("a@b.test", MailSender("a@b.test", "127.0.0.1", 9)).send(CASE)


def test_the_words_of_a_visitor_stay_in_one_line_of_the_subject() -> None:
    case = Case(QUESTION, (), "a\r\nBcc: evil@evil.test", "en", "https://desk.test/x")

    assert case.title == "a Bcc: evil@evil.test"
    assert json.dumps(case.write())
