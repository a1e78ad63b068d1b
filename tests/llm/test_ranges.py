"""A number of a question is found in the ranges of a table or a text."""

import pytest

from llm.offline.quoting.ranges import find_ranges
from llm.offline.respond import answer
from llm.tasks.respond import Inputs, PromptSource

PRICES = PromptSource(
    number=1,
    chunk_id="prices#0",
    place="Prices > Licences",
    language="en",
    text="| Users | Price per month |\n|---|---|\n| 1-10 | 40 euros |\n"
    "| 11\u2013100 | 150 euros |\n| more than 100 | 900 euros |",
)


@pytest.mark.parametrize(
    ("users", "price"),
    [("7", "40"), ("seven", "40"), ("11", "150"), ("100", "150"), ("101", "900"), ("2,500", "900")],
)
def test_a_number_gets_the_row_in_whose_range_it_lies(users: str, price: str) -> None:
    question = f"What is the price per month for {users} users?"

    said = answer(Inputs(question=question, language="en", sources=(PRICES,))).answer

    assert said.split("\n")[2:-2] == [row for row in PRICES.text.split("\n") if f"| {price}" in row]


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("1-10", [(1, 10)]),
        ("1 to 10 users", [(1, 10)]),
        ("von 11 bis 1.000 Nutzer", [(11, 1000)]),
        ("from 5", [(5, float("inf"))]),
        ("101+", [(101, float("inf"))]),
        ("50 or more", [(50, float("inf"))]),
        ("up to 3", [(0, 3)]),
        ("13 to 4 days before", [(4, 13)]),
        ("up to 14 days before", [(14, float("inf"))]),
        ("under 18", [(0, 17)]),
        ("> 1,000 kg", [(1001, float("inf"))]),
        ("2026-04-12", []),
        ("9:00-18:30", []),
        ("0421-5501", []),
        ("version 1.2-1.4", []),
        ("10-1", []),
        ("GET /a/1-10/b", []),
    ],
)
def test_ranges_differ_from_dates_hours_and_other_numbers(
    text: str, ranges: list[tuple[float, float]]
) -> None:
    assert list(find_ranges(text)) == ranges


def test_who_is_over_an_age_is_in_the_row_above_it_and_not_in_the_row_that_ends_there() -> None:
    ages = "| Age | Fee |\n|---|---|\n| 18-65 | 9 |\n| over 65 | not offered |"
    source = PromptSource(
        number=1, chunk_id="fees#0", place="Fees of the club", language="en", text=ages
    )

    def ask_fee(question: str) -> str:
        return answer(Inputs(question=question, language="en", sources=(source,))).answer

    assert "not offered" in ask_fee("What is the fee for somebody over 65?")
    assert "| 9 |" not in ask_fee("What is the fee for somebody over 65?")
    assert "| 9 |" in ask_fee("What is the fee at the age of 65?")
