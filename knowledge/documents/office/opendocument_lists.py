"""The numbers of list items and headings in OpenDocument files."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from knowledge.documents.office.list_numbering import LEVELS, count_item
from knowledge.documents.office.opendocument_styles import OUTLINE, Styles
from knowledge.documents.office.zipped_xml import count, to_number
from knowledge.documents.page import LeftOutCounts


@dataclass(slots=True)
class _List:
    """An open list: its style, the numbers of all its levels, and the label of its open item.

    `is_begun`: the open item has a label, which its further paragraphs do not repeat. `has_list`:
    the open item contains a list. `is_in_cell`: the list is in a cell of a table, where a number
    may be the only content.
    """

    style: str
    counts: list[int | None]
    label: str = ""
    is_begun: bool = False
    has_list: bool = False
    is_in_cell: bool = False
    start: int | None = None


class ListNumbers:
    """Counts the items of the lists in which the current paragraph is."""

    def __init__(self, styles: Styles, left_out: LeftOutCounts) -> None:
        self._styles = styles
        self._left_out = left_out
        self._open: list[_List] = []
        self._counted: dict[str | None, list[int | None]] = {}

    @property
    def depth(self) -> int:
        """The number of lists around the current paragraph."""
        return len(self._open)

    @property
    def is_in_cell(self) -> bool:
        """Whether the innermost list is in a cell of a table."""
        return bool(self._open) and self._open[-1].is_in_cell

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Read what belongs to no list, such as a note."""
        lists, self._open = self._open, []
        yield
        self._open = lists

    @contextmanager
    def open(self, element: Element, *, is_in_cell: bool) -> Iterator[bool]:
        """Read the items of a list; False if it is too deep to be counted."""
        outer = self._open[-1] if self._open else None
        style = element.get("style-name") or (outer.style if outer is not None else "")
        goes_on = element.get("continue-numbering") == "true"
        if outer is not None:
            counts = outer.counts
            if outer.has_list and not goes_on:
                counts[self.depth :] = [None] * (LEVELS - self.depth)
            outer.has_list = True
        else:
            name = style if goes_on else element.get("continue-list")
            counts = list(self._counted.get(name, ())) or [None] * LEVELS
        if self.depth >= LEVELS:
            yield False
            return
        self._open.append(_List(style, counts, is_in_cell=is_in_cell or self.is_in_cell))
        yield True
        self._open.pop()
        if outer is None:
            self._counted |= {element.get("id") or style: counts, style: counts}

    def begin_item(self, item: Element) -> None:
        """Begin an item, or a header, of the innermost list."""
        start = to_number(item.get("start-value"), -1)
        is_header = item.tag == "list-header"
        self._open[-1] = replace(
            self._open[-1],
            label="  " if is_header else _read_number(item),
            is_begun=is_header,
            has_list=False,
            start=None if start < 0 else start,
        )

    def take_label(self, style: str) -> str:
        """Return the label of the next paragraph of the open item; further ones are indented."""
        current = self._open[-1]
        if current.is_begun:
            return " " * len(current.label)
        current.is_begun = True
        name = current.style or self._styles.find("paragraph", style, "list-style-name") or ""
        levels = self._styles.levels.get(name, {})
        label = count_item(levels, current.counts, self.depth - 1, self._left_out, current.start)
        current.label = current.label or label
        return current.label

    def label_heading(self, element: Element, style: str) -> str:
        """Return the number of a heading, from its list or from the numbering of chapters."""
        if element.get("is-list-header") == "true":
            return ""
        if self._open:
            return self.take_label(style)
        if self._styles.find("paragraph", style, "list-style-name") == "":
            return _read_number(element)
        level = min(count(element, "outline-level"), LEVELS) - 1
        counts = self._counted.setdefault(OUTLINE, [None] * LEVELS)
        levels = self._styles.levels.get(OUTLINE, {})
        return _read_number(element) or count_item(levels, counts, level, self._left_out)


def _read_number(element: Element) -> str:
    """Return the label that the file states for an item or a heading; mostly it states none."""
    return " ".join((element.findtext("number") or "").split())
