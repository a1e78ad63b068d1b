import pytest

from knowledge.index.points.mentioned_names import find_mentioned_names
from knowledge.library.shared_names import SharedNames


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


def test_only_names_that_few_passages_share_connect_them() -> None:
    texts = [(f"d{number}#0", "Common Name") for number in range(5)]
    texts += [("a#0", "by Lorenzo Costa"), ("b#0", "Lorenzo Costa died"), ("c#0", "Only Once")]

    mentions = ((chunk_id, find_mentioned_names(text)) for chunk_id, text in texts)
    shared = SharedNames(mentions, most_common=4)

    assert shared.find("lorenzo costa") == ("a#0", "b#0")
    assert shared.find("common name") == ()
    assert shared.find("only once") == ()
