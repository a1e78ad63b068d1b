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

    assert block.text.startswith("| Column 1 | Column 2 |\n|---|---|\n| DE | 19 |")


def test_an_empty_file_has_no_blocks() -> None:
    assert delimited.read(b"\n\n", "a.csv").blocks == ()
