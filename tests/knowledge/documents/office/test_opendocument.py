import io
import re
import struct
import zipfile
from pathlib import Path

import olefile
import pytest
import xlrd
from xlrd.formula import FormulaError

from knowledge.documents.errors import SkippedError, WrongFormatError
from knowledge.documents.office import opendocument, xls
from knowledge.documents.page import Page

FILES = Path(__file__).parent / "files"
"""Written by LibreOffice 7.4."""
NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in (
        *((name, name) for name in ("office", "style", "text", "table", "presentation")),
        *(("draw", "drawing"), ("fo", "xsl-fo-compatible"), ("svg", "svg-compatible")),
    )
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
        '<style:style style:name="h" style:family="text">'
        '<style:text-properties text:display="none"/></style:style>',
    )

    assert [block.text for block in page.blocks] == ["Seen text.[1]", "[1] A note."]


def test_a_slide_is_a_section_by_its_title_and_a_hidden_one_is_left_out() -> None:
    page = read(
        "<office:presentation><draw:page><draw:frame presentation:class='title'><draw:text-box>"
        "<text:p>Goals</text:p></draw:text-box></draw:frame><draw:frame><draw:text-box>"
        "<text:p>Grow.</text:p></draw:text-box></draw:frame><presentation:notes><draw:frame>"
        "<draw:text-box><text:p>Say why.</text:p></draw:text-box></draw:frame>"
        "</presentation:notes></draw:page><draw:page draw:style-name='no'><draw:frame>"
        "<draw:text-box><text:p>Secret.</text:p></draw:text-box></draw:frame></draw:page>"
        "</office:presentation>",
        "<style:style style:name='no' style:family='drawing-page'><style:drawing-page-properties "
        "presentation:visibility='hidden'/></style:style>",
    )

    assert page.content == "## Goals\n\nGrow.\n\nNotes:\n\nSay why."
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


def test_each_repetition_of_a_row_fills_its_merged_cells() -> None:
    cell = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>".format
    merged = cell(" table:number-columns-spanned='2'", "closed")
    page = read(
        "<office:spreadsheet><table:table table:name='S'><table:table-row>"
        f"{cell('', 'Day')}{cell('', 'From')}{cell('', 'To')}</table:table-row>"
        f"<table:table-row table:number-rows-repeated='2'>{cell('', 'Sunday')}{merged}"
        "</table:table-row></table:table></office:spreadsheet>"
    )

    assert page.content.splitlines()[4:] == ["| Sunday | closed | closed |"] * 2


def test_the_first_row_of_a_filter_of_a_sheet_is_its_header() -> None:
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    rows = [("Created", "2026-05-01"), ("Month", "2026-01"), ("Rent", "700")]
    written = "".join(
        f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows
    )

    page = read(
        f'<office:spreadsheet><table:table table:name="Ann\'s">{written}</table:table>'
        "<table:database-ranges><table:database-range table:target-range-address="
        "\"'Ann''s'.A2:'Ann''s'.B3\"/></table:database-ranges></office:spreadsheet>"
    )

    assert page.blocks[-1].text == "| Month | 2026-01 |\n|---|---|\n| Rent | 700 |"


def test_an_old_workbook_shows_errors_and_marks_and_keeps_its_header_after_hidden_rows() -> None:
    page = xls.read((FILES / "states.xls").read_bytes(), "states.xls")

    assert page.blocks[1].text == (
        "| Part | Volume | Price | Share | Since |\n|---|---|---|---|---|\n"
        "| Valve | 10^6 m^3 | ~~400~~ 380 € | #DIV/0! | 2023-03-15 |\n"
        "| Seal | 7 l | 12.50 € |  | 2023-03-16 |"
    )
    assert {part.what for part in page.left_out} == {"hidden row", "value"}


@pytest.mark.parametrize(
    "data", [b"\n<table><tr><td>7<td>0,50</table>", b"7\t0,50\n", "7\t0,50\n".encode("utf-16")]
)
def test_tables_of_other_formats_that_are_named_as_workbooks_are_read(data: bytes) -> None:
    assert xls.read(data, "a.xls").content.endswith("| 7 | 0,50 |")


@pytest.mark.parametrize("data", [b"", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 2000, b"text"])
def test_a_damaged_old_workbook_is_reported(data: bytes) -> None:
    with pytest.raises(WrongFormatError, match="found a damaged one"):
        xls.read(data, "a.xls")


def read_parts(body: str, styles: str = "", **parts: str) -> Page:
    """Read a file with the common styles `styles` and further parts, such as `Object 1`."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in (("content.xml", body), ("styles.xml", styles), *parts.items()):
            held = f"<office:body>{text}</office:body>" if "content" in name else text
            archive.writestr(name, f"<office:document {NAMES}>{held}</office:document>")
    return opendocument.read(packed.getvalue(), "a.odt")


STYLES = (
    "<office:styles>"
    '<style:style style:name="Old" style:family="paragraph">'
    '<style:text-properties style:text-line-through-style="solid"/></style:style>'
    '<style:style style:name="Kept" style:family="paragraph" style:parent-style-name="Old"/>'
    '<style:style style:name="Gone" style:family="paragraph" style:parent-style-name="No"/>'
    '<style:style style:name="No" style:family="paragraph">'
    '<style:text-properties text:display="none"/></style:style>'
    '<style:style style:name="Out" style:family="table-cell">'
    '<style:text-properties style:text-line-through-style="solid"/></style:style>'
    '<text:outline-style><text:outline-level-style text:level="1" style:num-format="1"/>'
    '<text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/>'
    "</text:outline-style>"
    '<text:list-style style:name="L"><text:list-level-style-number text:level="1" '
    'style:num-format="1"/><text:list-level-style-number text:level="2" style:num-format="1" '
    'text:display-levels="2"/></text:list-style></office:styles>'
)


def test_text_hidden_or_struck_out_by_an_inherited_style_a_section_or_a_field() -> None:
    page = read_parts(
        '<office:text><text:p text:style-name="Kept">400 EUR</text:p>'
        '<text:p text:style-name="Gone">secret</text:p>'
        '<text:section text:display="none"><text:p>secret</text:p></text:section>'
        '<text:p><text:hidden-paragraph text:is-hidden="true"/>secret</text:p>'
        "<text:p>Valid</text:p></office:text>",
        STYLES,
    )

    assert page.content == "~~400 EUR~~\n\nValid"
    assert [(part.what, part.count) for part in page.left_out] == [("hidden passage", 3)]


def test_headings_and_items_are_numbered_as_chapters_and_clauses_are() -> None:
    clause = "<text:list-item><text:p>{}</text:p>{}</text:list-item>".format
    inner = f"<text:list>{clause('Fee', '')}{clause('Due date', '')}</text:list>"
    page = read_parts(
        '<office:text><text:h text:outline-level="1">Scope</text:h>'
        '<text:h text:outline-level="2">Parties</text:h>'
        f'<text:list text:style-name="L">{clause("Payment", inner)}<text:list-header>'
        "<text:p>Remark</text:p></text:list-header></text:list>"
        '<text:p>Between</text:p><text:list text:continue-numbering="true" text:style-name="L">'
        '<text:list-item><text:list text:continue-numbering="true">'
        f"{clause('Interest', '')}</text:list></text:list-item></text:list></office:text>",
        STYLES,
    )

    assert [block.text for block in page.blocks] == [
        "1 Scope", "1.1 Parties", "1 Payment", "  1.1 Fee", "  1.2 Due date", "   Remark",
        "Between", "  1.3 Interest",
    ]  # fmt: skip


def test_cells_keep_the_numbers_of_their_items_and_all_their_tables() -> None:
    def cell(content: str) -> str:
        return f"<table:table-cell>{content}</table:table-cell>"

    def row(*contents: str) -> str:
        return f"<table:table-row>{''.join(map(cell, contents))}</table:table-row>"

    number = '<text:list text:continue-numbering="true" text:style-name="L"><text:list-item>'
    number += "<text:p>{}</text:p></text:list-item></text:list>"
    table = f"<table:table>{row('<text:p>X</text:p>', '<text:p>5</text:p>')}</table:table>"
    rows = row(number.format(""), "<text:p>12</text:p>") + row(number.format("A"), 2 * table)

    page = read_parts(f"<office:text><table:table>{rows}</table:table></office:text>", STYLES)

    assert page.content.splitlines()[2:] == ["| 1 | 12 |", "| 2 A | X, 5 |", "| 2 A | X, 5 |"]


def test_empty_items_are_counted_and_a_list_below_an_item_without_text_goes_on() -> None:
    item = "<text:list-item>{}</text:list-item>".format
    one = item("<text:p>x</text:p>")
    deep = '<text:list text:style-name="L" text:continue-numbering="true">{}</text:list>'.format
    body = f'<text:list text:style-name="L">{one}{item("<text:p/>")}{one}</text:list>'
    body += 2 * deep(item(f"<text:list>{one}</text:list>"))

    page = read_parts(f"<office:text>{body}</office:text>", STYLES)

    assert [block.text for block in page.blocks] == ["1 x", "3 x", "  3.1 x", "  3.2 x"]


def test_letters_in_a_symbol_typeface_are_the_signs_that_people_see() -> None:
    page = read(
        '<office:text><text:p><text:span text:style-name="S">PO</text:span> a ~~4~~'
        "</text:p></office:text>",
        '<style:font-face style:name="W1" svg:font-family="\'Wingdings 2\'"/>'
        '<style:style style:name="S" style:family="text">'
        '<style:text-properties style:font-name="W1"/></style:style>',
    )

    assert page.content == r"✓✗ a \~\~4\~\~"


def test_a_raised_sign_in_preformatted_text_keeps_its_position() -> None:
    page = read(
        '<office:text><text:p text:style-name="Preformatted_20_Text">10<text:span '
        'text:style-name="up">6</text:span></text:p></office:text>',
        '<style:style style:name="up" style:family="text">'
        '<style:text-properties style:text-position="super 58%"/></style:style>',
    )

    assert page.content == "```\n10^6\n```"


def test_numbers_after_z_are_doubled_letters_if_the_list_says_so() -> None:
    level = (
        '<text:list-level-style-number text:level="1" style:num-format="a" '
        'style:num-letter-sync="true"/>'
    )
    last = '<text:list-item text:start-value="28"><text:p>x</text:p></text:list-item>'

    page = read(
        f'<office:text><text:list text:style-name="N">{last}</text:list></office:text>',
        f'<text:list-style style:name="N">{level}</text:list-style>',
    )

    assert page.content == "bb x"


def test_numbers_of_chinese_lists_are_chinese_and_unknown_formats_are_counted() -> None:
    levels = "".join(
        f'<text:list-style style:name="{name}"><text:list-level-style-number text:level="1" '
        f'style:num-format="{shown}"/></text:list-style>'
        for name, shown in (("Z", "一, 二, 三, ..."), ("K", "ก, ข, ฃ, ..."))
    )
    item = '<text:list-item text:start-value="12"><text:p>x</text:p></text:list-item>'
    lists = "".join(f'<text:list text:style-name="{name}">{item}</text:list>' for name in "ZK")

    page = read(f"<office:text>{lists}</office:text>", levels)

    assert [block.text for block in page.blocks] == ["十二 x", "12 x"]
    assert [(part.what, part.names) for part in page.left_out] == [
        ("list number", ("ก, ข, ฃ, ...",))
    ]


def test_scripts_and_variables_that_are_not_displayed_are_no_text() -> None:
    page = read(
        "<office:text><text:p>Total<text:script>beep()</text:script><text:variable-set "
        'text:display="none">12</text:variable-set> 40</text:p></office:text>'
    )

    assert page.content == "Total 40"
    assert [(part.what, part.count) for part in page.left_out] == [("hidden passage", 1)]


def test_a_sheet_keeps_struck_cells_values_without_text_and_what_is_drawn_on_it() -> None:
    page = read_parts(
        '<office:spreadsheet><table:table table:name="S">'
        '<table:table-column table:default-cell-style-name="Out"/><table:table-column/>'
        "<table:table-row><table:table-cell><text:p>Old</text:p></table:table-cell>"
        "<table:table-cell><text:p>New</text:p></table:table-cell></table:table-row>"
        "<table:table-row table:visibility='collapse'><table:table-cell><text:p>x</text:p>"
        "</table:table-cell></table:table-row>"
        "<table:table-row><table:table-cell><text:p>400</text:p></table:table-cell>"
        "<table:table-cell office:value-type='float' office:value='450'/></table:table-row>"
        "<table:table-row><table:table-cell><text:p>500</text:p></table:table-cell>"
        "<table:table-cell table:formula='of:=A1'/></table:table-row>"
        "<table:shapes><draw:custom-shape><text:p>Net prices</text:p></draw:custom-shape>"
        "<draw:frame><draw:object xlink:href='./Object 1' "
        "xmlns:xlink='http://www.w3.org/1999/xlink'/></draw:frame></table:shapes>"
        "</table:table></office:spreadsheet>",
        STYLES,
        **{
            "Object 1/content.xml": "<office:text><text:p>Terms of delivery</text:p></office:text>",
            "Basic/Standard/Module1.xml": "<office:body/>",
        },
    )

    assert page.content == (
        "## S\n\n| ~~Old~~ | New |\n|---|---|\n| ~~400~~ | 450 |\n| ~~500~~ |  |\n\nNet prices\n\n"
        "Terms of delivery"
    )
    assert {part.what for part in page.left_out} == {"hidden row", "formula", "macro"}


def test_page_headers_tables_in_cells_form_fields_and_text_beside_drawings() -> None:
    page = read_parts(
        "<office:text><office:forms><form:form xmlns:form='f'><form:text form:id='c1' "
        "form:current-value='Boston'/><form:checkbox form:id='c2' form:label='Paid' "
        "form:current-state='checked'/></form:form></office:forms>"
        "<text:p>City <draw:control draw:control='c1'/>, <draw:control draw:control='c2'/></text:p>"
        "<text:p>Total 40<draw:custom-shape><text:p>Draft</text:p></draw:custom-shape> EUR</text:p>"
        "<table:table><table:table-row><table:table-cell><text:p>Site</text:p>"
        "</table:table-cell><table:table-cell><text:p>Room</text:p></table:table-cell>"
        "</table:table-row><table:table-row><table:table-cell><text:p>North</text:p>"
        "</table:table-cell><table:table-cell><table:table><table:table-row><table:table-cell>"
        "<text:p>A</text:p></table:table-cell><table:table-cell><text:p>10</text:p>"
        "</table:table-cell></table:table-row><table:table-row><table:table-cell><text:p>B</text:p>"
        "</table:table-cell><table:table-cell><text:p>20</text:p></table:table-cell>"
        "</table:table-row></table:table></table:table-cell></table:table-row></table:table>"
        "</office:text>",
        "<office:master-styles><style:master-page><style:header><text:p>Doc 4711 Rev. B</text:p>"
        "</style:header><style:footer style:display='false'><text:p>off</text:p></style:footer>"
        "<style:footer><text:p>7</text:p></style:footer></style:master-page></office:master-styles>",
    )

    assert page.content == (
        "Doc 4711 Rev. B\n\nCity Boston, \u2612 Paid\n\nTotal 40 EUR\n\nDraft\n\n"
        "| Site | Room |\n|---|---|\n| North | A, 10 |\n| North | B, 20 |"
    )


def test_comments_and_page_numbers_of_a_slide_are_no_text() -> None:
    page = read(
        "<office:presentation><draw:page><draw:custom-shape><text:p>Grow 5%</text:p>"
        "</draw:custom-shape><office:annotation><text:p>why?</text:p></office:annotation>"
        "<presentation:notes><draw:frame presentation:class='notes'><draw:text-box>"
        "<text:p>2024</text:p></draw:text-box></draw:frame><draw:frame "
        "presentation:class='page-number'><draw:text-box><text:p>1</text:p></draw:text-box>"
        "</draw:frame></presentation:notes></draw:page></office:presentation>"
    )

    assert page.content == "## Slide 1\n\nGrow 5%\n\nNotes:\n\n2024"
    assert [part.what for part in page.left_out] == ["comment"]


def test_a_flat_file_holds_its_title_headers_pictures_and_objects() -> None:
    sheet = "<table:table table:name='S'><table:table-row><table:table-cell><text:p>5</text:p>"
    data = (
        f"\ufeff<?xml version='1.0'?><office:document {NAMES} xmlns:dc='d'><office:meta>"
        "<dc:subject>Terms</dc:subject></office:meta><office:master-styles><style:master-page><style:header>"
        "<text:p>Rev. B</text:p></style:header></style:master-page></office:master-styles>"
        "<office:body><office:text><text:p>Figure<draw:frame><draw:image><office:binary-data>"
        "iVBORw0K Ggo=</office:binary-data></draw:image></draw:frame><draw:frame><draw:object>"
        "<office:document>"
        f"<office:body><office:spreadsheet>{sheet}</table:table-cell></table:table-row>"
        "</table:table></office:spreadsheet></office:body></office:document><text:p/></draw:object>"
        "</draw:frame></text:p></office:text></office:body></office:document>"
    ).encode()

    page = opendocument.read(data, "a.fodt")

    assert page.description == "Terms"
    assert [block.text for block in page.blocks] == ["Rev. B", "Figure", "", "S", "5"]
    assert [picture.data for block in page.blocks for picture in block.pictures] == ["iVBORw0KGgo="]


@pytest.mark.parametrize("group", ["{}", "<draw:g>{}</draw:g>"])
def test_boxes_of_a_slide_that_form_a_grid_are_read_row_by_row(group: str) -> None:
    frames = "".join(
        f'<draw:frame svg:x="{x}cm" svg:y="{y}cm" svg:width="3cm" svg:height="1cm"><draw:text-box>'
        f"<text:p>{text}</text:p></draw:text-box></draw:frame>"
        for text, x, y in (("222", 9, 5.5), ("111", 9, 2), ("Fire", 1.5, 5.5), ("Desk", 1.5, 2))
    )

    page = read(
        f"<office:presentation><draw:page xmlns:svg='s'>{group.format(frames)}</draw:page>"
        "</office:presentation>"
    )

    assert [block.text for block in page.blocks[1:]] == ["Desk", "111", "Fire", "222"]


CHART_ROW = (
    "<table:table-row><table:table-cell><text:p>North</text:p></table:table-cell>"
    "<table:table-cell><text:p>{}</text:p></table:table-cell></table:table-row>"
)


@pytest.mark.parametrize(
    ("table", "shown", "left_out"),
    [
        (f"<table:table>{CHART_ROW.format(7)}</table:table>", "| North | 7 |", 0),
        (f"<table:table>{CHART_ROW.format('NaN')}</table:table>", "North", 1),
        ("<table:table/>", "Pumps", 1),
        ("", "Pumps", 1),
    ],
)
def test_a_chart_without_values_is_counted(table: str, shown: str, left_out: int) -> None:
    chart = (
        f"<office:chart><chart:chart xmlns:chart='c'><chart:title><text:p>Pumps</text:p>"
        f"</chart:title>{table}</chart:chart></office:chart>"
    )
    page = read_parts(
        "<office:text><text:p><draw:frame><draw:object xmlns:xlink='x' xlink:href='./Object 1'/>"
        "</draw:frame></text:p></office:text>",
        **{"Object 1/content.xml": chart},
    )

    assert page.content.startswith("Pumps")
    assert page.content.endswith(shown)
    assert [str(part) for part in page.left_out] == [
        "1 chart left out (Pumps): the file stores no values"
    ] * left_out


def test_a_locked_file_is_skipped_with_the_reason() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("META-INF/manifest.xml", "<manifest:encryption-data/>")
        archive.writestr("content.xml", b"\x80\x81")

    with pytest.raises(SkippedError, match="protected by a password"):
        opendocument.read(packed.getvalue(), "a.odt")


FONT = re.compile(rb"(\x31\x00[\x10-\x30]\x00..[\x00-\x0f]\x00)(?:\xff\x7f|\x08\x00)", re.DOTALL)
"""A font of an old workbook in black; its colour follows."""
COLOURS = (
    '<style:style style:name="W" style:family="text"><style:text-properties fo:color="#FFFFFF"/>'
    '</style:style><style:style style:name="dark" style:family="paragraph">'
    '<style:paragraph-properties fo:background-color="#000080"/></style:style>'
    '<style:style style:name="C" style:family="table-cell"><style:text-properties '
    'fo:color="#ffffff"/></style:style><style:style style:name="D" style:family="table-cell" '
    'style:parent-style-name="C"><style:table-cell-properties fo:background-color="#000080"/>'
    '</style:style><style:style style:name="S" style:family="table-cell">'
    '<style:text-properties style:text-line-through-style="solid"/></style:style>'
    '<style:style style:name="blue" style:family="drawing-page"><style:drawing-page-properties '
    'draw:fill="solid" draw:fill-color="#000080"/></style:style>'
)
FILLS = "".join(
    f'<style:style style:name="{name}" style:family="graphic"><style:graphic-properties '
    f'draw:fill="{kind}" draw:fill-color="{colour}"/></style:style>'
    for name, kind, colour in (
        ("none", "none", ""),
        ("navy", "solid", "#000080"),
        ("paper", "solid", "#ffffff"),
        ("fade", "gradient", "#000080"),
    )
)


def white(text: str) -> str:
    return f'<text:p>Fee <text:span text:style-name="W">{text}</text:span></text:p>'


def test_white_text_is_hidden_where_nothing_but_the_page_can_be_behind_it() -> None:
    dark = white("5").replace("<text:p>", '<text:p text:style-name="dark">')
    table = (
        "<table:table><table:table-row><table:table-cell>"
        f"{white('6')}</table:table-cell></table:table-row></table:table>"
    )
    body = f"<office:text>{white('4')}{dark}{table}{{}}</office:text>"

    page = read(body.format(""), COLOURS)
    drawn = read(body.format("<text:p><draw:frame/></text:p>"), COLOURS)

    assert page.content.split() == ["Fee", "Fee", "5", "Fee", "6"]
    assert [(part.what, part.count) for part in page.left_out] == [("hidden passage", 1)]
    assert drawn.content.split() == ["Fee", "4", "Fee", "5", "Fee", "6"]


@pytest.mark.parametrize(
    ("fill", "shown"), [("paper", "Fee"), ("navy", "Fee 4"), ("fade", "Fee 4")]
)
def test_white_text_in_a_white_box_is_hidden(fill: str, shown: str) -> None:
    box = f'<draw:frame draw:style-name="{fill}"><draw:text-box>{white("4")}</draw:text-box>'
    shapes = f"<table:shapes>{box}</draw:frame></table:shapes>"

    page = read(f"<office:text><text:p>{box}</draw:frame></text:p></office:text>", COLOURS + FILLS)
    sheet = read(
        f"<office:spreadsheet><table:table>{shapes}</table:table></office:spreadsheet>",
        COLOURS + FILLS,
    )

    assert page.content == sheet.blocks[-1].text == shown


@pytest.mark.parametrize("page_style", ["", "blue"])
def test_white_text_of_a_slide_is_hidden_on_white(page_style: str) -> None:
    def box(style: str, left: int, text: str) -> str:
        place = f'svg:x="{left}cm" svg:y="1cm" svg:width="2cm" svg:height="2cm"'
        frame = f'<draw:frame draw:style-name="{style}" {place}><draw:text-box>'
        return f"{frame}{white(text)}</draw:text-box></draw:frame>"

    boxes = (box("none", 0, "4"), box("navy", 3, "5"), box("none", 4, "6"), box("other", 9, "7"))
    page = read(
        f'<office:presentation><draw:page draw:style-name="{page_style}">{"".join(boxes)}'
        "</draw:page></office:presentation>",
        COLOURS + FILLS,
    )

    shown = ["Fee 4" if page_style else "Fee", "Fee 5", "Fee 6", "Fee 7"]
    assert [block.text for block in page.blocks[1:]] == shown


@pytest.mark.parametrize("has_conditions", [False, True])
def test_white_values_of_a_sheet_are_hidden_unless_a_condition_may_change_it(
    *, has_conditions: bool
) -> None:
    value = '<table:table-cell table:style-name="{}" office:value-type="float" office:value="{}"'
    cells = "".join(
        f"{value.format(style, number)}>{text}</table:table-cell>"
        for style, number, text in (
            ("D", 1, "<text:p>1</text:p>"),
            ("C", 2, "<text:p>2</text:p>"),
            ("C", 3, ""),
        )
    )
    rule = (
        "<table:conditional-formats><table:conditional-format "
        'table:target-range-address="P.A1:P.B1"><table:condition '
        'table:apply-style-name="S"/></table:conditional-format>'
        "</table:conditional-formats>"
    )
    page = read(
        f'<office:spreadsheet><table:table table:name="P"><table:table-row>{cells}'
        f"</table:table-row>{rule if has_conditions else ''}</table:table></office:spreadsheet>",
        COLOURS,
    )

    assert page.blocks[1].text.split("\n")[-1] == ("| 1 | 2 | 3 |" if has_conditions else "1")
    what = [(part.what, part.names) for part in page.left_out]
    assert (("conditional format", ("P.A1:P.B1",)) in what) == has_conditions


def test_white_values_of_an_old_workbook_are_hidden() -> None:
    white = FONT.sub(rb"\g<1>\t\0", (FILES / "prices.xls").read_bytes())

    page = xls.read(white, "a.xls")

    assert "Premium" not in page.content
    assert ("value", "text in the colour of its background cannot be seen") in [
        (part.what, part.reason) for part in page.left_out
    ]


def record(kind: int, data: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


STRUCK = 9
"""The number of the font of `states.xls` that is struck out."""


def box(kind: int, *texts: str) -> bytes:
    """Return an object of a kind with a text, struck out from its fourth character on."""
    length = sum(map(len, texts))
    runs = struct.pack("<HHIHHI", 3, STRUCK, 0, length, 0, 0)
    return b"".join(
        (
            record(0x5D, struct.pack("<HHHHH12x", 0x15, 18, kind, 1, 0)),
            record(0x1B6, struct.pack("<10xHHI", length, len(runs), 0)),
            *(record(0x3C, b"\x01" + text.encode("utf-16-le")) for text in texts),
            record(0x3C, runs),
        )
    )


def read_stream() -> bytes:
    with olefile.OleFileIO(FILES / "states.xls") as file:
        stream: bytes = file.openstream("Workbook").read()
    return stream.rstrip(b"\0").removesuffix(b"\n")


def test_a_name_and_a_note_that_cannot_be_evaluated_cost_no_cell() -> None:
    formula = b"\x2d" + bytes(8)
    name = record(0x18, struct.pack("<HBBHHH4x", 0, 0, 1, len(formula), 0, 0) + b"\0n" + formula)
    note = record(0x1C, struct.pack("<HHHHHB", 1, 0, 0, 1, 1, 0) + b"author")
    stream = read_stream()
    # The name of the last user makes room, because the workbook states the places of its sheets.
    user = stream.index(record(0x5C, bytes(112))[:4])
    name += record(0x1FFF, bytes(112 - len(name)))
    stream = stream[:user] + name + stream[user + len(name) :]

    with pytest.raises(FormulaError):
        xlrd.open_workbook(file_contents=stream + record(0xA))
    page = xls.read(stream + note + record(0xA), "a.xls")

    assert page.blocks == xls.read((FILES / "states.xls").read_bytes(), "a.xls").blocks


def test_a_note_behind_the_last_row_of_an_old_workbook_is_read() -> None:
    note = record(0x1C, struct.pack("<HHHHHB", 99, 9, 0, 1, 1, 0) + b"a")

    page = xls.read(read_stream() + box(0x19, "Closed") + note + record(0xA), "a.xls")

    assert page.blocks[-1].text == "[Note: Closed]"


def test_a_workbook_that_states_more_strings_than_it_has_is_read() -> None:
    stream = read_stream()
    count = stream.index(record(0xFC, bytes(9))[:2]) + 8
    more = stream[:count] + struct.pack("<I", 900) + stream[count + 4 :]

    page = xls.read(more + record(0xA), "a.xls")

    assert page.blocks == xls.read((FILES / "states.xls").read_bytes(), "a.xls").blocks


def test_of_a_workbook_of_excel_4_only_the_cells_are_read_which_is_reported() -> None:
    font = record(0x231, struct.pack("<HHHHHBBBBB", 200, 0, 0x7FFF, 400, 0, 0, 0, 0, 0, 0))
    cell = record(0x204, struct.pack("<HHHH", 0, 0, 0, 3) + b"Fee")
    parts = record(0x14, b"\x0aConditions") + cell + record(0x5D, bytes(80)) + record(0x15)
    begin = record(0x409, struct.pack("<HHH", 0, 0x10, 0))

    page = xls.read(begin + font + record(0x443, bytes(12)) + parts + record(0xA), "a.xls")

    assert [block.text for block in page.blocks] == ["Sheet 1", "Fee"]
    assert [part.what for part in page.left_out] == ["workbook of Excel 95 or before"]


def test_the_addresses_of_formulas_for_links_are_kept_with_their_labels() -> None:
    address, label = "https://x.example/p", "Price list"
    cell = '<table:table-cell table:formula="of:=HYPERLINK(&quot;{}&quot;;[.A1])">{}'
    line = f"<text:p>{label}</text:p></table:table-cell>"
    cells = cell.format(address, line) + cell.format("/inside", line)

    sheet = read(
        f"<office:spreadsheet><table:table><table:table-row>{cells}</table:table-row>"
        "</table:table></office:spreadsheet>"
    )

    assert sheet.links == ((label, address),)


def test_rows_and_columns_of_a_collapsed_group_are_read() -> None:
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    row = '<table:table-row table:visibility="collapse">{}</table:table-row>'
    column = '<table:table-column table:visibility="collapse"/>'

    page = read(
        "<office:spreadsheet><table:table><table:table-column/><table:table-column-group>"
        f"{column}</table:table-column-group>{column}"
        f'<table:table-row-group table:display="false">'
        f"{row.format(''.join(map(cell.format, ('Rent', 'Berlin', 'x'))))}</table:table-row-group>"
        f"{row.format(cell.format('Secret'))}<table:table-row>{cell.format('Sum')}"
        "</table:table-row></table:table></office:spreadsheet>"
    )

    assert page.content.endswith("| Rent | Berlin |\n|---|---|\n| Sum |  |")
    assert [(part.what, part.count) for part in page.left_out] == [
        ("hidden column", 1), ("hidden row", 1),
    ]  # fmt: skip


def test_white_text_of_a_box_of_an_old_workbook_is_shown_and_reported() -> None:
    stream = re.sub(FONT, rb"\g<1>\t\0", read_stream())

    page = xls.read(stream + box(6, "Sale") + record(0xA), "a.xls")

    assert page.blocks[-1].text == "Sal~~e~~"
    assert ("white text in a box", 2) in [(part.what, part.count) for part in page.left_out]


def test_a_workbook_with_a_password_is_skipped_with_the_reason() -> None:
    stream = read_stream()
    password = record(0x2F, bytes(52))
    at = len(record(0x809, bytes(16)))

    with pytest.raises(SkippedError, match="protected by a password"):
        xls.read(stream[:at] + password + stream[at:], "a.xls")


def test_boxes_and_headers_of_an_old_workbook_are_read_and_other_objects_counted() -> None:
    chart = record(0x809, b"\0\6\x20\0") + record(0x14, b"\1\0\0X") + record(0xA)
    header = b"&LInternal&RPage &P of &N"
    parts = (
        record(0x14, struct.pack("<HB", len(header), 0) + header),
        *(box(6, "Fee400", " euros"), box(0x19, "of a note"), box(0xB, "Agreed")),
        *(record(0x5D, struct.pack("<HHH", 0x15, 2, 5)), chart, box(0x1E, "By May")),
    )

    page = xls.read(read_stream() + b"".join(parts) + record(0xA), "a.xls")

    texts = [block.text for block in page.blocks]
    assert texts[1] == "Internal"
    assert texts[-2:] == ["Fee~~400 euros~~", "By ~~May~~"]
    assert {part.what for part in page.left_out} == {
        "form control", "chart", "printed header", "hidden row", "value",
    }  # fmt: skip


def test_printed_headers_of_a_sheet_are_read_and_those_with_fields_are_counted() -> None:
    styles = (
        '<style:style style:name="t" style:family="table" style:master-page-name="M"/>'
        '<style:master-page style:name="M"><style:header><text:p>QP-114</text:p><text:p>'
        "Page <text:page-number>1</text:page-number> of the list</text:p></style:header>"
        "</style:master-page>"
    )
    sheet = (
        '<table:table table:name="{}" table:style-name="t"><table:table-row><table:table-cell>'
        "{}</table:table-cell></table:table-row></table:table>"
    )

    sheets = sheet.format("A", "<text:p>7</text:p>") + sheet.format("B", "")
    page = read(f"<office:spreadsheet>{sheets}</office:spreadsheet>", styles)

    assert page.content == "## A\n\nQP-114\n\n7"
    assert [(part.what, part.count) for part in page.left_out] == [("printed header", 1)]


def test_what_slides_show_of_their_master_is_read_once() -> None:
    def shape(kind: str, text: str) -> str:
        box = f"<draw:text-box><text:p>{text}</text:p></draw:text-box>"
        return f"<draw:frame {kind}>{box}</draw:frame>"

    footer, number = "presentation:class='footer'", "presentation:class='page-number'"
    field = "<text:page-number>&lt;number&gt;</text:page-number>"
    slide = (
        "<draw:page draw:master-page-name='M' draw:style-name='{}' "
        "presentation:use-footer-name='f'><draw:frame><draw:text-box><text:p>{}</text:p>"
        "</draw:text-box></draw:frame></draw:page>"
    ).format
    page = read(
        "<office:presentation><presentation:footer-decl presentation:name='f'>Valid to May"
        f"</presentation:footer-decl>{slide('S', 'One')}{slide('S', 'Two')}{slide('N', 'Three')}"
        "</office:presentation>",
        f"<style:master-page style:name='M'>{shape('', f'Acme confidential {field}')}"
        f"{shape(footer, '<presentation:footer/>')}{shape(number, field)}"
        "</style:master-page><style:style style:name='S' style:family='drawing-page'>"
        "<style:drawing-page-properties presentation:display-footer='true'/></style:style>",
    )
    bare = read(
        f"<office:presentation>{slide('N', 'Three')}</office:presentation>",
        f"<style:master-page style:name='M'>{shape(footer, 'Not shown')}</style:master-page>",
    )

    assert [block.text for block in page.blocks] == [
        "Acme confidential", "Valid to May", "Slide 1", "One", "Slide 2", "Two", "Slide 3", "Three",
    ]  # fmt: skip
    assert [block.text for block in bare.blocks] == ["Slide 1", "Three"]
