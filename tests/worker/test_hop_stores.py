from pathlib import Path
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis

from broker.keys import record_of
from deploy.assembly.tool_access import open_attachments
from envelope.question import Question
from memory.attachments import RedisAttachments
from memory.receipts import RedisReceipts
from tests.support.app_harness import settings_of
from tools.effects import ReceiptKey
from worker.hop_stores import HopAttachments, HopReceipts, receipt_scope

QUESTION = Question(tenant="acme", assistant="desk", conversation_id="c1", message_id="m1")
KEY = ReceiptKey(call_id="1", tool="pay", digest="abc")


def make_receipts(client: Any) -> HopReceipts:
    return HopReceipts(
        lambda question, branch, delivery: RedisReceipts(
            client, question, branch=branch, delivery=delivery, shards=1, record_of=record_of(1)
        )
    )


async def test_every_delivery_of_an_envelope_is_another_one() -> None:
    receipts = make_receipts(FakeAsyncRedis(protocol=2))

    with receipt_scope(QUESTION, "w1/t1"):
        first = await receipts.claim(KEY)
        same = await receipts.claim(KEY)
    with receipt_scope(QUESTION, "w1/t2"):
        other_branch = await receipts.claim(KEY)
    with receipt_scope(QUESTION, "w1/t1"):
        redelivered = await receipts.claim(KEY)

    assert [first, same, other_branch] == [("claimed", b"")] * 3
    assert redelivered == ("unknown", b"")


async def test_results_are_found_by_the_next_delivery() -> None:
    receipts = make_receipts(FakeAsyncRedis(protocol=2))
    doubted = KEY.model_copy(update={"digest": "def"})

    with receipt_scope(QUESTION, ""):
        await receipts.claim(KEY)
        await receipts.finish(KEY, b"paid")
        await receipts.claim(doubted)
        await receipts.mark_unknown(doubted)
    with receipt_scope(QUESTION, ""):
        found = await receipts.claim(KEY), await receipts.claim(doubted)

    assert found == (("done", b"paid"), ("unknown", b""))


async def test_outside_a_hop_nothing_can_be_claimed() -> None:
    with pytest.raises(LookupError, match="found no hop"):
        await make_receipts(FakeAsyncRedis(protocol=2)).claim(KEY)


async def test_a_hop_finds_the_documents_of_its_conversation_and_of_no_other() -> None:
    client = FakeAsyncRedis(protocol=2)
    other = QUESTION.model_copy(update={"conversation_id": "c2"})
    await RedisAttachments(client, shards=1, ttl_of=lambda _: 60).put(QUESTION, "a", b"text")
    attachments = HopAttachments(open_attachments(settings_of(Path()), client))

    with receipt_scope(QUESTION, "w1"):
        own = await attachments.find(["a"])
        assert await attachments.all() == own
    with receipt_scope(other, "w1"):
        foreign = await attachments.find(["a"])

    assert (own, foreign) == ({"a": b"text"}, {})
    with pytest.raises(LookupError, match="found no hop"):
        await attachments.find(["a"])
