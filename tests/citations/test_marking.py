import pytest

from citations.marking import (
    LiteralBrackets,
    LiteralWords,
    escape_brackets,
    keep_known_marks,
    map_marks,
    read_marks,
    shown_text,
    write_plainly,
)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("x [1]", "x [1]"),
        ("x [1, 2]", "x [1][2]"),
        ("x [1][2].", "x [1][2]."),
        ("x [1-3]", "x [1][2][3]"),
        ("x【2】。", "x [2]。"),
        ("x【2†page.md】", "x [2]"),
        ("x [^4]", "x [4]"),
        ("x (Source 1)", "x [1]"),
        ("x (Sources 1 and 2).", "x [1][2]."),
        ("x [Quelle 3]", "x [3]"),
        ("x [1](https://evil.example/)", "x [1]"),
        ("x `a[1]` and ``b`[2]``", "x `a[1]` and ``b`[2]``"),
        ("```\na[1]\n```", "```\na[1]\n```"),
        ("- x [1]\n  - y [2]", "- x [1]\n  - y [2]"),
        ("| a | b |\n[3]", "| a | b |\n\n[3]"),
        ("(see 2024) and (source code)", "(see 2024) and (source code)"),
    ],
)
def test_marks_of_every_style_become_one(written: str, plain: str) -> None:
    assert write_plainly(written) == plain


def test_only_marks_are_numbered_again() -> None:
    text = "1. a[1] [2]\n   ```\n   [2]\n   ```\n   [2]\n\n\\[2\\] `[2]` [2] [x][2]"

    assert map_marks(text, {1: 3, 2: 7}.get) == (
        "1. a [3][7]\n   ```\n   [2]\n   ```\n   [7]\n\n\\[2\\] `[2]` [7] [x] [7]"
    )


def test_punctuation_next_to_a_removed_mark_is_removed_too() -> None:
    assert read_marks(keep_known_marks("so [[7]7]", {1})) == ()


def test_brackets_of_a_document_between_the_same_words_are_text() -> None:
    literal = LiteralBrackets(["It ends within [14] days.", "See [1] [2] [9] above."])

    written = write_plainly("It ends within [14] days. [2] See [1] [2] [9] above [1].", literal)

    assert written == r"It ends within \[14\] days. [2] See \[1\] \[2\] \[9\] above [1]."
    assert read_marks(written) == (2, 1)
    assert shown_text(written) == "It ends within [14] days. [2] See [1] [2] [9] above [1]."


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("It is 2*3*4. [1]", r"It is 2\*3\*4. [1]"),
        (
            "Is it (2*3*4)? Or **2*3*4**[1], not 2*3*5?",
            r"Is it (2\*3\*4)? Or **2\*3\*4**[1], not 2*3*5?",
        ),
        (r"Open \\server\share, `2*3*4`.", r"Open \\\server\share, `2*3*4`."),
        ("*Enter* <serial> and *name*.", r"*Enter* \<serial> and *name*."),
        ("- > 3 kW at ~~400 euros~~ 350", r"- \> 3 kW at ~~400 euros~~ 350"),
        ("> 4 kg\n> so", "> 4 kg\n> so"),
    ],
)
def test_words_of_a_document_with_signs_of_markdown_are_literal(written: str, kept: str) -> None:
    source = r"Use 2*3*4 in \\server\share; name is <serial>; a > 3 kW drive, ~~400 euros~~ 350."

    escaped = LiteralWords([source]).escape(written)

    assert escaped == kept
    assert LiteralWords([source]).escape(escaped) == kept


def test_documents_are_escaped_in_prose_alone() -> None:
    text = "within [14] days, `x[1]`, \\cite{a}\n\n```\nb[2]\n```"

    assert escape_brackets(text) == "within \\[14\\] days, `x[1]`, \\\\cite{a}\n\n```\nb[2]\n```"
    assert read_marks(escape_brackets(text)) == ()
