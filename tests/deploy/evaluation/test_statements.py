"""A statement is found as whole words, whatever its marks, its case and its spaces are."""

import pytest

from deploy.evaluation.sentences import says


@pytest.mark.parametrize(
    ("answer", "statement"),
    [
        ("An account may make **50 requests**\nper second. [1]", ("50 requests per second",)),
        ("It is valid for seven days.", ("7 days", "seven days")),
        ("Set `must_say` to *True*.", ("must_say to true",)),
        ("Up to 1,000 rows.", ("1000 rows",)),
        ("It costs 0.004 EUR.", ("0.004 EUR",)),
        ("From 21:00\u201308:00 it waits.", ("21:00-08:00",)),
        ("条件は8個までです。", ("8個",)),
        ("It is 7[1] days.", ("7 days",)),
    ],
)
def test_a_statement_is_found(answer: str, statement: tuple[str, ...]) -> None:
    assert says(answer, statement)


@pytest.mark.parametrize(
    ("answer", "statement"),
    [
        ("150 requests", ("50",)),
        ("50.5 requests", ("50",)),
        ("3.50 EUR", ("50",)),
        ("Nothing is known.", ("no", "not")),
        ("extra_forbidden", ("forbid",)),
        ("my_alias", ("alias",)),
        ("It is in source [7].", ("7",)),
        ("", ("anything",)),
        ("anything", ("**",)),
    ],
)
def test_a_part_of_a_word_or_a_number_is_no_statement(
    answer: str, statement: tuple[str, ...]
) -> None:
    assert not says(answer, statement)
