"""An effect happens once, also where the process dies in the middle of it."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from broker.transport.connect import connect
from tests.support.effect_process import place_order
from tests.support.waiting import wait_until
from tools.calls import (
    ToolCall,
    ToolErrorType,
    digest_arguments,
    make_approval_id,
    request_approval,
)

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.mark.redis
@pytest.mark.slow
async def test_a_process_that_is_killed_in_the_middle_of_an_effect_leaves_it_unknown_and_unrepeated(
    tmp_path: Path, redis_url: str
) -> None:
    client: Any = connect(redis_url)
    await client.flushall()
    orders = tmp_path / "orders"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.effect_process", redis_url, str(orders), cwd=ROOT
    )
    await wait_until(lambda: orders.exists() and orders.read_text() == "book\n")
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()

    again = await place_order(orders, client, "second")
    thereafter = await place_order(orders, client, "third")
    under_another_id = await place_order(orders, client, "third", call_id="2")

    assert orders.read_text() == "book\n"
    for result in (again, thereafter, under_another_id):
        assert result.error_type is ToolErrorType.UNKNOWN
        assert "unknown whether 'order' changed anything" in result.text
    assert orders.read_text() == "book\n"
    await client.aclose()


@pytest.mark.redis
async def test_a_redelivered_effect_that_is_done_returns_its_result(
    tmp_path: Path, redis_url: str
) -> None:
    client: Any = connect(redis_url)
    await client.flushall()
    orders = tmp_path / "orders"

    first = await place_order(orders, client, "first")
    second = await place_order(orders, client, "second")

    assert first == second
    assert first.success
    assert orders.read_text() == "book\n"
    await client.aclose()


CALL = ToolCall(call_id="7", tool="delete", arguments={"ticket": 12})


def test_an_approval_request_has_the_tool_the_arguments_and_the_cost() -> None:
    request = request_approval(CALL, "delete", most_cost_micros=500)

    assert (request.tool, request.arguments) == ("delete", {"ticket": 12})
    assert request.most_cost_micros == 500


@pytest.mark.parametrize(
    ("change", "tool"),
    [({"arguments": {"ticket": 13}}, "delete"), ({"call_id": "8"}, "delete"), ({}, "delete_all")],
)
def test_an_approval_is_of_its_call_of_its_tool_with_its_arguments(
    change: dict[str, object], tool: str
) -> None:
    other = CALL.model_copy(update=change)

    assert make_approval_id(other, tool) != make_approval_id(CALL, "delete")


@pytest.mark.parametrize("other", [{"a": 1.5}, {"a": "1"}, {"a": True}, {"b": 1}, [1], None, {}])
def test_different_arguments_have_different_digests(other: JsonValue) -> None:
    assert digest_arguments({"a": 1}) != digest_arguments(other)


def test_a_digest_has_one_length_and_does_not_depend_on_the_order_of_keys() -> None:
    assert len(digest_arguments({"a": "ü" * 10_000})) == 32
    assert digest_arguments({"a": 1, "b": 2}) == digest_arguments({"b": 2, "a": 1})
