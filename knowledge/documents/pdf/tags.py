"""Reads the structure of a tagged PDF: headings, list items, and the order of blocks.

Tables are found by their layout, because files list the cells of a row in any order and omit empty
ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pypdfium2 import raw

from knowledge.documents.pdf.page_objects import read_text

_CELLS = frozenset({"TD", "TH"})
_BLOCKS = frozenset(
    {"P", "LI", "Caption", "Code", "BlockQuote", "TOCI", "Figure", "Formula", "Note", "FENote"}
)
_DEEPEST = 60
_MOST_ELEMENTS = 50_000


@dataclass(frozen=True, slots=True)
class Tag:
    """A block by its place in the order of a page's text; `level` is that of a heading, else 0."""

    number: int
    kind: str
    level: int = 0

    @property
    def is_cell(self) -> bool:
        """Whether the block is a cell of a table."""
        return self.kind in _CELLS


@dataclass(slots=True)
class _Walk:
    tags: dict[int, Tag] = field(default_factory=dict)
    elements: int = 0

    def visit(self, element: Any, outer: Tag | None, depth: int) -> None:
        if not element or depth > _DEEPEST or self.elements >= _MOST_ELEMENTS:
            return
        self.elements += 1
        kind = read_text(partial(raw.FPDF_StructElement_GetType, element))
        tag = Tag(self.elements, kind, _find_level(kind)) if _begins(kind, outer) else outer
        for at in range(raw.FPDF_StructElement_CountChildren(element)):
            mark = raw.FPDF_StructElement_GetChildMarkedContentID(element, at)
            if mark >= 0 and tag is not None:
                self.tags[mark] = tag
            self.visit(raw.FPDF_StructElement_GetChildAtIndex(element, at), tag, depth + 1)


def read_tags(page: Any) -> Mapping[int, Tag]:
    """Return the blocks of a page by the ids of their marked content; none without a structure."""
    tree = raw.FPDF_StructTree_GetForPage(page)
    if not tree:
        return {}
    walk = _Walk()
    for at in range(raw.FPDF_StructTree_CountChildren(tree)):
        walk.visit(raw.FPDF_StructTree_GetChildAtIndex(tree, at), None, 0)
    raw.FPDF_StructTree_Close(tree)
    return walk.tags


def _begins(kind: str, outer: Tag | None) -> bool:
    """Return whether an element is a block; content of a cell or an item is a part of that."""
    if outer is not None and (outer.is_cell or outer.kind == "LI"):
        return kind in _CELLS or (kind == "LI" and not outer.is_cell)
    return kind in _BLOCKS or kind in _CELLS or _find_level(kind) > 0


def _find_level(kind: str) -> int:
    if kind in ("H", "Title"):
        return 1
    is_numbered = kind[:1] == "H" and kind[1:].isdecimal()
    return max(1, min(int(kind[1:]), 6)) if is_numbered else 0
