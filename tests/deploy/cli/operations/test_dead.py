"""Dead letters of branches: a branch cannot run again without its question."""

from typing import Any

import pytest

from broker.values import DeadLetter
from config.settings import load_settings
from deploy.assembly.dead_letters import retry_letter
from deploy.cli.commands.dead import find_branch
from deploy.errors import CommandError
from tests.support.broker_harness import carrying


def make_letter(frame: bytes) -> DeadLetter:
    return DeadLetter(
        id="0-1-1",
        role="tool",
        shard=0,
        question=carrying().question,
        reason="failed",
        error="ValueError",
        attempts=3,
        worker="w",
        at=1.0,
        frame=frame,
    )


def test_a_letter_shows_the_branch_that_it_ended() -> None:
    branch = carrying().with_branch("w2/t1", {"stage": "call"})

    assert find_branch(make_letter(branch.encode())) == "w2/t1"
    assert find_branch(make_letter(carrying().encode())) == ""
    assert find_branch(make_letter(b"no frame")) == ""


async def test_a_branch_does_not_run_again_without_its_question() -> None:
    envelope = carrying()
    letter = make_letter(envelope.with_branch("t1", {"stage": "call"}).encode())
    broker: Any = None  # nothing is submitted

    with pytest.raises(CommandError, match=f"the branch t1 of {envelope.message_id}"):
        await retry_letter(broker, letter, load_settings(), deliver=False)
