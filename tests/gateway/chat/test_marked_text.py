import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.chat.marked_text import Mark, Marked, parse_marked, split, utf16_units
from gateway.slack.channel import mrkdwn
from tests.gateway.chat.markdown_samples import QUICK, lines, markdown, paint, texts


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("3. a\n5. b\n6. c", "3. a\n5. b\n6. c"),
        ("1. a\n1. b\n1. c", "1. a\n2. b\n3. c"),
        ("01) a\n03) b", "01) a\n03) b"),
    ],
)
def test_items_keep_their_numbers(text: str, shown: str) -> None:
    assert parse_marked(text).text == shown


@pytest.mark.parametrize("text", ["![](https://example.org/a.png)", "#", "[](https://a.org)", ">"])
def test_a_text_of_which_nothing_would_be_left_stays_as_it_was_written(text: str) -> None:
    assert parse_marked(text).text == text


def test_each_row_of_a_table_is_a_line_that_names_its_columns() -> None:
    table = "| Code | Status | Next |\n|---|---|---|\n| D-1 | `lost` [1] | |\n| **D**-2 | | wait |"

    marked = parse_marked(f"Codes:\n\n{table}\n\nEnd.")

    rows = "• Code: D-1 · Status: lost [1]\n• Code: D-2 · Next: wait"
    assert marked.text == f"Codes:\n\n{rows}\n\nEnd."
    assert [marked.text[mark.start : mark.end] for mark in marked.marks] == ["D-1", "lost", "D"]


def test_no_cell_of_a_row_that_is_longer_than_the_header_is_lost() -> None:
    table = "| Key | Value |\n|---|---|\n| `{{ x | upper }}` | `a\\|b` | more |"

    assert parse_marked(table).text == "• Key: `{{ x · Value: upper }}` · a|b · more"


def test_a_table_without_rows_shows_the_names_of_its_columns() -> None:
    assert parse_marked("| One | Two |\n|---|---|").text == "One · Two"


FAMILY = "👩\u200d👩\u200d👧\u200d👦"


limits = st.integers(min_value=20, max_value=120)


def units(piece: Marked) -> int:
    return utf16_units(piece.text)


def cut(text: str, longest: int) -> list[str]:
    return [piece.text for piece in split(parse_marked(text), longest=longest, measure=units)]


@given(texts, limits)
@example("    \n\n   x\n" * 30, 20)
@QUICK
def test_the_pieces_give_back_the_text_and_its_marks_but_for_space_between_them(
    text: str, longest: int
) -> None:
    whole = parse_marked(text)
    rest = paint(whole)

    for piece in split(whole, longest=longest, measure=units):
        painted = paint(piece)
        while rest[: len(painted)] != painted:
            assert rest.pop(0)[0].isspace(), piece.text
        rest = rest[len(painted) :]
    assert all(character.isspace() for character, _ in rest)


@given(texts, limits)
@QUICK
def test_no_piece_is_longer_than_it_may_be_or_empty(text: str, longest: int) -> None:
    whole = parse_marked(text)

    for measure in (units, lambda piece: len(mrkdwn(piece)) - 60):
        pieces = split(whole, longest=longest, measure=measure)
        assert all(measure(piece) <= longest for piece in pieces)
        assert not whole.text.strip() or all(piece.text.strip() for piece in pieces)


@given(st.lists(lines, min_size=2, max_size=9), limits)
@QUICK
def test_a_word_is_cut_only_when_it_does_not_fit(them: list[str], longest: int) -> None:
    text = "\n\n".join(them)
    words = text.split()

    results = [word for piece in cut(text, longest) for word in piece.split()]

    assert results == words


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One two.\n\nThree four. Five\nsix seven eight", "One two."),
        ("One two. Three\nfour five. Six seven eight", "One two. Three"),
        ("One two. Three four five six seven eight", "One two."),
        ("One two three four five six seven eight", "One two three four"),
        ("一二三四五六七八九。一二三四五六七八九十十十十", "一二三四五六七八九。"),
        ("a" * 30, "a" * 20),
        ("a" * 20 + " b", "a" * 20),
    ],
    ids=["paragraph", "line", "sentence", "word", "sentence without space", "nothing", "exact"],
)
def test_the_best_border_is_taken(text: str, first: str) -> None:
    assert cut(text, 20)[0] == first


def test_a_code_block_goes_whole_to_the_next_piece_when_that_is_near() -> None:
    pieces = cut("Nine words\n\n```\nab\ncd\nef\n```", 18)

    assert pieces == ["Nine words", "ab\ncd\nef"]


def test_a_code_block_that_must_be_cut_is_cut_at_a_line_and_keeps_its_indentation() -> None:
    code = "for a in b:\n    if a:\n        c()\n    else:\n        d()"

    pieces = split(parse_marked(f"```python\n{code}\n```"), longest=25, measure=units)

    assert [piece.text for piece in pieces] == [
        "for a in b:\n    if a:",
        "        c()\n    else:",
        "        d()",
    ]
    assert all(piece.marks == (Mark(0, len(piece.text), "pre", "python"),) for piece in pieces)


def test_inline_code_and_links_are_not_cut_where_another_border_is() -> None:
    text = "See the page [one two three four](https://a.org) now and `five six seven` then"

    assert cut(text, 24) == ["See the page", "one two three four now", "and five six seven then"]


@pytest.mark.parametrize(
    "character",
    [
        FAMILY,
        "🇩🇪",
        "👍🏽",
        "e\u0301\u0323",
        "❤\ufe0f",
        "1\ufe0f\u20e3",
        "क्षि",
        "🏴\U000e0067\U000e007f",
    ],
)
@pytest.mark.parametrize("before", range(6))
def test_a_character_of_several_code_points_is_never_cut(character: str, before: int) -> None:
    text = "x" * before + character * 20

    pieces = cut(text, 24)

    assert "".join(pieces) == text
    for piece in pieces[1:]:
        assert piece.startswith(character)
