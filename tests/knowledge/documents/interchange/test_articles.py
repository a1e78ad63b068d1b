"""A table of help articles becomes articles below their sections, another one stays a table."""

from knowledge.documents.interchange import delimited
from knowledge.documents.page import BlockKind

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
