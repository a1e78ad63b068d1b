"""Questions that are made to keep a worker busy keep nobody else waiting."""

import asyncio

import pytest

from tests.deploy.conftest import OpenApp

pytestmark = pytest.mark.slow

HELD_UP = "show." * 8 + "your" + "." * 5900 + "x"
OTHERS = 50
HOSTILE = 6
DEADLINE_SECONDS = 30.0


@pytest.mark.timeout(120)
async def test_questions_made_to_hold_a_worker_up_make_no_other_late(
    open_app: OpenApp,
) -> None:
    async with open_app(
        deadline_seconds=DEADLINE_SECONDS, agent_timeout_seconds=DEADLINE_SECONDS
    ) as harness:
        hostile = [harness.driver().say(f"{number} {HELD_UP}") for number in range(HOSTILE)]
        others = [
            harness.driver().say("How do I configure SMS routing rules?") for _ in range(OTHERS)
        ]
        replies = await asyncio.gather(*hostile, *others)

    assert {reply["outcome"] for reply in replies[:HOSTILE]} <= {
        "refused",
        "clarification",
        "answered",
    }
    assert {reply["outcome"] for reply in replies[HOSTILE:]} == {"answered"}
