"""After the answer to one of several questions, the others are offered."""

import pytest
from pydantic import JsonValue

from envelope.conversation import ClarificationReason
from manager import replies
from manager.offers import add_offer
from tests.manager.test_replies import Words, envelope

REMAINING: list[JsonValue] = ["How do I add a user?", "Who may?"]


def make_reply(outcome: str = "answered") -> dict[str, JsonValue]:
    return {"outcome": outcome, "text": "Open it. [1]", "suggested_actions": []}


def test_the_open_questions_follow_the_answer_as_a_list_and_as_buttons() -> None:
    reply = add_offer(make_reply(), {"remaining_questions": REMAINING}, Words(), "de")

    offered = "also_asked/de\n1. How do I add a user?\n2. Who may?"
    assert reply["text"] == f"Open it. [1]\n\n{offered}"
    assert reply["suggested_actions"] == [
        {"label": one, "value": one, "kind": "option"} for one in REMAINING
    ]


@pytest.mark.parametrize("outcome", ["answered", "refused"])
def test_an_end_with_open_questions_leaves_a_choice_that_needs_no_reply(outcome: str) -> None:
    ended = replies.remember(envelope(remaining_questions=REMAINING), make_reply(outcome))

    assert ended.pause is not None
    assert (ended.pause.options, ended.pause.is_offer) == (tuple(REMAINING), True)
    assert ended.turns[-1].text == "Open it. [1]"


def test_a_question_back_about_one_question_keeps_the_others() -> None:
    asks = {"clarification_reason": ClarificationReason.AMBIGUOUS_QUERY.value}

    ended = replies.remember(
        envelope(remaining_questions=REMAINING, **asks), make_reply("clarification")
    )

    assert ended.pause is not None
    assert (ended.pause.remaining, ended.pause.is_offer) == (tuple(REMAINING), False)


def test_a_failed_question_leaves_the_choice_as_it_was() -> None:
    ended = replies.remember(
        envelope(remaining_questions=REMAINING, open_pause={}), make_reply("failed")
    )

    assert (ended.pause, ended.close_pause) == (None, False)
