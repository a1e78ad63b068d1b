import pytest

from citations.blocks import BlockForm, read_blocks, remove_blocks, remove_cells

ANSWER = """\
# Rules

These are the steps:

1. Open it.
2. Save it:

   ```sh
   save --all
   ```

   - Now.

## Table

| Field | Meaning |
|---|---|
| `a` | one \\| two |
| `b` | three |

> Quoted.
"""


def test_blocks_know_their_lines_their_place_and_what_hangs_under_them() -> None:
    blocks = read_blocks(ANSWER)

    assert [(block.kind.value, block.start, block.last, block.parent) for block in blocks] == [
        ("heading", 0, 1, None),
        ("paragraph", 2, 3, None),
        ("item", 4, 5, None),
        ("item", 5, 12, None),
        ("code", 7, 10, 3),
        ("item", 11, 12, 3),
        ("heading", 13, 14, None),
        ("header", 15, 17, None),
        ("row", 17, 18, None),
        ("row", 18, 19, None),
        ("paragraph", 20, 21, None),
    ]
    assert blocks[8].cells == ("`a`", "one | two")


@pytest.mark.parametrize(
    ("text", "index", "left"),
    [
        ("One.\n\nTwo.\n\nThree.", 1, "One.\n\nThree."),
        ("1. One.\n2. Two.\n3. Three.", 1, "1. One.\n3. Three."),
        ("- One.\n- Two.\n\nText.", 1, "- One.\n\nText."),
        ("9. Nine.\n10. Ten.\n    - x\n11. Eleven.", 0, "10. Ten.\n    - x\n11. Eleven."),
        ("- One.\n  - Two.\n- Three.", 0, "- Three."),
        ("- **One**\n  - Two.\n- Three.", 1, "- Three."),
        ("The steps:\n\n- One.\n\nEnd.", 1, "End."),
        ("## One\n\nText.\n\n## Two\n\nMore.", 1, "## Two\n\nMore."),
        ("# One\n\n## Two\n\nText.\n\n## Three\n\nMore.", 2, "# One\n\n## Three\n\nMore."),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |", 1, "| a | b |\n|---|---|\n| 3 | 4 |"),
        ("Text.\n\n| a | b |\n|---|---|\n| 1 | 2 |", 2, "Text."),
        ("Do:\n\n```\nx\n```\n\nEnd.", 1, "End."),
        ("1. One.\n1. Two.\n1. Three.", 2, "1. One.\n1. Two."),
    ],
)
def test_a_removed_block_takes_only_its_own_introduction_with_it(
    text: str, index: int, left: str
) -> None:
    assert remove_blocks(text, {index}) == left


def test_a_text_without_removals_is_unchanged() -> None:
    assert remove_blocks(ANSWER, ()) == ANSWER


def test_of_a_row_one_cell_goes() -> None:
    rows = [block for block in read_blocks(ANSWER) if block.kind is BlockForm.ROW]

    left = remove_cells(ANSWER, [(rows[0], 1), (rows[1], 0)])

    assert "| `a` | … |\n| … | three |" in left
