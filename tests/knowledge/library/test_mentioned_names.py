import pytest

from knowledge.index.graph.mentioned_names import find_mentioned_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("stars Meg Ryan and Jo Orr", {"meg ryan and jo orr", "meg ryan", "jo orr"}),
        ("He met the Bank of England in Rome", {"bank of england in rome"}),
        ("In 1984 she read it", set()),
        ('the term "pyrrhic victory" comes', {"pyrrhic victory"}),
        ("a small word", set()),
        ("東京は大きい", set()),
        ("", set()),
    ],
)  # fmt: skip
def test_names_are_runs_of_capitalised_words_and_quoted_phrases(text: str, names: set[str]) -> None:
    assert set(find_mentioned_names(text)) == names
