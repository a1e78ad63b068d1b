"""Words that no document contains are searched for by two words of the documents."""

from collections.abc import Mapping, Sequence

import pytest

from knowledge.search.compounds import divide

DOCUMENTS = {"urlaub", "tage", "urla", "dienst", "reise", "rate", "plan", "haus", "con", "ray"}


async def count(words: Sequence[str]) -> Mapping[str, int]:
    return {word: int(word in DOCUMENTS) for word in words}


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("urlaubstage", "urlaub tage"),
        ("dienstreise", "dienst reise"),
        ("rateplan", "rate plan"),
        ("urlaubsxyz", None),
        ("conray", "con ray"),
        ("conxray", None),
        ("xray", None),
        ("haus" * 11, None),
    ],
)
async def test_a_word_is_divided_where_both_parts_stand_in_the_documents(
    word: str, parts: str | None
) -> None:
    assert (await divide([word], count)).get(word) == parts


async def test_of_a_question_a_few_words_are_divided() -> None:
    words = [f"urlaub{'s' * (n % 3)}tage" for n in range(3)]

    assert len(await divide([*words, "dienstreise", "rateplan"], count)) == 4
