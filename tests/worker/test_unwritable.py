"""Words that JSON cannot say cost the hop that said them, never the worker or its other work."""

import asyncio
from typing import Any

import pytest

from envelope.outcome import GaveUp, RetryAfter
from envelope.role import Role
from gateway.desk import Message
from tests.support.worker_harness import WorkerHarness

HALF = "half a pair: \ud83d"


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        ({"text_eng": HALF}, "retried"),
        (ValueError(HALF), "retried"),
        (RetryAfter(0.01, HALF), "retried"),
        (GaveUp(HALF), "routed"),
    ],
    ids=["writes", "raises", "waits", "gives up"],
)
async def test_a_lone_surrogate_from_an_agent_is_escaped(
    harness: WorkerHarness, act: Any, kind: str
) -> None:
    harness.script.next(Role.TRANSLATION, act)
    messages = Message("How?", "c1", "m1"), Message("How?", "c2", "m1")

    async with harness.open() as desk:
        replies = await asyncio.gather(*(desk.ask(message) for message in messages))

    journals = [
        await harness.broker.replies.read_journal(desk.question(message)) for message in messages
    ]
    kinds = [
        entry.kind
        for entry in (*journals[0], *journals[1])
        if "ud83d" in str(entry.fields.get("reason"))
    ]
    assert [reply["outcome"] for reply in replies] == ["answered", "answered"]
    assert set(kinds) - {"agent_run"} == {kind}
    assert await harness.broker.admin.list_dead_letters() == []


async def test_half_a_surrogate_in_the_argument_of_a_command_is_reported_with_escapes(
    harness: WorkerHarness,
) -> None:
    asked = Message("/language x", "c1", "m1", command="language", arguments=(HALF,))

    async with harness.open() as desk:
        reply = await desk.ask(asked)

    assert reply["outcome"] == "answered"
