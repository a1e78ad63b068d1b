"""One script may touch only one slot: all keys of a conversation are in its shard's."""

import re
from dataclasses import astuple

import pytest
from redis.crc import key_slot

from broker import keys as broker_keys
from broker.keys import (
    message_id_key,
    question_keys,
    results_key,
    shard_for,
    shard_keys,
    stream_key,
)
from envelope.role import Role
from memory import key_names as memory_keys
from memory.key_names import conversation_keys
from tests.support.broker_harness import question

SHARDS = 64
SHARED = ("rd:shards", "rd:budget:", "rd:cache:", "rd:limit:", "rd:thread:", "rd:keys",
          "rd:verified:", "rd:person:", "rd:handover:", "rd:languages:", "rd:speed:")  # fmt: skip
RATES = "rd:rate:{owner}:"
"""Keys of no conversation; each is used by separate commands."""
PUSHED = ("rd:push:{channel/<conversation>}:", "rd:push:<channel>:")
"""The keys of a channel: those of a conversation share a tag, the rest stands alone."""
ROW = re.compile(r"^\| (rd:[^|]+?) +\|", re.MULTILINE)


@pytest.mark.parametrize("name", [f"c{number}" for number in range(50)] + ["{1}", "a}b{c", "ü/%"])
def test_all_keys_of_a_conversation_stand_in_one_slot(name: str) -> None:
    asked = question("m{9}", conversation=name)
    shard = shard_for(asked, SHARDS)
    questions = question_keys(asked, shard)
    keys = [
        *questions.closing,
        questions.messages,
        *(key for key in astuple(shard_keys(shard)) if key.startswith("rd:")),
        *(stream_key(role.value, shard) for role in Role),
        results_key("chat{8}", shard),
        message_id_key(asked.message_id, shard),
        *conversation_keys(asked, SHARDS).all,
    ]

    assert len({key_slot(key.encode()) for key in keys}) == 1


@pytest.mark.parametrize("module", [broker_keys, memory_keys])
def test_every_row_of_the_tables_is_tagged_with_a_shard_or_belongs_to_all(module: object) -> None:
    rows = ROW.findall(module.__doc__ or "")

    assert len(rows) > 5
    allowed = (
        "rd:{n}:",
        "rd:{shard}:",
        "rd:{0}:",
        "rd:{console}:",
        "rd:{webhooks}:",
        "rd:{visitor_mail}:",
        *SHARED,
        RATES,
        *PUSHED,
    )
    assert [row for row in rows if not row.startswith(allowed)] == []


def test_shards_do_not_share_a_slot() -> None:
    slots = [key_slot(shard_keys(shard).open.encode()) for shard in range(1024)]

    assert len(set(slots)) == len(slots)
