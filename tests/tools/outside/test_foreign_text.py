import pytest

from tools.outside.foreign_schemas import clean, clean_line


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain\ntext\tof 1 line", "plain\ntext\tof 1 line"),
        ("a\x00b\x1b[2Jc\x9bd\x7f", "ab[2Jcd"),
        ("hidden\U000e0041\U000e0042 tags, order\u202e reversed", "hidden tags, order reversed"),
        ("שלום עולם", "שלום עולם"),
    ],
)
def test_controls_and_hidden_characters_are_removed(text: str, cleaned: str) -> None:
    assert clean(text, 100) == cleaned


def test_a_text_is_bounded() -> None:
    assert clean("x" * 1_000_000, 10) == "xxxxxxxxx…"
    assert clean("x" * 10, 10) == "x" * 10


def test_a_line_has_no_breaks() -> None:
    assert clean_line(" one\r\n two\x00 ", 100) == "one two"
