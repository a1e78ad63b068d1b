"""One envelope all the way round, with scripted agents."""

import asyncio

import pytest

from agents.roster import AGENTS
from envelope.outcome import GaveUp, RetryAfter
from envelope.role import Role
from gateway.desk import Message
from tests.support.flow_path import main_path
from tests.support.worker_harness import WorkerHarness

ASKERS = [
    agent.role
    for agent in AGENTS
    if "needs_clarification" in agent.writes and agent.role.value in main_path()
]


def message(
    name: str = "m1", conversation: str = "c1", text: str = "How do I add a rule?"
) -> Message:
    return Message(text, conversation, name)


async def test_a_question_passes_every_agent_and_is_answered(harness: WorkerHarness) -> None:
    async with harness.open() as desk:
        reply = await desk.ask(message())
        journal = await harness.broker.replies.read_journal(desk.question(message()))

    assert reply["outcome"] == "answered"
    assert reply["text"] == "Open Routing [1]."
    wrote = [entry.fields["role"] for entry in journal if entry.kind == "agent_run"]
    assert ["start", *wrote] == main_path()
    assert journal[0].kind == "accepted"
    assert journal[-1].kind == "finished"


@pytest.mark.parametrize("foreign", ["target_role", "stage", "counters", "canonical_question"])
async def test_an_agent_that_writes_attributes_of_other_roles_fails(
    harness: WorkerHarness, foreign: str
) -> None:
    harness.script.next(Role.LANG, *[{foreign: "quality"}] * 3)

    async with harness.open() as desk:
        reply = await desk.ask(message())
        letters = await harness.broker.admin.list_dead_letters()

    assert reply["outcome"] == "failed"
    assert f"lang wrote attributes of other roles: {foreign}" in letters[0].error


@pytest.mark.parametrize("role", ASKERS)
async def test_any_agent_of_a_question_may_ask_back(harness: WorkerHarness, role: Role) -> None:
    asks = {"needs_clarification": True, "clarification_reason": "missing_details"}
    harness.script.next(role, {**asks, "clarification_message": "Which account?"})

    async with harness.open() as desk:
        reply = await desk.ask(message())

    assert (reply["outcome"], reply["clarification_reason"]) == ("clarification", "missing_details")
    [seen] = harness.script.seen[Role.CLARIFICATION]
    assert (seen["asking_stage"], seen["clarification_message"]) == (role.value, "Which account?")


async def test_a_command_goes_to_the_command_agent_alone(harness: WorkerHarness) -> None:
    async with harness.open() as desk:
        reply = await desk.ask(Message("/help", "c1", "m1", "help"))

    assert (reply["outcome"], reply["text"]) == ("answered", "Done.")
    assert set(harness.script.seen) == {Role.COMMAND}


async def test_a_duplicate_message_gets_the_reply_of_the_first(harness: WorkerHarness) -> None:
    async with harness.open() as desk:
        first = await desk.ask(message())
        second = await desk.ask(message())

    assert second == first
    assert len(harness.script.seen[Role.RESPONSE]) == 1


async def test_two_messages_sent_at_once_are_answered_one_after_the_other(
    harness: WorkerHarness,
) -> None:
    async with harness.open() as desk:
        replies = await asyncio.gather(
            desk.ask(message("m1", text="first")), desk.ask(message("m2", text="second"))
        )

    assert [reply["outcome"] for reply in replies] == ["answered", "answered"]
    # A process that gets no processor for a lease may start the same message twice.
    first, *_, second = harness.script.seen[Role.LANG]
    assert len(first["history"]) == 0
    assert [turn["text"] for turn in second["history"]] == [first["text"], "Open Routing [1]."]


async def test_a_failing_agent_is_tried_again_and_its_failure_journaled(
    harness: WorkerHarness,
) -> None:
    harness.script.next(Role.SEARCH, ValueError("no luck"))

    async with harness.open() as desk:
        reply = await desk.ask(message())
        journal = await harness.broker.replies.read_journal(desk.question(message()))

    assert reply["outcome"] == "answered"
    retried = [entry for entry in journal if entry.kind == "retried"]
    assert len(retried) == 1
    assert "ValueError: no luck" in str(retried[0].fields)


async def test_an_agent_that_always_fails_is_buried_and_the_user_gets_an_apology(
    harness: WorkerHarness,
) -> None:
    harness.script.next(Role.SEARCH, *[ValueError("broken")] * 3)

    async with harness.open() as desk:
        reply = await desk.ask(message())
        letters = await harness.broker.admin.list_dead_letters()

    assert (reply["outcome"], reply["text"]) == ("failed", "apology/en\n\nreference/en")
    assert [(letter.role, letter.reason) for letter in letters] == [("search", "failed")]
    assert len(harness.script.seen[Role.SEARCH]) == 3


@pytest.mark.parametrize("nonsense", [None, 42, "done", [1]])
async def test_an_agent_that_returns_nonsense_has_failed(
    harness: WorkerHarness, nonsense: object
) -> None:
    harness.script.next(Role.AUGMENTATION, *[lambda _reads: nonsense] * 3)

    async with harness.open() as desk:
        reply = await desk.ask(message())

    assert reply["outcome"] == "failed"


async def test_giving_up_is_decided_by_the_table_at_once(harness: WorkerHarness) -> None:
    harness.script.next(Role.QUALITY, GaveUp("cannot judge"))

    async with harness.open() as desk:
        reply = await desk.ask(message())

    assert reply["outcome"] == "answered"
    assert len(harness.script.seen[Role.RESPONSE]) == 2


async def test_an_agent_may_ask_to_be_tried_later(harness: WorkerHarness) -> None:
    harness.script.next(Role.RESPONSE, RetryAfter(0.05, "rate limited"))

    async with harness.open() as desk:
        reply = await desk.ask(message())

    assert reply["outcome"] == "answered"
    assert len(harness.script.seen[Role.RESPONSE]) == 2


async def test_a_hanging_agent_is_stopped_at_its_limit(harness: WorkerHarness) -> None:
    harness.script.next(Role.SEARCH, *[lambda _reads: asyncio.Event().wait()] * 3)

    async with harness.open(limit_seconds=0.1) as desk:
        reply = await desk.ask(message())

    assert reply["outcome"] == "failed"


async def test_a_loop_reads_the_decision_of_the_judge(harness: WorkerHarness) -> None:
    harness.script.next(
        Role.QUALITY,
        {"quality_decision": "regenerate", "quality_score": 0.4, "quality_analysis": "too short"},
    )

    async with harness.open() as desk:
        reply = await desk.ask(message())

    assert reply["outcome"] == "answered"
    again = harness.script.seen[Role.RESPONSE][1]
    assert (again["attempt"], again["quality_analysis"]) == (1, "too short")


async def test_loops_end_with_the_best_scored_answer(harness: WorkerHarness) -> None:
    harness.script.next(Role.RESPONSE, *({"response": f"answer {n}"} for n in range(3)))
    harness.script.next(
        Role.QUALITY,
        *({"quality_decision": "regenerate", "quality_score": s} for s in (0.3, 0.6, 0.5)),
    )

    async with harness.open() as desk:
        reply = await desk.ask(message())

    assert (reply["outcome"], reply["text"]) == ("answered", "attempts_reached/en\n\nanswer 1")
    assert reply["termination_reason"] == "regenerate_limit"


async def test_an_answer_judged_ungrounded_is_never_sent(harness: WorkerHarness) -> None:
    ungrounded = {
        "quality_decision": "approve",
        "quality_score": 0.99,
        "validation_result": {"grounded": False},
    }
    harness.script.next(Role.QUALITY, *[ungrounded] * 3)

    async with harness.open() as desk:
        reply = await desk.ask(message())

    assert reply["outcome"] == "failed"
    assert reply["text"] == "Which one do you mean?"


async def test_a_reply_for_a_push_channel_is_delivered_once(harness: WorkerHarness) -> None:
    async with harness.open():
        desk = harness.desk(result_list="slack")
        await desk.ask(message())
        await desk.ask(message())

    assert await harness.client.xlen("rd:{0}:results:slack") == 1


async def test_nothing_is_left_over_when_a_question_has_ended(harness: WorkerHarness) -> None:
    async with harness.open() as desk:
        await desk.ask(message())
        status = await harness.broker.admin.read_status([role.value for role in WRITTEN])

    assert [(role.depth, role.in_flight) for role in status] == [(0, 0)] * len(WRITTEN)


WRITTEN = (Role.MANAGER, Role.LANG, Role.SEARCH, Role.QUALITY)
