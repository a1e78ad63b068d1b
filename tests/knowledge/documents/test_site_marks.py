import pytest

from knowledge.documents.markup import markdown
from knowledge.documents.markup.markdown import remove_site_marks


@pytest.mark.parametrize(
    ("marked", "shown"),
    [
        (":::tip My tip\nText.\n:::", ["My tip", "Text."]),
        (":::note[My note]\nText.\n:::", ["My note", "Text."]),
        ("::::{grid} 2\n:::{card} Name\nText.\n:::\n::::", ["Name", "Text."]),
        ("::: package.module\n    options:\n      a: b\n\nText.", ["Text."]),
        ('=== "Python"\n\n    Text.', ["Python: Text."]),
        ('!!! note "Careful"\n\n    Text.', ["Careful: Text."]),
        ("??? warning\n\n    Text.", ["Warning: Text."]),
        ('=== "A"\n\n    ```\n    x\n    ```\n\n=== "B"', ["A:", "```\nx\n```", "B"]),
        ('??? tip "Why?"\n\n    Text.', ["Why? Text."]),
        ('!!! note "Empty"\n\n```\nx\n```', ["Empty", "```\nx\n```"]),
        ("[TOC]\n\nText[^1].\n\n[^1]: Note.", ["Text.", "Note."]),
        ("*[HTML]: Hyper Text", ["HTML: Hyper Text"]),
        ("{{< tabs >}}\nText.\n{% raw %}", ["Text."]),
        ("Press [here](x){ .md-button } :material-check: now { #a .b }", ["Press here now"]),
        ('```py hl_lines="2" title="a.py"\nx\n```', ['```py title="a.py"\nx\n```']),
    ],
)
def test_marks_of_site_generators_are_no_text(marked: str, shown: list[str]) -> None:
    assert [block.text for block in markdown.blocks_of(remove_site_marks(marked))] == shown


def test_marks_in_code_stay() -> None:
    text = "```\n:::tip\n[TOC]\n[^1]: x\n```\n\nUse `{ .a }` and `:material-x:` and `[^1]`."

    blocks = markdown.blocks_of(remove_site_marks(text))

    assert blocks[0].text == "```\n:::tip\n[TOC]\n[^1]: x\n```"
    assert blocks[1].text == "Use `{ .a }` and `:material-x:` and `[^1]`."


def test_the_title_of_a_note_is_no_part_of_its_first_sentence() -> None:
    warning = '!!! warning "Extensions"\n    The server needs one.\n'
    text = f"{warning}\n!!! danger\n    It cannot be undone.\n"

    page = markdown.read(text.encode(), "a.md")

    assert [block.text for block in page.blocks] == [
        "Extensions: The server needs one.",
        "Danger: It cannot be undone.",
    ]
