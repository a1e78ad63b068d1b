"""Properties of OpenDocument files that odfpy writes with random styles, numbers and parts."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import odf.chart
import odf.draw
import odf.element
import odf.opendocument
import odf.style
import odf.table
import odf.text
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knowledge.documents.office import opendocument
from knowledge.documents.page import Page

WORDS = st.text("abcdefgäöéßжщ中文テ", min_size=2, max_size=8).map(lambda word: f"w{word}")
NUMBERS = st.decimals("-9999", "9999", places=2).map(str)
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ROMAN = [f"{tens}{ones}" for tens in ("", "x") for ones in
         ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")]  # fmt: skip
DEPTH = 3


@dataclass(frozen=True)
class Level:
    """The numbering of a level of a list, or of headings."""

    style: str
    prefix: str
    suffix: str
    shown: int
    start: int

    def write(self, number: int) -> str:
        """Return a number in the style of this level, without its prefix and suffix."""
        letter = "abcdefghijklmnopqrstuvwxyz"[number - 1]
        written = {"a": letter, "i": ROMAN[number]}.get(self.style.lower(), str(number))
        return written if self.style.islower() else written.upper()


@dataclass(frozen=True)
class Item:
    """An item of a list: its paragraphs, the number that it states, and the items below it."""

    texts: Sequence[str]
    start: int | None = None
    below: "Sequence[Item]" = ()


LEVELS = st.lists(
    st.builds(
        Level, st.sampled_from("1aAiI"), st.sampled_from(["", "(", "§"]),
        st.sampled_from(["", ")", "."]), st.integers(1, DEPTH), st.integers(1, 4),
    ),
    min_size=DEPTH, max_size=DEPTH,
)  # fmt: skip
TEXTS = st.lists(WORDS, min_size=1, max_size=2)
NO_TEXT: st.SearchStrategy[list[str]] = st.just([])
STARTS = st.none() | st.integers(1, 9)


def list_items(depth: int) -> st.SearchStrategy[Sequence[Item]]:
    item = st.builds(Item, TEXTS, STARTS)
    if depth > 1:
        below = list_items(depth - 1)
        item |= st.builds(Item, TEXTS, STARTS, below) | st.builds(Item, NO_TEXT, st.none(), below)
    return st.lists(item, min_size=1, max_size=3)


class Counter:
    """Counts the items of a list, or headings, by the definitions of its levels."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self.levels = levels
        self.numbers = [0] * DEPTH

    def label(self, depth: int, start: int | None = None) -> str:
        """Return the label of the next item at a 0-based depth."""
        for above in range(depth):
            self.numbers[above] = self.numbers[above] or self.levels[above].start
        own = self.levels[depth]
        following = self.numbers[depth] + 1 if self.numbers[depth] else own.start
        self.numbers[depth:] = [following if start is None else start] + [0] * (DEPTH - depth - 1)
        shown = range(max(0, depth + 1 - own.shown), depth + 1)
        number = ".".join(self.levels[at].write(self.numbers[at]) for at in shown)
        return f"{own.prefix}{number}{own.suffix}"


def expect_items(items: Sequence[Item], counter: Counter, depth: int = 0) -> Iterator[str]:
    """Yield the lines that a person sees of a list."""
    for item in items:
        label = counter.label(depth, item.start) if item.texts else ""
        for at, text in enumerate(item.texts):
            yield f"{'  ' * depth}{' ' * len(label) if at else label} {text}"
        yield from expect_items(item.below, counter, depth + 1)


def add_levels(parent: odf.element.Element, levels: Sequence[Level], kind: type) -> None:
    for at, level in enumerate(levels, start=1):
        parent.addElement(
            kind(
                level=at,
                numformat=level.style,
                numprefix=level.prefix,
                numsuffix=level.suffix,
                displaylevels=min(level.shown, at),
                startvalue=level.start,
            )
        )


def write_list(items: Sequence[Item], **attributes: str) -> odf.element.Element:
    written = odf.text.List(**attributes)
    for item in items:
        stated = {} if item.start is None else {"startvalue": item.start}
        element = odf.text.ListItem(**stated)
        for text in item.texts:
            element.addElement(odf.text.P(text=text))
        if item.below:
            element.addElement(write_list(item.below))
        written.addElement(element)
    return written


def read(document: odf.opendocument.OpenDocument, *, is_flat: bool = False) -> Page:
    if is_flat:
        return opendocument.read(document.xml(), "a.fodt")
    file = io.BytesIO()
    document.save(file)
    return opendocument.read(file.getvalue(), "a.odt")


def list_texts(page: Page) -> list[str]:
    return [block.text for block in page.blocks]


@pytest.mark.slow
@QUICK
@given(
    levels=LEVELS,
    lists=st.lists(st.tuples(list_items(DEPTH), st.booleans()), min_size=1, max_size=3),
    is_flat=st.booleans(),
)
def test_items_have_the_numbers_of_their_levels_and_a_list_may_continue_the_last_one(
    levels: list[Level], lists: list[tuple[Sequence[Item], bool]], is_flat: bool
) -> None:
    document = odf.opendocument.OpenDocumentText()
    style = odf.text.ListStyle(name="Clauses")
    add_levels(style, levels, odf.text.ListLevelStyleNumber)
    document.automaticstyles.addElement(style)
    counter = Counter(levels)
    expected: list[str] = []
    for items, continues in lists:
        goes_on = {"continuenumbering": "true"} if continues else {}
        document.text.addElement(write_list(items, stylename="Clauses", **goes_on))
        document.text.addElement(odf.text.P(text="Between"))
        counter = counter if continues else Counter(levels)
        expected += [*expect_items(items, counter), "Between"]

    assert list_texts(read(document, is_flat=is_flat)) == expected


@pytest.mark.slow
@QUICK
@given(
    levels=LEVELS,
    headings=st.lists(st.tuples(st.integers(1, DEPTH), WORDS), min_size=1, max_size=6),
    is_flat=st.booleans(),
)
def test_headings_have_the_numbers_of_their_chapters(
    levels: list[Level], headings: list[tuple[int, str]], is_flat: bool
) -> None:
    document = odf.opendocument.OpenDocumentText()
    outline = odf.text.OutlineStyle(name="Outline")
    add_levels(outline, levels, odf.text.OutlineLevelStyle)
    document.styles.addElement(outline)
    for depth, text in headings:
        document.text.addElement(odf.text.H(outlinelevel=depth, text=text))
    counter = Counter(levels)

    assert list_texts(read(document, is_flat=is_flat)) == [
        f"{counter.label(depth - 1)} {text}" for depth, text in headings
    ]


@dataclass(frozen=True)
class Passage:
    """A text with a place in the file, and how its style, or a parent of it, shows it."""

    text: str
    look: str
    parents: int
    place: str


PASSAGES = st.lists(
    st.builds(
        Passage,
        WORDS,
        st.sampled_from(["shown", "struck", "hidden"]),
        st.integers(0, 3),
        st.sampled_from(["paragraph", "span", "section", "cell", "item", "note", "frame"]),
    ),
    min_size=1,
    max_size=8,
)
LOOKS: dict[str, dict[str, str]] = {
    "shown": {}, "struck": {"textlinethroughstyle": "solid"}, "hidden": {"display": "none"},
}  # fmt: skip


def add_style(document: odf.opendocument.OpenDocument, passage: Passage, name: str) -> str:
    """Add a style whose topmost parent sets the look of a passage, and return its name."""
    family = "text" if passage.place == "span" else "paragraph"
    for at in range(passage.parents + 1):
        above = {"parentstylename": f"{name}-{at - 1}"} if at else {}
        style = odf.style.Style(name=f"{name}-{at}", family=family, **above)
        if not at:
            style.addElement(odf.style.TextProperties(**LOOKS[passage.look]))
        document.styles.addElement(style)
    return f"{name}-{passage.parents}"


def place_passage(passage: Passage, style: str) -> odf.element.Element:
    """Return an element of the body that contains the passage."""
    if passage.place == "span":
        paragraph = odf.text.P(text="Beside ")
        paragraph.addElement(odf.text.Span(stylename=style, text=passage.text))
        return paragraph
    element = odf.text.P(stylename=style, text=passage.text)
    note = odf.text.Note(noteclass="footnote")
    note.addElement(odf.text.NoteCitation(text="7"))
    wrappers: dict[str, Sequence[odf.element.Element]] = {
        "section": [odf.text.Section(name=style)],
        "cell": [odf.table.TableCell(), odf.table.TableRow(), odf.table.Table()],
        "item": [odf.text.ListItem(), odf.text.List()],
        "note": [odf.text.NoteBody(), note, odf.text.P(text="See")],
        "frame": [odf.draw.TextBox(), odf.draw.Frame(), odf.text.P(text="Beside")],
    }
    for wrapper in wrappers.get(passage.place, ()):
        wrapper.addElement(element)
        element = wrapper
    return element


@pytest.mark.slow
@QUICK
@given(passages=PASSAGES, is_flat=st.booleans())
def test_text_in_an_inherited_style_is_marked_if_struck_and_counted_if_hidden(
    passages: list[Passage], is_flat: bool
) -> None:
    document = odf.opendocument.OpenDocumentText()
    for at, passage in enumerate(passages):
        style = add_style(document, passage, f"S{at}")
        document.text.addElement(place_passage(passage, style))

    page = read(document, is_flat=is_flat)

    lines = [
        line.removeprefix("Beside ").removeprefix("- ").removeprefix("[7] ")
        for line in list_texts(page)
    ]
    marks = {"shown": "{}", "struck": "~~{}~~"}
    expected = [
        marks[passage.look].format(passage.text) for passage in passages if passage.look in marks
    ]
    assert [line for line in lines if line not in ("Beside", "See[7]")] == expected
    hidden = sum(passage.look == "hidden" for passage in passages)
    assert sum(part.count for part in page.left_out) == hidden


def write_table(rows: Sequence[Sequence[str]]) -> odf.element.Element:
    table = odf.table.Table(name="local")
    for row in rows:
        written = odf.table.TableRow()
        for text in row:
            cell = odf.table.TableCell()
            cell.addElement(odf.text.P(text=text))
            written.addElement(cell)
        table.addElement(written)
    return table


def write_chart(title: str, rows: Sequence[Sequence[str]]) -> odf.opendocument.OpenDocument:
    document = odf.opendocument.OpenDocumentChart()
    chart = odf.chart.Chart(attributes={"class": "chart:bar"})
    heading = odf.chart.Title()
    heading.addElement(odf.text.P(text=title))
    chart.addElement(heading)
    chart.addElement(odf.chart.PlotArea())
    chart.addElement(write_table(rows))
    document.chart.addElement(chart)
    return document


def write_text(title: str, rows: Sequence[Sequence[str]]) -> odf.opendocument.OpenDocument:
    document = odf.opendocument.OpenDocumentText()
    document.text.addElement(odf.text.P(text=title))
    document.text.addElement(write_table(rows))
    return document


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_chart, write_text])
@QUICK
@given(
    title=WORDS,
    values=st.lists(st.tuples(WORDS, NUMBERS), min_size=1, max_size=4),
    header=st.lists(WORDS, min_size=1, max_size=3),
)
def test_charts_embedded_documents_and_page_headers_keep_their_values_and_labels(
    write: Callable[..., odf.opendocument.OpenDocument],
    title: str,
    values: list[tuple[str, str]],
    header: list[str],
) -> None:
    document = odf.opendocument.OpenDocumentText()
    master = odf.style.MasterPage(name="Standard", pagelayoutname="Layout")
    for kind in (odf.style.Header, odf.style.Footer):
        part = kind()
        for text in header:
            part.addElement(odf.text.P(text=text))
        master.addElement(part)
    document.masterstyles.addElement(master)
    place = document.addObject(write(title, [("Item", "Value"), *values]))
    frame = odf.draw.Frame()
    frame.addElement(odf.draw.Object(href=place))
    paragraph = odf.text.P(text="Above")
    paragraph.addElement(frame)
    document.text.addElement(paragraph)

    page = read(document)

    rows = "\n".join(f"| {label} | {value} |" for label, value in values)
    table = f"| Item | Value |\n|---|---|\n{rows}"
    assert list_texts(page) == [*dict.fromkeys(header), "Above", title, table]
