from knowledge.documents.page import Block, BlockKind
from knowledge.documents.tables import Cell, write_table


def table_of(*rows: tuple[Cell, ...]) -> list[Block]:
    return list(write_table(rows))


def test_a_merged_cell_belongs_to_every_row_and_column_that_it_spans() -> None:
    (block,) = table_of(
        (Cell("A"), Cell("B"), Cell("C")),
        (Cell("both", rows=2), Cell("1"), Cell("2")),
        (Cell("3", columns=2),),
    )

    assert block.text.split("\n")[2:] == ["| both | 1 | 2 |", "| both | 3 | 3 |"]


def test_a_cell_over_the_whole_first_row_is_a_caption() -> None:
    blocks = table_of((Cell("Prices", columns=2),), (Cell("A"), Cell("B")), (Cell("1"), Cell("2")))

    assert [block.kind for block in blocks] == [BlockKind.TEXT, BlockKind.TABLE]
    assert blocks[0].text == "Prices"


def test_rows_that_are_marked_as_header_are_one() -> None:
    (block,) = table_of(
        (Cell("Plan", is_header=True), Cell("Price", is_header=True)),
        (Cell("", is_header=True), Cell("EUR", is_header=True)),
        (Cell("A"), Cell("1|2")),
    )

    assert block.text == "| Plan | Price EUR |\n|---|---|\n| A | 1\\|2 |"


def test_a_span_of_a_million_cells_is_bounded() -> None:
    (block,) = table_of((Cell("a", columns=10**6), Cell("b")), (Cell("c"), Cell("d")))

    assert len(block.text) < 10_000


def test_a_table_of_one_column_is_text_and_an_empty_one_is_nothing() -> None:
    assert [block.kind for block in table_of((Cell("a"),), (Cell("b"),))] == [BlockKind.TEXT] * 2
    assert table_of((Cell(""),)) == []
