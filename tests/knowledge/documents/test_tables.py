from knowledge.documents.page import Block, BlockKind
from knowledge.documents.tables import Cell, SheetRow, write_sheet, write_table


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


def test_a_title_over_all_columns_is_no_second_row_of_the_header() -> None:
    rows = (Cell("Phone"), Cell("E-mail", columns=2)), (Cell("Car", columns=3),)
    (block,) = table_of(*rows, (Cell("Plate"), Cell("Make"), Cell("Colour")))

    assert block.text.split("\n")[0] == "| Phone | E-mail | E-mail |"


def test_a_span_of_a_million_cells_is_bounded() -> None:
    (block,) = table_of((Cell("a", columns=10**6), Cell("b")), (Cell("c"), Cell("d")))

    assert len(block.text) < 10_000


def test_a_table_of_one_column_is_text_and_an_empty_one_is_nothing() -> None:
    assert [block.kind for block in table_of((Cell("a"),), (Cell("b"),))] == [BlockKind.TEXT] * 2
    assert table_of((Cell(""),)) == []


def sheet_of(*rows: str, hidden: tuple[int, ...] = (), headers: tuple[int, ...] = ()) -> list[str]:
    """Return the tables of rows written as `a|b`; those of the numbers `hidden` are left out, those
    of `headers` are declared as headers.
    """
    made = [
        SheetRow(
            number,
            {column: text for column, text in enumerate(row.split("|")) if text},
            sum(item < number for item in hidden),
        )
        for number, row in enumerate(rows, start=1)
        if row and number not in hidden
    ]
    return [block.text for block in write_sheet(made, "", headers) if block.kind is BlockKind.TABLE]


def test_years_are_a_header_and_numbers_in_every_column_are_none() -> None:
    assert sheet_of("Country|2022|2023", "Peru|7|9") == [
        "| Country | 2022 | 2023 |\n|---|---|---|\n| Peru | 7 | 9 |"
    ]
    assert sheet_of("1|2|3", "4|5|6")[0].startswith("|  |  |  |\n|---")


def test_rows_after_hidden_or_empty_ones_keep_their_header() -> None:
    texts = ("Customer|Status", "Arlo|open", "Beko|closed", "Cilo|open")
    assert sheet_of(*texts, hidden=(3,)) == [
        "| Customer | Status |\n|---|---|\n| Arlo | open |\n| Cilo | open |"
    ]
    coded = sheet_of("Code|Meaning", "E1|low", "E2|hot", "", "E3|door", "E4|phase")
    assert [table.split("\n")[0] for table in coded] == ["| Code | Meaning |"] * 2


def test_tables_beside_each_other_are_apart_unless_they_have_the_same_rows() -> None:
    apart = sheet_of("Item|Price", "Pump|10", "Seal|30||City|Rent", "Hose|40||Lima|700")
    one = sheet_of("Item|Price||City|Rent", "Pump|10||Lima|700")

    assert apart[1] == "| City | Rent |\n|---|---|\n| Lima | 700 |"
    assert one == ["| Item | Price | City | Rent |\n|---|---|---|---|\n| Pump | 10 | Lima | 700 |"]


def test_a_first_row_with_values_is_no_header() -> None:
    rows = [[Cell("Diaz"), Cell("2,100")], [Cell("Wayne"), Cell("9,900")]]

    assert [block.text for block in write_table(rows)] == [
        "|  |  |\n|---|---|\n| Diaz | 2,100 |\n| Wayne | 9,900 |"
    ]


def test_a_label_beside_its_value_is_no_header_of_a_column() -> None:
    plain = [[Cell("Name:"), Cell("Smith")], [Cell("Amount:"), Cell("400")]]
    marked = [
        [Cell("Name", is_header=True), Cell("Smith")],
        [Cell("Sum", is_header=True), Cell("400")],
    ]

    aside = [
        [Cell(""), Cell("Date:"), Cell("May 1")],
        [Cell("Taylor"), Cell("Due:"), Cell("June 1")],
    ]

    (first,), (second,), (third,) = map(write_table, (plain, marked, aside))

    assert first.text == "|  |  |\n|---|---|\n| Name: | Smith |\n| Amount: | 400 |"
    assert second.text == "|  |  |\n|---|---|\n| Name | Smith |\n| Sum | 400 |"
    assert third.text == (
        "|  |  |  |\n|---|---|---|\n|  | Date: | May 1 |\n| Taylor | Due: | June 1 |"
    )


def test_a_declared_header_includes_the_labels_above_it_but_no_values() -> None:
    units = sheet_of("Part|Length|Weight", "|mm|2|", "|mm|kg", "A|4|2", headers=(3,))
    two = sheet_of("Part|Length|Weight", "|mm|kg", "A|4|2", headers=(2,))
    below = sheet_of("Part|Mode|State", "A|auto|on", "Key|Mode|Name", "B|2|c", headers=(3,))

    assert units[-1] == "|  | mm | kg |\n|---|---|---|\n| A | 4 | 2 |"
    assert two == ["| Part | Length mm | Weight kg |\n|---|---|---|\n| A | 4 | 2 |"]
    assert below[-1] == "| Key | Mode | Name |\n|---|---|---|\n| B | 2 | c |"
