import io
import zipfile
from pathlib import Path

import pytest

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.office import opendocument, xls
from knowledge.documents.page import Page

FILES = Path(__file__).parent / "files"
"""Written by LibreOffice 7.4."""
NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "style", "text", "table", "draw", "presentation")
)
PRICES = (
    "## Prices\n\nPrice list 2026\n\n"
    "| Plan | Price | Discount | From |\n|---|---|---|---|\n"
    "| Basic | 4.5 | 12.5% | 2026-03-01 |\n| Premium | 19 | 5.0% | 2026-04-15 |"
)


def read(body: str, styles: str = "") -> Page:
    content = (
        f"<office:document-content {NAMES}><office:automatic-styles>{styles}"
        f"</office:automatic-styles><office:body>{body}</office:body></office:document-content>"
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("content.xml", content)
    return opendocument.read(packed.getvalue(), "a.odt")


def test_a_text_of_libreoffice_keeps_headings_lists_tables_and_links() -> None:
    page = opendocument.read((FILES / "manual.odt").read_bytes(), "manual.odt")

    assert page.title == "Operations manual"
    assert [(block.level, block.text) for block in page.blocks if block.level] == [
        (1, "Operations manual"), (2, "Maintenance"), (3, "Spare parts"), (2, "Limits"),
    ]  # fmt: skip
    texts = [block.text for block in page.blocks]
    assert texts[4:7] == [
        "1. Close valve V-7", "  - Check the gauge reads zero", "2. Open the drain",
    ]  # fmt: skip
    assert "| Impeller | IM-2204 | 310.00 EUR |" in page.content
    assert "| A 100 | max | 9.9 bar |" in page.content
    assert page.links == (("the grease list", "https://x.example/grease"),)


def test_numbers_go_on_in_the_list_that_continues_and_look_as_their_format_says() -> None:
    styles = (
        '<text:list-style style:name="N"><text:list-level-style-number text:level="1" '
        'style:num-format="1" style:num-suffix="."/></text:list-style>'
        '<text:list-style style:name="L"><text:list-level-style-number text:level="2" '
        'style:num-prefix="(" style:num-suffix=")" style:num-format="a"/></text:list-style>'
    )
    one = "<text:list-item><text:p>{}</text:p></text:list-item>".format

    page = read(
        f'<office:text><text:list xml:id="x" text:style-name="N">{one("Open")}{one("Wait")}'
        f'</text:list><text:list text:style-name="L"><text:list-item><text:list>{one("Read")}'
        "</text:list></text:list-item></text:list>"
        f'<text:list text:continue-list="x" text:style-name="N">{one("Press")}</text:list>'
        '<text:list text:style-name="N"><text:list-item text:start-value="7"><text:p>Close'
        "</text:p></text:list-item></text:list></office:text>",
        styles,
    )

    assert [block.text for block in page.blocks] == [
        "1. Open", "2. Wait", "  (a) Read", "3. Press", "7. Close",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["prices.ods", "prices.xls"])
def test_a_sheet_of_libreoffice_is_read_as_it_is_shown_without_its_hidden_sheet(name: str) -> None:
    reader = xls if name.endswith("xls") else opendocument

    page = reader.read((FILES / name).read_bytes(), name)

    assert page.content == PRICES
    assert [block.anchor for block in page.blocks] == [
        "sheet=Prices", "sheet=Prices&row=1", "sheet=Prices&row=3-4",
    ]  # fmt: skip
    assert [(part.what, part.names) for part in page.left_out] == [("hidden sheet", ("Secret",))]


def test_tracked_deletions_comments_and_hidden_text_are_no_text() -> None:
    page = read(
        "<office:text><text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        "<text:p>Seen<office:annotation><text:p>comment</text:p></office:annotation>"
        '<text:span text:style-name="h">hidden</text:span> text.<text:note><text:note-citation>1'
        "</text:note-citation><text:note-body><text:p>A note.</text:p></text:note-body>"
        "</text:note></text:p></office:text>",
        '<style:style style:name="h"><style:text-properties text:display="none"/></style:style>',
    )

    assert [block.text for block in page.blocks] == ["Seen text.", "A note."]


def test_a_slide_is_a_section_by_its_title_and_a_hidden_one_is_left_out() -> None:
    page = read(
        "<office:presentation><draw:page><draw:frame presentation:class='title'><draw:text-box>"
        "<text:p>Goals</text:p></draw:text-box></draw:frame><draw:frame><draw:text-box>"
        "<text:p>Grow.</text:p></draw:text-box></draw:frame><presentation:notes><draw:frame>"
        "<draw:text-box><text:p>Say why.</text:p></draw:text-box></draw:frame>"
        "</presentation:notes></draw:page><draw:page draw:style-name='no'><draw:frame>"
        "<draw:text-box><text:p>Secret.</text:p></draw:text-box></draw:frame></draw:page>"
        "</office:presentation>",
        "<style:style style:name='no'><style:drawing-page-properties "
        "presentation:visibility='hidden'/></style:style>",
    )

    assert page.content == "## Goals\n\nGrow.\n\nSay why."
    assert page.blocks[0].anchor == "slide=1"
    assert [(part.what, part.names) for part in page.left_out] == [("hidden slide", ("2",))]


def test_merged_cells_and_hidden_rows_of_a_sheet() -> None:
    page = read(
        "<office:spreadsheet><table:table table:name='S'>"
        "<table:table-row><table:table-cell><text:p>Model</text:p></table:table-cell>"
        "<table:table-cell><text:p>Limit</text:p></table:table-cell></table:table-row>"
        "<table:table-row><table:table-cell table:number-rows-spanned='2'><text:p>A</text:p>"
        "</table:table-cell><table:table-cell><text:p>1</text:p></table:table-cell>"
        "</table:table-row><table:table-row><table:covered-table-cell/><table:table-cell>"
        "<text:p>2</text:p></table:table-cell></table:table-row>"
        "<table:table-row table:visibility='collapse'><table:table-cell><text:p>3</text:p>"
        "</table:table-cell></table:table-row>"
        "<table:table-row table:number-rows-repeated='1048570'><table:table-cell/>"
        "</table:table-row></table:table></office:spreadsheet>"
    )

    assert page.content == "## S\n\n| Model | Limit |\n|---|---|\n| A | 1 |\n| A | 2 |"
    assert [(part.what, part.count) for part in page.left_out] == [("hidden row", 1)]


@pytest.mark.parametrize("data", [b"", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 2000, b"text"])
def test_a_damaged_old_workbook_is_reported(data: bytes) -> None:
    with pytest.raises(WrongFormatError, match="damaged or locked"):
        xls.read(data, "a.xls")
