"""Several questions of one message are separated, and a rule never calls them one for certain."""

import pytest

from llm.offline.dialogue.several_questions import may_ask_several, split_questions
from llm.offline.essence_rules import stands_alone
from llm.tasks.essence import Inputs

BOTH = ("How do I add a user?", "How do I create a webhook?")


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        ("How do I add a user and how do I create a webhook?", BOTH),
        ("How do I add a user? And how do I create a webhook?", BOTH),
        ("How do I add a user?\nHow do I create a webhook?", BOTH),
        ("add a user and create a webhook, how", BOTH),
        ("How do I add a user and create a webhook?", BOTH),
        (
            "How do I create a rule? And how many conditions may a rule have?",
            ("How do I create a rule?", "How many conditions may a rule have?"),
        ),
        (
            "Wie füge ich einen Nutzer hinzu und wie erstelle ich einen Webhook?",
            ("Wie füge ich einen Nutzer hinzu?", "Wie erstelle ich einen Webhook?"),
        ),
        (
            "Как добавить пользователя и как создать вебхук?",
            ("Как добавить пользователя?", "Как создать вебхук?"),
        ),
    ],
)
def test_whole_questions_are_separated(text: str, questions: tuple[str, ...]) -> None:
    assert split_questions(text) == questions
    assert may_ask_several(text)


@pytest.mark.parametrize(
    "text",
    [
        "Where can I pay for my ride? With what payment, please?",
        "Do Terraform and Ansible work together? How about containers?",
        "What is a salary page? No fees at my end?",
        "How do I create a rule? And how do I test it?",
        "What are tasks and actors? How do they relate to jobs of the cluster?",
        "The dashboard disappears when it opens. Is it a known problem? What am I doing wrong?",
        "What is the difference between a rule and a route?",
        "How do I create and test a rule?",
        "When I add a user and when he logs in, what happens?",
        "Can I keep my number and use the old plan?",
    ],
)
def test_one_question_stays_whole(text: str) -> None:
    assert split_questions(text) == ()


@pytest.mark.parametrize(
    ("text", "is_certain"),
    [
        ("How do I create a routing rule for SMS?", True),
        ("What is the difference between a rule and a route?", True),
        ("OAuth2 scopes and OpenAPI", True),
        ("add a user and create a webhook, how", False),
        ("users and webhooks, how", False),
        ("How do I add a user and how do I create a webhook?", False),
        ("How do I add a user?\nHow do I create a webhook?", False),
    ],
)
def test_only_a_turn_that_asks_one_question_is_certain_without_a_model(
    text: str, is_certain: bool
) -> None:
    assert stands_alone(Inputs(text=text, text_eng=text)) is is_certain
