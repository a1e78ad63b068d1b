from pathlib import Path
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis

from deploy.assembly.tool_access import open_attachments, open_receipts
from envelope.question import Question
from envelope.run import OUTSIDE, Run
from knowledge.library.attached_documents import AttachmentSource
from memory.receipts import RedisReceipts
from memory.work_store import RedisAttachments
from tests.support.app_harness import settings_of
from tools.calls import ReceiptKey

QUESTION = Question(tenant="acme", assistant="desk", conversation_id="c1", message_id="m1")
KEY = ReceiptKey(call_id="1", tool="pay", digest="abc")


def open_new(client: Any, branch: str = "") -> RedisReceipts:
    """The receipts of a further run of the question."""
    return open_receipts(client, 1, Run(QUESTION, "tool", branch=branch))


async def test_every_delivery_of_an_envelope_is_another_one() -> None:
    client = FakeAsyncRedis(protocol=2)
    receipts = open_new(client, "w1/t1")

    first, same = await receipts.claim(KEY), await receipts.claim(KEY)
    other_branch = await open_new(client, "w1/t2").claim(KEY)
    redelivered = await open_new(client, "w1/t1").claim(KEY)

    assert [first, same, other_branch] == [("claimed", b"")] * 3
    assert redelivered == ("unknown", b"")


async def test_results_are_found_by_the_next_delivery() -> None:
    client = FakeAsyncRedis(protocol=2)
    receipts = open_new(client)
    doubted = KEY.model_copy(update={"digest": "def"})
    await receipts.claim(KEY)
    await receipts.finish(KEY, b"paid")
    await receipts.claim(doubted)
    await receipts.mark_unknown(doubted)

    next_one = open_new(client)
    found = await next_one.claim(KEY), await next_one.claim(doubted)

    assert found == (("done", b"paid"), ("unknown", b""))


async def test_outside_a_question_nothing_can_be_claimed() -> None:
    with pytest.raises(LookupError, match="found a run outside of one"):
        open_receipts(FakeAsyncRedis(protocol=2), 1, OUTSIDE)


async def test_a_run_finds_the_documents_of_its_conversation_and_of_no_other() -> None:
    client = FakeAsyncRedis(protocol=2)
    other = QUESTION.model_copy(update={"conversation_id": "c2"})
    await RedisAttachments(client, shards=1, ttl_of=lambda _: 60).put(QUESTION, "a", b"text")
    attachments: AttachmentSource = open_attachments(settings_of(Path()), client)

    own = await attachments.find(QUESTION, ["a"])
    foreign = await attachments.find(other, ["a"])

    assert (own, foreign) == ({"a": b"text"}, {})
    assert await attachments.all(QUESTION) == own
