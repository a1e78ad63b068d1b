"""The addresses to which people reply by e-mail."""

from typing import Any

import pytest

from memory.errors import MemoryUnavailableError
from memory.http_state import RedisReplyAddresses
from memory.key_names import handover_secret_key
from tests.support.broker_harness import question
from tests.support.empty_redis import play_redis


async def test_a_conversation_that_is_erased_while_it_is_sent_leaves_no_key() -> None:
    client: Any = play_redis().client()
    await client.set(handover_secret_key(), b"secret")
    addresses = RedisReplyAddresses(client)

    assert await addresses.begin_sending(question(), 600) == "new"
    await addresses.forget(question())
    await addresses.end_sending(question(), is_sent=True)

    assert await client.keys() == [handover_secret_key().encode()]
    await client.aclose()


async def test_without_the_secret_no_guessable_address_is_created() -> None:
    client: Any = play_redis().client()
    addresses = RedisReplyAddresses(client)

    with pytest.raises(MemoryUnavailableError, match="lost the secret"):
        await addresses.put(question(), "ticket", 600)
    await addresses.forget(question())
    await client.aclose()
