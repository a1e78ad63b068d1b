import re
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker import keys
from broker.values import Bury, ConsumerDemand, Forward, FrameSend, Retry
from envelope.question import Question, in_key
from tests.support.broker_harness import BrokerHarness, carrying, finish, forward, question

ROW = re.compile(r"^\| (rd:\S+(?: id>)?) +\| (\w+) ", re.MULTILINE)


def table() -> list[tuple[re.Pattern[str], str]]:
    """The rows of the table of keys: a pattern and a type each."""
    assert keys.__doc__ is not None
    rows = ROW.findall(keys.__doc__)
    return [
        (re.compile(re.sub(r"<[^>]+>", "[^:]+", name.replace("{n}", r"\{\d+\}"))), kind)
        for name, kind in rows
    ]


async def test_every_written_key_is_documented_with_its_type(
    harness: BrokerHarness,
) -> None:
    names = ["c1", "c2", "c3", "c4", "c:5"]
    for name in names:
        await harness.submit(question(conversation=name), result_list="chat")
    await harness.submit(question("m2", conversation="c1"))
    await harness.submit(question(conversation="later"), not_before_seconds=60)
    await harness.submit(question(conversation="long"))
    long = FrameSend("search", decoded=carrying(question(conversation="long")))
    ends: list[Any] = [
        forward(),
        finish(forget="all"),
        Retry(b"again", "away", seconds=60),
        Bury("failed", "no"),
        finish(),
        Forward((long,)),
    ]
    batch = list(zip(await harness.take_all(), ends, strict=True))
    await harness.broker.settle_and_take(batch, [ConsumerDemand("search", "w1", 2)])
    await harness.broker.maintenance.rescuer.sweep()

    types = [
        (key.decode(), (await harness.client.type(key)).decode())
        for key in await harness.client.keys("*")
    ]
    used = {
        (name.pattern, kind)
        for key, found_kind in types
        for name, kind in table()
        if name.fullmatch(key) and kind == found_kind
    }
    unknown = [
        key
        for key, found_kind in types
        if not any(name.fullmatch(key) and kind == found_kind for name, kind in table())
    ]

    assert unknown == []
    assert used == {(name.pattern, kind) for name, kind in table()}


@pytest.mark.parametrize(
    "ids", [("a/b", "c"), ("a%2Fb", "c"), ("a", "b/c"), (":", "{1}"), ("ü", " ")]
)
def test_a_written_name_reads_back_as_the_question(ids: tuple[str, str]) -> None:
    asked = Question(tenant="t", assistant="a", conversation_id=ids[0], message_id=ids[1])

    name = keys.name_of(asked)

    assert keys.question_of(name) == asked
    assert not set(name) & set(":{} \n")


@pytest.mark.parametrize("name", ["", "a/b/c", "a/b/c/d/e", "a/b/c/", "a/b/%ff/d", "a b/b/c/d"])
def test_an_invalid_key_name_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match=r"expected|valid|decode|at least|match"):
        keys.question_of(name)


def test_all_keys_of_a_conversation_share_the_tag_of_its_shard() -> None:
    first = question("m1", conversation="{9}:x")
    shard = keys.shard_for(first, 16)

    named = keys.question_keys(first, shard)

    every = [*named.closing, named.messages, *keys.shard_keys(shard).all]
    every += [keys.stream_key("search", shard), keys.results_key("chat", shard)]
    assert {key.split("{")[1].split("}")[0] for key in every} == {str(shard)}


@settings(derandomize=True, database=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_key_parts_are_percent_encoded(part: str) -> None:
    assert in_key(part) == quote(part, safe="")
