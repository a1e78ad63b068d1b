"""A pause that only offers binds no turn, and loses the question that is asked."""

import pytest
from llm.offline.dialogue.open_questions import find_remaining

from agents.question.essence import EssenceAgent, Reads, Writes
from envelope.conversation import ClarificationReason, Pause, Turn
from envelope.outcome import Wrote
from llm.scripted import ScriptedModel
from llm.tasks.essence import Inputs, Output

WEBHOOK, RULE, ERROR = "How do I create a webhook?", "How do I test a rule?", "What is error 4029?"
HISTORY = (
    Turn(speaker="user", text="1", meant="How do I add a user?"),
    Turn(speaker="assistant", text="Open Users. [1]", outcome="answered"),
)


def make_pause(**changes: object) -> Pause:
    values: dict[str, object] = {
        "pause_id": "p",
        "original_question": "How do I add a user?",
        "original_text": "1",
        "reason": ClarificationReason.MULTIPLE_TOPICS,
        "asked": "-",
        "options": (WEBHOOK, RULE),
        **changes,
    }
    return Pause.model_validate(values)


async def read_turn(text: str, pause: Pause, *found: Output) -> tuple[Writes, ScriptedModel]:
    model = ScriptedModel(list(found))
    agent = EssenceAgent(model=model)
    outcome = await agent.work(Reads(text=text, text_eng=text, history=HISTORY, open_pause=pause))
    assert isinstance(outcome, Wrote)
    return outcome.writes, model


@pytest.mark.parametrize(
    ("pause", "question", "remaining"),
    [
        (make_pause(), WEBHOOK, (RULE,)),
        (make_pause(), "And how do I create webhooks?", (RULE,)),
        (make_pause(), ERROR, (WEBHOOK, RULE)),
        (make_pause(reason="ambiguous_query", remaining=(ERROR,)), WEBHOOK, (ERROR,)),
    ],
)
def test_what_is_asked_is_no_longer_open(
    pause: Pause, question: str, remaining: tuple[str, ...]
) -> None:
    assert find_remaining(pause, question) == remaining


async def test_a_number_chooses_an_offered_question_without_a_model() -> None:
    writes, model = await read_turn("2", make_pause(is_offer=True))

    assert (writes.canonical_question, writes.remaining_questions) == (RULE, (WEBHOOK,))
    assert model.calls == []


async def test_a_model_reads_a_turn_behind_an_offer_as_if_nothing_was_asked() -> None:
    other = Output(canonical_question=ERROR, context_type="new_topic")

    writes, model = await read_turn(ERROR, make_pause(is_offer=True), other)

    asked = model.calls[0].inputs
    assert isinstance(asked, Inputs)
    assert asked.open_pause is None
    assert (writes.context_type, writes.remaining_questions) == ("new_topic", ())


async def test_a_turn_about_the_answer_leaves_the_other_questions_open() -> None:
    question = "Who can add a user?"
    follow_up = Output(canonical_question=question, context_type="follow_up", related_turns=(1,))

    writes, _ = await read_turn("Who can do that?", make_pause(is_offer=True), follow_up)

    assert (writes.canonical_question, writes.remaining_questions) == (question, (WEBHOOK, RULE))
