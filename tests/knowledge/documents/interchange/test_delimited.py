"""A table of help articles becomes articles below their sections, another one stays a table."""

import pytest

from knowledge.documents.interchange import delimited
from knowledge.documents.page import BlockKind


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    rows = [("Country", "Price, net"), ("DE", "1"), ("AT", "2")]
    data = "\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows)

    (block,) = delimited.read(data.encode(), "a.csv").blocks

    assert block.text == "| Country | Price, net |\n|---|---|\n| DE | 1 |\n| AT | 2 |"


def test_ten_rows_have_a_place_and_the_header() -> None:
    data = "Name,Price\n" + "".join(f"Item {number},{number}\n" for number in range(1, 22))

    blocks = delimited.read(data.encode(), "a.csv").blocks

    assert [block.anchor for block in blocks] == ["row=2-11", "row=12-21", "row=22"]
    assert {block.text.split("\n")[0] for block in blocks} == {"| Name | Price |"}


def test_quoted_line_breaks_and_bars_stay_in_their_cells() -> None:
    (block,) = delimited.read(b'Rule,Note\n"a|b","two\nlines"\n', "a.csv").blocks

    assert block.kind is BlockKind.TABLE
    assert block.text.endswith("| a\\|b | two lines |")


def test_a_table_without_a_header_gets_numbered_columns() -> None:
    (block,) = delimited.read(b"DE,19\nAT,20\n", "a.csv").blocks

    assert block.text.startswith("|  |  |\n|---|---|\n| DE | 19 |")


def test_an_empty_file_has_no_blocks() -> None:
    assert delimited.read(b"\n\n", "a.csv").blocks == ()


ARTICLES = (
    "Article ID,Title,Section,Category,Draft,Body\n"
    '1,Reset a PIN,Account,App,no,"<p>Tap <b>Reset</b>.</p><h2>Limits</h2><p>Five a day.</p>"\n'
    '2,Returns,Orders,Shop,no,"<ul><li>Free for 30 days.</li></ul>"\n'
    '3,Refunds,Orders,Shop,no,"<p>In a week.</p>"\n'
    "4,Secret,Orders,Shop,true,<p>Not yet.</p>\n"
)


def test_articles_stand_below_their_category_and_section() -> None:
    blocks = delimited.read(ARTICLES.encode(), "export.csv").blocks

    assert [(block.level, block.text) for block in blocks] == [
        (1, "App"), (2, "Account"), (3, "Reset a PIN"), (0, "Tap Reset."), (5, "Limits"),
        (0, "Five a day."), (1, "Shop"), (2, "Orders"), (3, "Returns"),
        (0, "- Free for 30 days."), (3, "Refunds"), (0, "In a week."),
    ]  # fmt: skip
    assert [block.anchor for block in blocks if block.level == 3] == ["row=2", "row=3", "row=4"]


def test_a_table_without_html_stays_a_table() -> None:
    data = b"Title,Body\nDune,1 < 2\nEmma,plain\n"

    (table,) = delimited.read(data, "books.csv").blocks

    assert table.kind is BlockKind.TABLE


def test_the_line_that_states_the_delimiter_is_no_row() -> None:
    (block,) = delimited.read(b"sep=;\nName;Price\nBolt;1,50\n", "a.csv").blocks

    assert block.text == "| Name | Price |\n|---|---|\n| Bolt | 1,50 |"
    assert block.anchor == "row=3"


def test_a_quotation_mark_that_is_not_closed_does_not_swallow_the_rows_below() -> None:
    page = delimited.read(b'Id,Name\n1,"two\nlines"\n2,"open\n3,last\n', "a.csv")

    assert page.content == (
        '| Id | Name |\n|---|---|\n| 1 | two lines |\n| 2 | "open |\n| 3 | last |'
    )
    assert page.warnings == ("the quotation mark in row 3 is not closed",)


def test_columns_beyond_the_limit_are_counted_and_all_others_shown() -> None:
    data = "\n".join(",".join(f"{row}{at}" for at in range(502)) for row in ("c", "v"))

    page = delimited.read(data.encode(), "a.csv")

    assert "v499 |" in page.content
    assert [(part.what, part.count) for part in page.left_out] == [("cell", 4)]


def test_articles_without_text_and_columns_that_are_not_read_are_named() -> None:
    data = b"Id,Title,Body,Draft\n7,Fees,<p>Net</p>,\n8,Plan,<p>x</p>,true\n9,Empty,,\n"

    left_out = delimited.read(data, "a.csv").left_out

    assert {(part.what, part.names) for part in left_out} == {
        ("column", ("id",)), ("article", ("Plan",)), ("article", ("Empty",)),
    }  # fmt: skip


def test_a_delimiter_behind_a_backslash_does_not_divide_a_cell() -> None:
    escaped, plain = b"Film,Year\nStrangelove\\, or how I learned,1964\n", b"Path,Size\nC:\\new,7\n"

    read = [delimited.read(data, "a.csv").content.split("\n")[-1] for data in (escaped, plain)]

    assert read == ["| Strangelove, or how I learned | 1964 |", "| C:\\new | 7 |"]


def test_a_space_before_a_quotation_mark_does_not_divide_a_cell() -> None:
    page = delimited.read(b'Item, "Price, net"\nPump, "5,5"\nPipe, 2" wide\n', "a.csv")

    assert page.content == '| Item | Price, net |\n|---|---|\n| Pump | 5,5 |\n| Pipe | 2" wide |'


def test_a_code_that_is_stated_as_a_formula_is_its_text() -> None:
    page = delimited.read(b'Code,Part\n="00123",Pipe\n"=""01E10""",Tube\n', "a.csv")

    assert [line for line in page.content.splitlines() if "0" in line] == [
        "| 00123 | Pipe |", "| 01E10 | Tube |"
    ]  # fmt: skip
