import sys
from pathlib import Path

import pytest

from knowledge.documents.errors import MissingExtraError
from knowledge.documents.markup import restructuredtext
from knowledge.documents.page import Block


def blocks(text: str) -> tuple[Block, ...]:
    return restructuredtext.read(text.encode(), "a.rst").blocks


def test_sections_become_headings_with_levels_and_anchors() -> None:
    page = restructuredtext.read(b"Guide\n=====\n\nLead.\n\nSet up\n------\n\nMore.\n", "a.rst")

    assert page.title == "Guide"
    assert [(block.text, block.level) for block in page.blocks] == [
        ("Guide", 1),
        ("Lead.", 0),
        ("Set up", 2),
        ("More.", 0),
    ]
    assert [block.anchor for block in page.blocks if block.level] == ["guide", "set-up"]


def test_lists_code_tables_and_notes_are_read() -> None:
    found = blocks(
        "- one\n- two\n\n.. code-block:: python\n\n   x = 1\n\n"
        "=== ===\nk   v\n=== ===\n1   2\n=== ===\n\n.. note:: Mind the *gap*.\n"
    )

    assert [block.text for block in found] == [
        "- one",
        "- two",
        "```python\nx = 1\n```",
        "| k | v |\n|---|---|\n| 1 | 2 |",
        "Note: Mind the gap.",
    ]


def test_figures_merged_cells_and_terms_are_read() -> None:
    page = (
        ".. figure:: a.png\n   :alt: the alt\n\n   The *caption*.\n\n"
        "+---+---+\n| a | b |\n+===+===+\n| c | d |\n+   +---+\n|   | e |\n+---+---+\n\n"
        "E41\n   No signal.\n\n.. image:: b.png\n   :alt: A gauge\n"
    )

    found = blocks(page)

    pictures = [(one.caption, one.address) for block in found for one in block.pictures]
    assert pictures == [("The caption.", "a.png"), ("A gauge", "b.png")]
    assert [block.text for block in found if block.text] == [
        "The caption.",
        "| a | b |\n|---|---|\n| c | d |\n| c | e |",
        "E41: No signal.",
    ]


def test_roles_and_directives_nobody_knows_are_read_as_their_text() -> None:
    found = blocks(
        "See :ref:`the guide <guide>` and :py:func:`~send`.\n\n"
        ".. versionadded:: 2.0\n   :hidden:\n\n   It sends *faster*.\n\n"
        ".. toctree::\n\n   a\n   b\n"
    )

    assert [block.text for block in found] == [
        "See the guide and `send`.",
        "versionadded 2.0",
        "It sends faster.",
    ]


@pytest.mark.parametrize(
    "directive", [".. include:: {}", ".. raw:: html\n   :file: {}", ".. csv-table::\n   :file: {}"]
)
def test_no_other_file_is_ever_read(tmp_path: Path, directive: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("classified")

    assert "classified" not in str(blocks(f"Text.\n\n{directive.format(secret)}\n"))


def test_without_docutils_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docutils.core", None)

    with pytest.raises(MissingExtraError, match=r"refdesk\[restructuredtext\]"):
        blocks("Text.")
