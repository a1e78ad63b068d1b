"""Writes the articles of a help centre that was exported as a table, one article in a row."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from knowledge.documents.decoding import clean_text
from knowledge.documents.markup import html
from knowledge.documents.page import Block, BlockKind

_TITLES = frozenset({"title", "name", "article title", "titel", "titre", "question", "subject"})
_BODIES = frozenset({"body", "content", "html", "article body", "answer", "text", "inhalt"})
_PLACES = ("category", "section", "folder")
_DRAFTS = frozenset({"draft", "is draft"})
_MARKUP = ("</", "<p>", "<br", "<ul>", "<li>")
_DEEPEST_LEVEL = 6


class ArticleColumns:
    """The columns of a table of articles, by their names."""

    def __init__(self, header: Sequence[str]) -> None:
        names = [clean_text(cell).strip().casefold().replace("_", " ") for cell in header]
        self._title = _find(names, _TITLES)
        self._body = _find(names, _BODIES)
        self._draft = _find(names, _DRAFTS)
        found = (_find(names, frozenset({name})) for name in _PLACES)
        self._places = [at for at in found if at is not None]

    def are_in(self, rows: Sequence[Sequence[str]]) -> bool:
        """Return whether the rows have titles, and bodies of which one is HTML."""
        if self._title is None or self._body is None:
            return False
        bodies = (_take(row, self._body) for row in rows)
        return any(any(mark in body for mark in _MARKUP) for body in bodies)

    def write(self, rows: Sequence[Sequence[str]]) -> Iterator[Block]:
        """Yield the articles below the headings of their categories and sections."""
        last: list[str] = []
        for number, row in enumerate(rows, start=2):
            body = _take(row, self._body)
            is_draft = _take(row, self._draft).casefold() in ("true", "1", "yes")
            if is_draft or not body:
                continue
            places = [name for at in self._places if (name := _take(row, at))]
            for level, name in enumerate(places, start=1):
                if places[:level] != last[:level]:
                    yield Block(BlockKind.HEADING, name, level)
            last = places
            level = len(places) + 1
            title = _take(row, self._title) or f"Row {number}"
            yield Block(BlockKind.HEADING, title, level, f"row={number}")
            for block in html.read(body.encode("utf-8", "replace"), "").blocks:
                below = min(block.level + level, _DEEPEST_LEVEL) if block.level else 0
                yield replace(block, level=below)


def _find(names: Sequence[str], wanted: frozenset[str]) -> int | None:
    return next((at for at, name in enumerate(names) if name in wanted), None)


def _take(row: Sequence[str], at: int | None) -> str:
    return row[at].strip() if at is not None and at < len(row) else ""
