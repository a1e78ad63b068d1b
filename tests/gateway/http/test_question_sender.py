"""HTTP routes submit as every other channel does: the reply is expected before the question is."""

from collections.abc import MutableMapping
from typing import Any, cast

import pytest

from broker.ports import ReplyReader
from gateway.desk import Desk
from tests.support.http_server import HttpServerFixture

MESSAGES = "/v1/conversations/c1/messages"
QUESTION = {"text": "How do I add a rule?"}
COMPLETION = {"model": "docs", "messages": [{"role": "user", "content": "How?"}]}


class CountingReplies:
    """Counts the replies that are looked up instead of expected."""

    def __init__(self, replies: ReplyReader) -> None:
        self.looks = 0
        self._replies = replies

    def __getattr__(self, name: str) -> Any:
        self.looks += name == "await_reply"
        return getattr(self._replies, name)


@pytest.mark.parametrize(
    ("path", "body"), [(MESSAGES, QUESTION), ("/v1/chat/completions", COMPLETION)]
)
async def test_the_reply_to_a_new_question_is_not_looked_up(
    http_server: HttpServerFixture, path: str, body: dict[str, Any]
) -> None:
    broker = http_server.harness.broker
    replies: Any = CountingReplies(broker.replies)
    desks = cast("MutableMapping[tuple[str, str], Desk]", http_server.channel.desks)
    desks["acme", "docs"] = Desk(
        broker.producer,
        replies,
        tenant="acme",
        assistant="docs",
        channel="http",
        deadline_seconds=20.0,
        words=lambda key, language: f"{key}/{language}",
    )

    answer = await http_server.client().post(path, json=body)

    assert answer.status_code == 200
    assert replies.looks == 0
