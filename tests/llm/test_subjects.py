"""A question and what it is about are one text, which does not grow with the conversation."""

from llm.offline.dialogue.subjects import add_subject, split_subject, subject_of

FIRST = "How do I add a routing rule?"


def test_the_own_words_of_a_question_come_before_its_subject() -> None:
    assert add_subject("Who can do that?", FIRST) == f"Who can do that? ({FIRST})"
    assert split_subject(f"Who can do that? ({FIRST})") == ("Who can do that?", FIRST)


def test_a_question_without_a_subject_is_its_own_words() -> None:
    assert split_subject(FIRST) == (FIRST, "")


def test_a_subject_keeps_its_first_and_its_newest_part_over_ten_turns() -> None:
    question = FIRST
    for number in range(10):
        turn = f"Does plan {number} allow a hundred senders?"
        question = add_subject(turn, subject_of(question))

    assert question.startswith("Does plan 9 allow")
    assert question.count(" / ") == 1
    assert FIRST in question
    assert "plan 8" in question


def test_a_turn_that_only_points_back_is_nothing_to_be_about() -> None:
    second = add_subject("Who can do that?", FIRST)

    assert subject_of(second) == FIRST


def test_a_turn_in_place_of_another_is_about_the_question_before_both() -> None:
    second = add_subject("And the Developer?", FIRST)

    assert subject_of(second, is_replaced=True) == FIRST
    assert subject_of(second) == f"{FIRST} / And the Developer?"


def test_brackets_of_a_subject_do_not_hide_where_it_begins() -> None:
    assert add_subject("How?", "Limits (per key)") == "How? (Limits per key)"
