"""Several questions of one message are separated, and a rule never calls them one for certain."""

import pytest

from llm.offline.dialogue.several_questions import (
    may_ask_several,
    split_listed_questions,
    split_questions,
)

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
    ("text", "questions"),
    [
        (
            "Which duties apply to importers, how long must records be kept, and what fines are "
            "there?",
            (
                "Which duties apply to importers?",
                "How long must records be kept?",
                "What fines are there?",
            ),
        ),
        (
            "Welche Pflichten gelten für Importeure, wie lange müssen Unterlagen aufbewahrt werden "
            "und welche Strafen gibt es?",
            (
                "Welche Pflichten gelten für Importeure?",
                "Wie lange müssen Unterlagen aufbewahrt werden?",
                "Welche Strafen gibt es?",
            ),
        ),
        (
            "Welche Ereignisse gibt es, wie lange bleiben Berichte und was kostet eine SMS?",
            (
                "Welche Ereignisse gibt es?",
                "Wie lange bleiben Berichte?",
                "Was kostet eine SMS?",
            ),
        ),
        (
            "what does an SMS cost, how do I add a user; can I export reports",
            ("What does an SMS cost?", "How do I add a user?", "Can I export reports?"),
        ),
    ],
)
def test_questions_that_a_sentence_lists_are_separated(
    text: str, questions: tuple[str, ...]
) -> None:
    assert split_listed_questions(text) == questions


@pytest.mark.parametrize(
    "text",
    [
        "Which carriers, routes, and pools are there?",
        "What are the fees, limits and deadlines for refunds?",
        "Which rules apply to importers, exporters, and what brokers are called agents of customs?",
        "Who are the five largest importers, and what are their duties?",
        "What are the rivers of Asia, in which countries do they begin, and how long is each?",
        "Which borough is it in, and what are the town's other notable places?",
        "When I add a user, what happens, and how do I remove it?",
        "What is the language of the author who built an empire, was crowned emperor and died?",
        "Who won the cup, and when?",
        "How long are records kept, and where?",
        "If a webhook fails, how often is it sent again, and what is logged?",
        "What is a rule?, What is a route?",
    ],
)
def test_a_list_in_one_question_is_not_separated(text: str) -> None:
    assert split_listed_questions(text) == ()
