import pytest
from hypothesis import given

from gateway.chat.marked_text import Mark, parse_marked
from tests.gateway.chat.markdown_samples import QUICK, lines, markdown, texts


@given(texts)
@QUICK
def test_marks_lie_in_the_text_outer_ones_first_and_never_cross(text: str) -> None:
    made = parse_marked(text)

    assert all(0 <= mark.start < mark.end <= len(made.text) for mark in made.marks)
    assert list(made.marks) == sorted(made.marks, key=lambda mark: (mark.start, -mark.end))
    for number, outer in enumerate(made.marks):
        assert all(
            inner.end <= outer.end or inner.start >= outer.end for inner in made.marks[number:]
        )


@given(markdown)
@QUICK
def test_no_word_of_a_markdown_text_is_lost(text: str) -> None:
    kept = "".join(filter(str.isalnum, parse_marked(text).text))
    plain = text.replace("python", "").replace("](https://example.org/a)", "")
    plain = plain.replace("](https://example.org)", "")

    assert kept == "".join(filter(str.isalnum, plain))


@given(lines)
@QUICK
def test_text_without_signs_stays_as_it_is(text: str) -> None:
    assert parse_marked(text).text == text
    assert parse_marked(text).marks == ()


@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ("a **b** c", [("b", "bold", "")]),
        ("# a *b*", [("a b", "bold", ""), ("b", "italic", "")]),
        ("> one\n> two\n\nthree", [("one\ntwo", "quote", "")]),
        ("- a\n\n  ```py\n  if a:\n      b\n  ```", [("if a:\n    b", "pre", "py")]),
        ("1. x\n2. [y](https://z.org)", [("y", "link", "https://z.org")]),
        ("- > q", [("q", "quote", "")]),
        ("[`y`](https://z.org)", [("y", "link", "https://z.org"), ("y", "code", "")]),
    ],
)
def test_marks_cover_the_words_that_were_marked(
    text: str, covered: list[tuple[str, str, str]]
) -> None:
    made = parse_marked(text)

    def describe_mark(mark: Mark) -> tuple[str, str, str]:
        return made.text[mark.start : mark.end], mark.kind, mark.detail

    assert [describe_mark(mark) for mark in made.marks] == covered


@pytest.mark.parametrize("text", ["![](https://example.org/a.png)", "#", "[](https://a.org)", ">"])
def test_a_text_of_which_nothing_would_be_left_stays_as_it_was_written(text: str) -> None:
    assert parse_marked(text).text == text


def test_each_row_of_a_table_is_a_line_that_names_its_columns() -> None:
    table = "| Code | Status | Next |\n|---|---|---|\n| D-1 | `lost` [1] | |\n| **D**-2 | | wait |"

    marked = parse_marked(f"Codes:\n\n{table}\n\nEnd.")

    rows = "• D-1 · Status: lost [1]\n• D-2 · Next: wait"
    assert marked.text == f"Codes:\n\n{rows}\n\nEnd."
    assert [marked.text[one.start : one.end] for one in marked.marks] == ["D-1", "lost", "D"]


def test_a_table_without_rows_shows_the_names_of_its_columns() -> None:
    assert parse_marked("| One | Two |\n|---|---|").text == "One · Two"
