"""A pause belongs to the person who asked: nobody else answers, closes or replaces it."""

from typing import Any

import pytest

from envelope.conversation import PauseReply
from envelope.role import Role
from gateway.desk import Desk, Message
from manager.flows import NEWEST
from manager.machine import Limits
from manager.pause_replies import compute_code
from tests.faults.journal_checker import check_journal
from tests.support.pausing_flow import AskingTool, make_flow
from tests.support.worker_harness import WorkerHarness

ANN, BEN = ("ann",), ("ben",)
CODE = compute_code("m1")
TYPED = PauseReply(pause_id="m1", approve=True)


def prepare(harness: WorkerHarness, kind: Any = "approval") -> AskingTool:
    tool = AskingTool(kind)
    harness.flows = {NEWEST["search"]: make_flow(kind)}
    harness.further_agents = [tool]
    return tool


def say(text: str, number: int, people: tuple[str, ...] = ANN, **fields: Any) -> Message:
    return Message(text, "c1", f"m{number}", people=people, **fields)


ASKED = say("How do I add a rule?", 1)


async def read_rows(harness: WorkerHarness, desk: Desk, message: Message) -> list[str]:
    journal = await harness.broker.replies.read_journal(desk.question(message))
    assert list(check_journal(journal, make_flow("approval"))) == []
    return [str(entry.fields["row"]) for entry in journal if entry.kind == "routed"]


@pytest.mark.parametrize(
    "reply",
    [
        say("approve/en", 2, BEN),
        say(f"approve/en #{CODE}", 2, BEN),
        say(f"deny/en #{CODE}", 2, BEN),
        say("deny/en", 2, BEN),
        say("yes", 2, BEN, pause_reply=TYPED),
        say("approve/en", 2, ()),
        say("approve/en", 2, ("ann", "ben")),
    ],
    ids=["words", "button", "deny_button", "deny", "typed", "nobody", "two_people"],
)
async def test_approvals_of_other_users_are_refused_and_the_pause_stays_open(
    harness: WorkerHarness, reply: Message
) -> None:
    tool = prepare(harness)

    async with harness.open() as desk:
        await desk.ask(ASKED)
        foreign = await desk.ask(reply)
        rows = await read_rows(harness, desk, reply)
        ran = len(tool.ran)
        own = await desk.ask(say(f"approve/en #{CODE}", 3))

    assert (foreign["outcome"], foreign["text"]) == ("refused", "pause_foreign/en")
    assert rows == ["start.pause_foreign"], "the journal names the reason"
    assert ran == 3, "nothing ran for somebody else"
    assert own["outcome"] == "answered"
    assert len(tool.ran) == 5


async def test_a_question_of_another_user_is_answered_and_the_pause_stays_open(
    harness: WorkerHarness,
) -> None:
    tool = prepare(harness)

    async with harness.open() as desk:
        await desk.ask(ASKED)
        other = await desk.ask(say("What is a webhook?", 2, BEN))
        own = await desk.ask(say("approve/en", 3))

    assert other["outcome"] == "answered"
    assert other["termination_reason"] == "pause_of_another_open", "it cannot open a second pause"
    assert own["outcome"] == "answered"
    assert sorted(tool.ran) == sorted(["free", "period", "amount"] * 2 + ["period", "amount"])


async def test_a_clarification_for_another_user_does_not_replace_the_pause(
    harness: WorkerHarness,
) -> None:
    prepare(harness)
    unclear = {"needs_clarification": True, "clarification_reason": "ambiguous_query"}

    async with harness.open() as desk:
        await desk.ask(ASKED)
        harness.script.next(Role.GUARDRAILS, unclear)
        other = await desk.ask(say("What is that?", 2, BEN))
        own = await desk.ask(say("approve/en", 3))

    assert (other["outcome"], own["outcome"]) == ("clarification", "answered")


async def test_another_topic_of_the_same_user_closes_the_pause(
    harness: WorkerHarness,
) -> None:
    prepare(harness)

    async with harness.open() as desk:
        await desk.ask(ASKED)
        await desk.ask(say("What is a webhook?", 2))
        late = await desk.ask(say(f"approve/en #{CODE}", 3))

    assert late["text"] == "pause_over/en"


async def test_values_of_another_user_are_refused_and_free_text_is_a_question(
    harness: WorkerHarness,
) -> None:
    tool = prepare(harness, "information")
    fields = {"period": "2025", "amount": 3}

    async with harness.open() as desk:
        await desk.ask(ASKED)
        named = await desk.ask(say("period: 2025", 2, BEN))
        reply = PauseReply(pause_id="m1", fields=fields)
        typed = await desk.ask(say("-", 3, BEN, pause_reply=reply))
        own = await desk.ask(say("-", 4, pause_reply=reply))

    assert named["text"] == typed["text"] == "pause_foreign/en"
    assert own["outcome"] == "answered"
    assert len(tool.ran) == 5


async def test_each_of_the_people_whose_messages_were_joined_may_answer(
    harness: WorkerHarness,
) -> None:
    prepare(harness)

    async with harness.open() as desk:
        await desk.ask(say("How do I add a rule?", 1, ("ann", "ben")))
        own = await desk.ask(say("approve/en", 2, BEN))

    assert own["outcome"] == "answered"


async def test_messages_of_two_people_that_were_joined_name_both(harness: WorkerHarness) -> None:
    prepare(harness)

    async with harness.open() as desk:
        first = say("How do I add a rule?", 1, not_before_seconds=0.2)
        await desk.submit(first)
        await desk.submit(say("And a webhook?", 2, BEN, not_before_seconds=0.2))
        asked = await desk.outcome(desk.question(first))
        replies = [await desk.ask(say("approve/en", 3, ("eve",)))]
        replies.append(await desk.ask(say("approve/en", 4, BEN)))

    assert asked["outcome"] == "clarification"
    assert [reply["outcome"] for reply in replies] == ["refused", "answered"]


async def test_a_pause_in_a_channel_without_user_ids_may_be_answered_by_everybody(
    harness: WorkerHarness,
) -> None:
    prepare(harness)

    async with harness.open() as desk:
        await desk.ask(say("How do I add a rule?", 1, ()))
        reply = await desk.ask(say("approve/en", 2, BEN))

    assert reply["outcome"] == "answered"


async def test_after_its_expiry_another_user_is_told_that_the_pause_is_over(
    harness: WorkerHarness,
) -> None:
    prepare(harness)
    harness.limits = Limits(pause_seconds=0.0)

    async with harness.open() as desk:
        await desk.ask(ASKED)
        late = await desk.ask(say(f"approve/en #{CODE}", 2, BEN))

    assert late["text"] == "pause_over/en"


async def test_users_without_the_groups_neither_see_a_pause_nor_replace_it(
    harness: WorkerHarness,
) -> None:
    prepare(harness)

    async with harness.open() as desk:
        await desk.ask(say("How do I add a rule?", 1, groups=("hr",)))
        typed = await desk.ask(say("-", 2, BEN, pause_reply=TYPED))
        other = await desk.ask(say("What is a webhook?", 3, BEN))
        own = await desk.ask(say("approve/en", 4, groups=("hr",)))

    assert typed["text"] == "pause_over/en"
    assert other["outcome"] == own["outcome"] == "answered"
