"""Questions that pause for information or an approval, and go on where they stopped."""

import asyncio
import json
import time
from typing import Any

import pytest

from broker.values import Fields
from envelope.conversation import PauseReply
from envelope.question import Question
from envelope.role import Role
from gateway.desk import Desk, Message
from manager.flow_proofs import find_flow_problems
from manager.flows import NEWEST
from manager.machine import Limits
from manager.pause_replies import compute_code
from memory.conversation import RedisMemory
from memory.key_names import conversation_keys
from tests.faults.journal_checker import check_journal
from tests.support.pausing_flow import AskingTool, make_flow
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

ASKED = Message("How do I add a rule?", "c1", "m1")
CODE = compute_code("m1")
PAUSE_SECONDS = 2.0


def prepare(harness: WorkerHarness, kind: Any, *, ballast: int = 0) -> AskingTool:
    tool = AskingTool(kind, ballast=ballast)
    harness.flows = {NEWEST["search"]: make_flow(kind)}
    harness.further_agents = [tool]
    return tool


def reply_with(number: int, pause: Fields | str = "m1", **given: Any) -> Message:
    reply = PauseReply(pause_id=str(pause), **given)
    return Message("the reply", "c1", f"m{number}", pause_reply=reply)


async def is_kept(harness: WorkerHarness, desk: Desk) -> bool:
    key = conversation_keys(desk.question(ASKED), 1).kept
    return bool(await harness.client.exists(key))


@pytest.mark.parametrize("kind", ["information", "approval"])
def test_a_flow_that_pauses_is_proved_sound(kind: Any) -> None:
    assert find_flow_problems(make_flow(kind)) == []


async def test_one_pause_asks_for_all_and_its_reply_repeats_no_call(
    harness: WorkerHarness,
) -> None:
    tool = prepare(harness, "information")

    async with harness.open() as desk:
        asked: Any = await desk.ask(ASKED)
        ran_before = list(tool.ran)
        agents_before = {role: len(seen) for role, seen in harness.script.seen.items()}
        answered = await desk.ask(reply_with(2, fields={"period": "2025", "amount": 3}))

    assert asked["outcome"] == "clarification"
    assert asked["pause"]["kind"] == "information"
    names = [question["field"]["name"] for question in asked["pause"]["questions"]]
    assert names == ["period", "amount"]
    assert sorted(ran_before) == ["amount", "free", "period"]
    assert answered["outcome"] == "answered"
    assert sorted(tool.ran[3:]) == ["amount", "period"], (
        "the call that had a result is not repeated"
    )
    for role in (Role.LANG, Role.TRANSLATION, Role.ESSENCE, Role.GUARDRAILS):
        assert len(harness.script.seen[role]) == agents_before[role] == 1
    assert not await is_kept(harness, desk)
    for message in (ASKED, reply_with(2)):
        journal = await harness.broker.replies.read_journal(desk.question(message))
        assert list(check_journal(journal, make_flow("information"))) == []


async def test_partial_values_are_kept_and_only_the_rest_is_asked_again(
    harness: WorkerHarness,
) -> None:
    tool = prepare(harness, "information")

    async with harness.open() as desk:
        await desk.ask(ASKED)
        again: Any = await desk.ask(reply_with(2, fields={"period": "2024", "amount": "many"}))
        answered = await desk.ask(Message("4,5", "c1", "m3"))

    assert again["outcome"] == "clarification"
    assert [question["id"] for question in again["pause"]["questions"]] == ["amount"]
    assert answered["outcome"] == "answered"
    assert len(tool.ran) == 5
    journal = await harness.broker.replies.read_journal(desk.question(Message("", "c1", "m3")))
    runs: list[Any] = [e.fields for e in journal if e.kind == "agent_run"]
    results = [run["writes"]["multi_tool_results"] for run in runs if run["role"] == "tool"]
    assert {"period": "2024"} in results
    assert {"amount": 4.5} in results


@pytest.mark.parametrize("answer", ["approve/en", "deny/en"])
async def test_a_button_approves_or_denies_and_a_second_press_has_no_effect(
    harness: WorkerHarness, answer: str
) -> None:
    tool = prepare(harness, "approval")

    async with harness.open() as desk:
        asked: Any = await desk.ask(ASKED)
        buttons = [action["value"] for action in asked["suggested_actions"]]
        first = await desk.ask(Message(f"{answer} #{CODE}", "c1", "m2"))
        second = await desk.ask(Message(f"{answer} #{CODE}", "c1", "m3"))
        third = await desk.ask(reply_with(4, approve=True))

    assert buttons == [f"approve/en #{CODE}", f"deny/en #{CODE}"]
    assert first["outcome"] == "answered"
    assert len(tool.ran) == (5 if answer == "approve/en" else 3)
    for reply in (second, third):
        assert (reply["outcome"], reply["text"]) == ("refused", "pause_over/en")


async def test_two_approvals_at_once_have_one_effect(harness: WorkerHarness) -> None:
    tool = prepare(harness, "approval")

    async with harness.open() as desk:
        await desk.ask(ASKED)
        replies = await asyncio.gather(
            *(desk.ask(reply_with(number, approve=True)) for number in range(2, 6))
        )

    assert sorted(str(reply["outcome"]) for reply in replies) == ["answered"] + ["refused"] * 3
    assert len(tool.ran) == 5


@pytest.mark.parametrize("pause", ["m0", "of somebody else"])
async def test_a_foreign_reply_is_refused_and_the_pause_stays_open(
    harness: WorkerHarness, pause: str
) -> None:
    prepare(harness, "approval")

    async with harness.open() as desk:
        await desk.ask(ASKED)
        foreign = await desk.ask(reply_with(2, pause, approve=True))
        elsewhere = await desk.ask(
            Message("yes", "c2", "m9", pause_reply=PauseReply(pause_id="m1", approve=True))
        )
        own = await desk.ask(reply_with(3, approve=True))

    assert foreign["outcome"] == elsewhere["outcome"] == "refused"
    assert own["outcome"] == "answered"


async def test_a_person_without_the_groups_of_the_question_cannot_answer_its_pause(
    harness: WorkerHarness,
) -> None:
    tool = prepare(harness, "approval")
    asked = Message("How do I add a rule?", "c1", "m1", groups=("hr",))

    async with harness.open() as desk:
        await desk.ask(asked)
        reply = await desk.ask(reply_with(2, approve=True))

    assert reply["outcome"] == "refused"
    assert len(tool.ran) == 3


async def test_a_reply_to_an_expired_pause_is_refused_politely(harness: WorkerHarness) -> None:
    tool = prepare(harness, "approval")
    harness.limits = Limits(pause_seconds=0.0)

    async with harness.open() as desk:
        await desk.ask(ASKED)
        late = await desk.ask(reply_with(2, approve=True))
        pressed = await desk.ask(Message(f"approve/en #{CODE}", "c1", "m3"))

    assert (late["text"], pressed["text"]) == ("pause_over/en", "pause_over/en")
    assert len(tool.ran) == 3


async def test_another_topic_closes_the_pause_and_erases_its_payload(
    harness: WorkerHarness,
) -> None:
    prepare(harness, "approval")

    async with harness.open() as desk:
        await desk.ask(ASKED)
        assert await is_kept(harness, desk)
        other: Any = await desk.ask(Message("What is a webhook?", "c1", "m2"))
        kept_by_other = await harness.client.hget(
            conversation_keys(desk.question(ASKED), 1).kept, "id"
        )
        late = await desk.ask(Message(f"approve/en #{CODE}", "c1", "m3"))

    assert other["pause"]["id"] == "m2", "the question about something else pauses, too"
    assert kept_by_other == b"m2"
    assert late["outcome"] == "refused"


async def test_a_payload_that_is_too_large_goes_on_without_asking(harness: WorkerHarness) -> None:
    tool = prepare(harness, "information")
    harness.script.next(Role.GUARDRAILS, {"guardrails_analysis": "x" * 300_000})

    async with harness.open() as desk:
        reply = await desk.ask(ASKED)

    assert reply["outcome"] == "answered"
    assert reply["termination_reason"] == "pause_too_large"
    assert len(tool.ran) == 3
    assert not await is_kept(harness, desk)


async def test_invalid_values_end_after_the_permitted_rounds_with_the_results_so_far(
    harness: WorkerHarness,
) -> None:
    tool = prepare(harness, "information")
    harness.limits = Limits(rounds=2)

    async with harness.open() as desk:
        await desk.ask(ASKED)
        again: Any = await desk.ask(reply_with(2, fields={"amount": "many"}))
        ended = await desk.ask(reply_with(3, fields={"amount": "more"}))

    assert (again["outcome"], ended["outcome"]) == ("clarification", "answered")
    assert len(tool.ran) == 3


async def test_the_payload_of_a_pause_is_erased_with_the_conversation(
    harness: WorkerHarness,
) -> None:
    prepare(harness, "information")

    async with harness.open() as desk:
        await desk.ask(ASKED)
        kept = await harness.client.hgetall(conversation_keys(desk.question(ASKED), 1).kept)
        await desk.ask(Message("/clear_history", "c1", "m2", command="clear_history"))

    payload = json.loads(kept[b"payload"])
    assert payload["text"] == "How do I add a rule?"
    assert "model_usage" not in payload
    assert (
        conversation_keys(desk.question(ASKED), 1).kept
        in conversation_keys(desk.question(ASKED), 1).all
    )


class CrashingMemory(RedisMemory):
    """Claims a pause, and crashes before anybody learns of it: the first time only."""

    crashes = 1

    async def claim_pause(self, question: Question, pause_id: str) -> bytes | None:
        claimed = await super().claim_pause(question, pause_id)
        if self.crashes:
            self.crashes -= 1
            raise RuntimeError("the process died after the claim")
        return claimed


async def test_a_reply_whose_process_died_after_its_claim_goes_on_when_it_is_delivered_again(
    harness: WorkerHarness,
) -> None:
    tool = prepare(harness, "approval")
    harness.memory = CrashingMemory(harness.client, shards=1)

    async with harness.open() as desk:
        await desk.ask(ASKED)
        first = await desk.ask(reply_with(2, approve=True))
        second = await desk.ask(reply_with(3, approve=True))

    assert (first["outcome"], second["outcome"]) == ("answered", "refused")
    assert len(tool.ran) == 5


class DyingLateMemory(RedisMemory):
    """Claims a pause, and dies when the pause has expired: the first time only."""

    until = 0.0

    async def claim_pause(self, question: Question, pause_id: str) -> bytes | None:
        claimed = await super().claim_pause(question, pause_id)
        if not self.until:
            self.until = time.time() + PAUSE_SECONDS
            await wait_until(self._is_expired)
            raise RuntimeError("the process died after the claim")
        return claimed

    async def _is_expired(self) -> bool:
        return time.time() >= self.until


async def test_a_reply_in_time_goes_on_when_it_is_delivered_again_after_the_expiry(
    harness: WorkerHarness,
) -> None:
    tool = prepare(harness, "approval")
    harness.limits = Limits(pause_seconds=PAUSE_SECONDS)
    harness.memory = DyingLateMemory(harness.client, shards=1)

    async with harness.open() as desk:
        await desk.ask(ASKED)
        reply = await desk.ask(reply_with(2, approve=True))

    assert reply["outcome"] == "answered"
    assert len(tool.ran) == 5
