import sys
from pathlib import Path

import pytest

from knowledge.documents.errors import MissingExtraError
from knowledge.documents.markup import restructuredtext
from knowledge.documents.page import Block
from knowledge.documents.readers import find_reader


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


@pytest.mark.parametrize(
    "directive", [".. include:: {}", ".. raw:: html\n   :file: {}", ".. csv-table::\n   :file: {}"]
)
def test_no_other_file_is_ever_read(tmp_path: Path, directive: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("classified")

    assert "classified" not in str(blocks(f"Text.\n\n{directive.format(secret)}\n"))


def test_without_docutils_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docutils.core", None)
    monkeypatch.delitem(sys.modules, restructuredtext.__name__)
    find_reader.cache_clear()

    with pytest.raises(MissingExtraError, match=r"refdesk\[restructuredtext\]"):
        find_reader("markup.restructuredtext")


def test_directives_that_are_not_read_are_counted_with_their_reason() -> None:
    page = restructuredtext.read(
        b"A\n=\n\n.. include:: rates.rst\n\n.. note::\n\n   Text.\n\n"
        b"   .. raw:: html\n\n      <b>x</b>\n",
        "a.rst",
    )

    assert sorted((part.names, part.reason) for part in page.left_out) == [
        (("include rates.rst",), "other files are not included"),
        (("raw html",), "raw output is not read"),
    ]


def test_roles_that_strike_out_text_are_marked() -> None:
    text = ".. role:: old\n   :class: strike\n\nWas :old:`400`, :del:`410`, :other:`420`.\n"

    assert [block.text for block in blocks(text)] == ["Was ~~400~~, ~~410~~, `420`."]


def test_content_for_another_output_than_html_is_left_out() -> None:
    page = restructuredtext.read(
        b"A\n=\n\n.. only:: html and not (latex or draft)\n\n   Web.\n\n"
        b".. only:: latex\n\n   Paper.\n\n.. ifconfig:: draft\n\n   Draft.\n",
        "a.rst",
    )

    assert page.content == "# A\n\nWeb."
    assert [part.names for part in page.left_out] == [("only latex", "ifconfig draft")]


def test_a_footnote_and_its_mark_keep_their_number() -> None:
    text = "Rooms: 16 [#]_, 20 [CIT]_.\n\n.. [#] With chairs.\n\n.. [CIT] A book.\n"

    assert [block.text for block in blocks(text)] == [
        "Rooms: 16 [1], 20 [CIT].",
        "[1] With chairs.",
        "[CIT] A book.",
    ]


def test_substitutions_classes_and_classifiers_are_read_as_sphinx_shows_them() -> None:
    text = (
        ".. |v| replace:: 3.12\n.. |br| raw:: html\n\n   <br>\n\n"
        ".. function:: f(x)\n\n   From |v| on, see :pep:`8`.\n\n"
        ".. class:: Decoder(*, strict=True)\n\n   It decodes.\n\nsize : int\n   In bytes.\n"
    )

    assert [block.text for block in blocks(text)] == [
        "f(x)", "From 3.12 on, see PEP 8.", "Decoder(*, strict=True)", "It decodes.",
        "size : int: In bytes.",
    ]  # fmt: skip


def test_formulas_are_shown_as_written_and_settings_with_their_values() -> None:
    text = r"An area :math:`x_1 * y \\ z`." + "\n\n.. confval:: size\n   :default: 5\n\n   Text.\n"

    assert [block.text for block in blocks(text)] == [
        r"An area `x_1 * y \\ z`.", "size, default: 5", "Text.",
    ]  # fmt: skip
