"""Documents of a conversation: found in it alone, bounded, and as long-lived as it is."""

from collections.abc import AsyncIterator

import pytest
from fakeredis import FakeAsyncRedis

from envelope.question import Question
from memory.key_names import conversation_keys
from memory.work_store import MOST_ATTACHED_BYTES, MOST_ATTACHMENTS
from memory.work_store import RedisAttachments as Store

QUESTION = Question(tenant="acme", assistant="docs", conversation_id="c1", message_id="m1")
OTHERS = (
    Question(tenant="acme", assistant="docs", conversation_id="c2", message_id="m1"),
    Question(tenant="acme", assistant="api", conversation_id="c1", message_id="m1"),
    Question(tenant="other", assistant="docs", conversation_id="c1", message_id="m1"),
)


@pytest.fixture
async def client() -> AsyncIterator[FakeAsyncRedis]:
    made = FakeAsyncRedis(protocol=2)
    yield made
    await made.aclose()


@pytest.fixture
def store(client: FakeAsyncRedis) -> Store:
    return Store(client, shards=4, ttl_of=lambda _question: 60)


async def test_a_document_is_found_in_its_conversation_and_in_no_other(store: Store) -> None:
    assert await store.put(QUESTION, "a", b"text")

    assert await store.find(QUESTION, ["a", "b"]) == {"a": b"text"}
    assert await store.all(QUESTION) == {"a": b"text"}
    for other in OTHERS:
        assert await store.find(other, ["a"]) == {}
        assert await store.all(other) == {}


async def test_a_conversation_has_room_for_a_bounded_number_of_documents(store: Store) -> None:
    for number in range(MOST_ATTACHMENTS):
        assert await store.put(QUESTION, f"d{number}", b"text")

    assert not await store.put(QUESTION, "one more", b"text")
    assert await store.put(QUESTION, "d0", b"another text")
    assert len(await store.all(QUESTION)) == MOST_ATTACHMENTS


async def test_a_conversation_has_room_for_a_bounded_number_of_bytes(store: Store) -> None:
    half = bytes(MOST_ATTACHED_BYTES // 2 + 1)

    assert await store.put(QUESTION, "a", half)
    assert not await store.put(QUESTION, "b", half)
    assert await store.put(QUESTION, "a", half)


async def test_documents_expire_after_they_were_last_read(
    store: Store, client: FakeAsyncRedis
) -> None:
    await store.put(QUESTION, "a", b"text")
    key = conversation_keys(QUESTION, 4).attachments
    await client.expire(key, 5)

    await store.find(QUESTION, ["a"])

    assert 55 < await client.ttl(key) <= 60


async def test_every_erasure_deletes_the_documents(store: Store) -> None:
    keys = conversation_keys(QUESTION, 4)

    assert keys.attachments in keys.all
    assert await store.find(QUESTION, []) == {}
