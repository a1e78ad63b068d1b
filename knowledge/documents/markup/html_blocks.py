"""Writes blocks from the elements of HTML, as a walk enters and leaves them."""

from collections.abc import Iterator, Sequence

from selectolax.lexbor import LexborNode

from knowledge.documents.anchors import Anchors
from knowledge.documents.page import DEEPEST_INDENT, Block, BlockKind
from knowledge.documents.tables import Cell, unfold_tables, write_table

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CONTAINERS = "div section article main body ul ol dl dt dd blockquote figure details header aside"
_BREAKS = frozenset(f"{_CONTAINERS} p figcaption summary address hr center".split())
_LISTS = frozenset({"ul", "ol"})


class BlockWriter:
    """Collects text until a block ends; `enter` says whether to go inside an element."""

    def __init__(self, anchors: Anchors) -> None:
        self._anchors = anchors
        self._written: list[Block] = []
        self._text: list[str] = []
        self._lists: list[int] = []
        self._marker: str | None = None
        self._place: str | None = None

    def enter(self, node: LexborNode) -> bool:
        """Note what an element begins; return whether its children are to be walked."""
        tag = node.tag
        if tag == "-text":
            self._text.append(node.text_content or "")
        elif tag in ("pre", "table"):
            self.flush()
            if tag == "pre":
                self._write(_code(node))
            for block in write_table(list(_rows(node))) if tag == "table" else ():
                self._write(block)
        elif tag == "code" and not _has(node, "a"):
            self._text.append(f"`{node.text().strip()}`")
        else:
            self._begin(node)
            return True
        return False

    def leave(self, node: LexborNode) -> None:
        """Note what an element ends."""
        tag = node.tag or ""
        if tag in _HEADINGS:
            self._heading(node, _HEADINGS[tag])
        elif tag in _BREAKS or tag == "li":
            self.flush()
        if tag in _LISTS and self._lists:
            self._lists.pop()
        if tag == "li":
            self._marker = None

    def flush(self) -> None:
        """End the block that is being written."""
        text = self._line()
        if not text:
            return
        if self._marker is None:
            self._write(Block(BlockKind.TEXT, text))
        else:
            indent = "  " * min(len(self._lists) - 1, DEEPEST_INDENT)
            self._write(Block(BlockKind.ITEM, f"{indent}{self._marker} {text}"))
            self._marker = " " * len(self._marker)

    def take_blocks(self) -> Sequence[Block]:
        """Return the blocks written since the last time."""
        taken, self._written = self._written, []
        return taken

    def _begin(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag in _BREAKS or tag in _HEADINGS or tag == "li":
            self.flush()
        if place := _identifier(node):
            self._place = place
        if tag in _LISTS:
            self._lists.append(0)
        elif tag == "li":
            self._marker = self._next_marker(node)
        elif tag == "br":
            self._text.append("\n")

    def _next_marker(self, node: LexborNode) -> str:
        if not self._lists:
            self._lists.append(0)
        self._lists[-1] += 1
        ordered = node.parent is not None and node.parent.tag == "ol"
        return f"{self._lists[-1]}." if ordered else "-"

    def _heading(self, node: LexborNode, level: int) -> None:
        text = self._line()
        stated = _identifier(node) or self._place
        if text:
            anchor = self._anchors.take(text.replace("`", ""), stated)
            self._write(Block(BlockKind.HEADING, text, level, anchor))

    def _line(self) -> str:
        text = " ".join("".join(self._text).split())
        self._text = []
        return text

    def _write(self, block: Block | None) -> None:
        if block is not None:
            self._written.append(block)
            self._place = None


def _identifier(node: LexborNode) -> str | None:
    attributes = node.attributes
    stated = attributes.get("id") or (attributes.get("name") if node.tag == "a" else None)
    return stated if stated and not any(character.isspace() for character in stated) else None


def _has(node: LexborNode, selector: str) -> bool:
    return node.css_first(selector) is not None


def _code(node: LexborNode) -> Block | None:
    text = node.text().strip("\n")
    if not text.strip():
        return None
    inner = node.css_first("code")
    classes = f"{node.attributes.get('class')} {inner.attributes.get('class') if inner else ''}"
    stated = (name.partition("-")[2] for name in classes.split() if name.startswith("language-"))
    fence = "````" if "```" in text else "```"
    return Block(BlockKind.CODE, f"{fence}{next(stated, '')}\n{text.rstrip()}\n{fence}")


def _rows(table: LexborNode) -> Iterator[list[Cell]]:
    """Yield the rows of a table; those of a table in a cell are unfolded."""
    for row in _list_rows(table):
        cells = [cell for cell in row.iter() if cell.tag in ("td", "th")]
        inner = [cell.css_first("table") for cell in cells]
        rows = [_read_rows(found) if found is not None else [] for found in inner]
        for found in filter(None, inner):
            found.decompose()
        yield from unfold_tables([_cell(cell) for cell in cells], rows)


def _list_rows(table: LexborNode) -> list[LexborNode]:
    """Return the rows of a table without those of the tables inside it."""
    rows: list[LexborNode] = []
    for row in table.css("tr"):
        owner = row.parent
        while owner is not None and owner.tag != "table":
            owner = owner.parent
        if owner is not None and owner.mem_id == table.mem_id:
            rows.append(row)
    return rows


def _read_rows(table: LexborNode) -> list[list[Cell]]:
    """Return the rows of a table; the tables inside it are texts."""
    return [
        [_cell(cell) for cell in row.iter() if cell.tag in ("td", "th")]
        for row in _list_rows(table)
    ]


def _cell(node: LexborNode) -> Cell:
    text = " ".join(node.text(separator=" ").split())
    return Cell(text, _span(node, "colspan"), _span(node, "rowspan"), node.tag == "th")


def _span(node: LexborNode, name: str) -> int:
    stated = (node.attributes.get(name) or "1").strip()
    return max(1, int(stated)) if stated.isdecimal() and len(stated) < 7 else 1
