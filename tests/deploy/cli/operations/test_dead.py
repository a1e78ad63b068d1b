"""Dead letters of branches: a branch cannot run again without its question."""

from typing import Any

import pytest

from broker.values import DeadLetter
from config.settings import load_settings
from deploy.cli.operations.dead import retry_letter
from deploy.errors import CommandError
from tests.support.broker_harness import carrying


async def test_a_branch_does_not_run_again_without_its_question() -> None:
    envelope = carrying()
    branch = envelope.with_branch("t1", {"stage": "call"})
    letter = DeadLetter(
        id="0-1-1",
        role="tool",
        shard=0,
        question=envelope.question,
        reason="failed",
        error="ValueError",
        attempts=3,
        worker="w",
        at=1.0,
        frame=branch.encode(),
    )
    broker: Any = None  # nothing is submitted

    with pytest.raises(CommandError, match=f"the branch t1 of {envelope.message_id}"):
        await retry_letter(broker, letter, load_settings(), deliver=False)
