"""What holds for every PDF: rows, values and labels arrive as they stand in the file."""

from hypothesis import given, settings
from hypothesis import strategies as st
from reportlab.lib import colors
from reportlab.platypus import PageBreak, Table

from knowledge.documents.page import BlockKind, Page
from knowledge.documents.pdf import pdf_reader
from tests.knowledge.documents.layouts import build

EXAMPLES = settings(max_examples=25, deadline=None)
LABELS = st.lists(
    st.from_regex(r"[A-Z][a-z]{2,9}( [A-Z][a-z]{2,9})?", fullmatch=True),
    min_size=2, max_size=12, unique=True,
)  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-9_999, 99_999).map(str),
    st.decimals(0, 9_999, places=2).map(lambda number: f"{number:,}"),
    st.integers(0, 100).map(lambda share: f"{share} %"),
    st.tuples(st.integers(0, 50), st.integers(51, 99)).map(lambda ends: f"{ends[0]}–{ends[1]}"),
)
RULES = [
    ("BOX", (0, 0), (-1, -1), 0.5, colors.black),
    ("INNERGRID", (0, 0), (-1, 0), 0.5, colors.black),
    ("LINEBELOW", (0, 0), (-1, 0), 0.5, colors.black),
]
COLUMNS = [("LINEBEFORE", (0, 0), (-1, -1), 0.5, colors.black)]


def read(data: bytes) -> Page:
    return pdf_reader.read(data, "a.pdf")


def rows_of(page: Page) -> list[list[str]]:
    """Return the rows of all tables, those of the header included."""
    lines = (
        line for block in page.blocks if block.kind is BlockKind.TABLE
        for line in block.text.split("\n")
    )  # fmt: skip
    return [line.strip("| ").split(" | ") for line in lines if not line.startswith("|---")]


@EXAMPLES
@given(labels=LABELS, data=st.data(), has_columns=st.booleans())
def test_a_row_of_a_ruled_table_stays_a_row_without_lines_between_rows(
    labels: list[str], data: st.DataObject, has_columns: bool
) -> None:
    values = st.lists(NUMBERS, min_size=len(labels), max_size=len(labels))
    columns = (labels, data.draw(values), data.draw(values))
    rows = [list(row) for row in zip(*columns, strict=True)]
    style = [*RULES, *(COLUMNS if has_columns else ())]
    table = Table([["Item", "Before", "After"], *rows], colWidths=[160, 90, 90], style=style)

    assert rows_of(read(build([table]))) == [["Item", "Before", "After"], *rows]


@EXAMPLES
@given(names=LABELS, amounts=st.lists(NUMBERS, min_size=12, max_size=12))
def test_no_page_shows_a_label_of_the_form_on_another_page(
    names: list[str], amounts: list[str]
) -> None:
    forms = [
        [[f"Customer {name}", f"Policy {number}"], ["Damage", amount], ["Excess", "150"]]
        for number, (name, amount) in enumerate(zip(names, amounts, strict=False))
    ]
    grid = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]
    story = [part for form in forms for part in (Table(form, style=grid), PageBreak())]

    page = read(build(story))

    for number, name in enumerate(names, start=1):
        own = [block.text for block in page.blocks if f"Customer {name} |" in block.text]
        assert own
        assert {block.anchor for block in page.blocks if block.text in own} == {f"page={number}"}
