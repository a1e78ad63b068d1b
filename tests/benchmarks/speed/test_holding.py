"""What the long runs say a Redis holds."""

from typing import Any

import pytest

from benchmarks.speed.endurance.bounded import CLOSE_BYTES, wait_until_settled
from benchmarks.speed.redis_server import private_redis
from broker.transport.connect import connect

pytestmark = pytest.mark.redis

WORDS = "x" * 1000
SECONDS = 10.0


async def test_the_slow_log_is_no_part_of_what_is_held_and_a_key_without_end_is() -> None:
    with private_redis() as url:
        client: Any = connect(url)
        before = await wait_until_settled(client, SECONDS)
        await client.config_set("slowlog-log-slower-than", 0)
        for number in range(128):
            await client.set(f"soon gone {number}", WORDS, px=1)
        busy = await wait_until_settled(client, SECONDS)
        await client.set("left behind", WORDS * 100)
        grown = await wait_until_settled(client, SECONDS)
        await client.aclose()

    assert busy.diagnostics > before.diagnostics + 20_000
    assert abs(busy.memory - before.memory) < CLOSE_BYTES
    assert (busy.keys, busy.without_end) == (0, ())
    assert grown.memory - busy.memory > 90_000
    assert grown.of_keys > 90_000
    assert grown.without_end == ("left behind",)
