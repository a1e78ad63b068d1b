"""A report as it is printed: parts of paragraphs, lists and tables, from which files are made."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportText:
    """A piece of text; `link` leads to its place, empty: nowhere.

    `place` is printed after it and is then what the link is on. `marks` are spans in bold.
    `is_detail`: as an item of a part, it belongs to the item before. `more` are further lines.
    """

    text: str
    link: str = ""
    is_detail: bool = False
    place: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    more: tuple["ReportText", ...] = ()


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table; the first row is the header. `shares` are the widths of its columns, 1 in all."""

    rows: tuple[tuple[ReportText, ...], ...]
    shares: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportPart:
    """A part with its heading; paragraphs come first, then items, then the table."""

    heading: str
    paragraphs: tuple[ReportText, ...] = ()
    items: tuple[ReportText, ...] = ()
    table: ReportTable | None = None


@dataclass(frozen=True, slots=True)
class PrintedReport:
    """A report in parts; `notice` is printed first, such as that no model is in use."""

    title: str
    language: str
    parts: tuple[ReportPart, ...]
    notice: str = ""


def split_marks(text: ReportText) -> Iterable[tuple[str, bool]]:
    """Yield the pieces of a text, and whether each is marked."""
    end = 0
    for start, stop in text.marks:
        if end < start:
            yield text.text[end:start], False
        yield text.text[start:stop], True
        end = stop
    yield text.text[end:], False
