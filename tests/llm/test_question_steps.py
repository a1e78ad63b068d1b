import pytest

from llm.offline.planning.question_steps import QuestionSteps, read_steps
from llm.offline.planning.triage_rules import answer
from llm.tasks.triage import Inputs

SEARCH_BELOW = 30


@pytest.mark.parametrize(
    "question",
    [
        "Which ferry left first, the Aurora or the Borealis?",
        "Were both Ada Quill and Tom Reed captains?",
        "To what family do both Alder Gin and Birch Gin belong?",
        "Which is a cargo line, Northway or Southway Express?",
        "Is Port Alfa or Port Beta further west?",
    ],
)
def test_a_comparison_of_two_named_things_needs_more_than_one_look(question: str) -> None:
    assert read_steps(question).is_comparison


@pytest.mark.parametrize(
    "question",
    [
        "Where was the founder of Alfa Freight born?",
        "When did Ada Quill's father retire?",
        "What is the place of birth of the director of Northway?",
        "Who is the captain of the ship that the owner of Alfa Freight bought?",
        "In which city is the company that owns the Aurora?",
    ],
)
def test_a_thing_that_is_named_by_its_relation_to_another_needs_more_than_one_look(
    question: str,
) -> None:
    assert read_steps(question).is_chain


def test_a_word_that_asks_inside_a_description_needs_more_than_one_look() -> None:
    assert read_steps("The Aurora belongs to what company that Ada Quill founded?").is_inside


@pytest.mark.parametrize(
    "question",
    [
        "Who is the founder of Alfa Freight?",
        "Who is Ada Quill's father?",
        "What is the fee of Alfa Freight?",
        "How do I connect to a remote cluster?",
        "what is the difference between a batch and a block?",
        "Do you need the Router to deploy an application using Ferry Serve?",
        "Wo wurde Ada Quill geboren?",
        "How do I resume a task?",
        "dashboard",
        "",
    ],
)
def test_a_simple_question_is_searched(question: str) -> None:
    assert read_steps(question) == QuestionSteps()
    assert answer(Inputs(question=question)).complexity < SEARCH_BELOW


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("Which ferry left first, the Aurora or the Borealis?", "it compares two things"),
        ("When did Ada Quill's father retire?", "it names a thing by another one"),
        ("Summarize Article 3", "it asks for a summary"),
        ("Which articles are new in version 2025?", "it compares versions"),
    ],
)
def test_the_judgement_of_a_question_of_several_steps_names_the_reason(
    question: str, reason: str
) -> None:
    judged = answer(Inputs(question=question))

    assert judged.complexity >= SEARCH_BELOW
    assert judged.reasoning == reason
