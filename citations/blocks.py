"""Parses the blocks of a Markdown text with their lines, and removes blocks.

A block is a paragraph, a list item, a table row, a heading, or code. When blocks are removed, all
other lines remain unchanged.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from citations.links import LEFT_OUT

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_CELL_BORDER = re.compile(r"(?<!\\)\|")
_LEADS = (":", "\uff1a")
_ENDS_OF_STATEMENTS = (".", "\u3002")


class BlockForm(StrEnum):
    """The type of a block; a HEADER is the first row of a table."""

    PARAGRAPH = "paragraph"
    ITEM = "item"
    HEADER = "header"
    ROW = "row"
    HEADING = "heading"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class LineBlock:
    """A block of a text. Its own text, without nested blocks, spans the lines from `start` to `end`
    (exclusive).

    The nested blocks of an item end before line `last` and have the item's index as `parent`. Items
    of one list, and rows of one table, have the same `group`.
    """

    kind: BlockForm
    text: str
    start: int
    end: int
    last: int
    parent: int | None = None
    group: int = 0
    depth: int = 0
    cells: tuple[str, ...] = ()
    level: int = 0
    is_fenced: bool = False


class _Reader:
    """Collects blocks from the tokens of the parser."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.blocks: list[LineBlock] = []
        self._items: list[int] = []
        self._lists: list[int] = []
        self._groups = 0
        self._table = 0
        self._in_head = False

    def read(self, token: "Token", following: "Token | None") -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self._groups += 1
                self._lists.append(self._groups)
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                first, last = _map(token)
                while last > first + 1 and not self._lines[last - 1].strip():
                    last -= 1
                self._add(BlockForm.ITEM, "", first, first, last, group=self._lists[-1])
                self._items.append(len(self.blocks) - 1)
            case "list_item_close":
                self._items.pop()
            case "table_open":
                self._groups += 1
                self._table = self._groups
            case "thead_open" | "tbody_open":
                self._in_head = token.type == "thead_open"
            case _:
                self._read_text(token, following)

    def _read_text(self, token: "Token", following: "Token | None") -> None:
        match token.type:
            case "paragraph_open":
                self._read_paragraph(*_map(token), "" if following is None else following.content)
            case "heading_open":
                text = "" if following is None else following.content
                self._add(BlockForm.HEADING, text, *_map(token), level=int(token.tag[1:]))
            case "fence" | "code_block":
                is_fenced = token.type == "fence"
                self._add(BlockForm.CODE, token.content, *_map(token), is_fenced=is_fenced)
            case "tr_open":
                kind = BlockForm.HEADER if self._in_head else BlockForm.ROW
                first, end = _map(token)
                self._add(kind, "", first, end + self._in_head, group=self._table)
            case "inline" if self.blocks and self.blocks[-1].group == self._table != 0:
                row = self.blocks[-1]
                if row.kind in (BlockForm.HEADER, BlockForm.ROW) and token.map is not None:
                    cells = (*row.cells, token.content)
                    self.blocks[-1] = replace(row, cells=cells, text=" | ".join(cells))

    def _read_paragraph(self, first: int, end: int, text: str) -> None:
        item = self._items[-1] if self._items else None
        if item is not None and len(self.blocks) == item + 1 and first == self.blocks[item].start:
            self.blocks[item] = replace(self.blocks[item], text=text, end=end)
        else:
            self._add(BlockForm.PARAGRAPH, text, first, end)

    def _add(
        self,
        kind: BlockForm,
        text: str,
        first: int,
        end: int,
        last: int | None = None,
        *,
        group: int | None = None,
        level: int = 0,
        is_fenced: bool = False,
    ) -> None:
        if group is None:
            self._groups += 1
        self.blocks.append(
            LineBlock(
                kind=kind,
                text=text,
                start=first,
                end=end,
                last=end if last is None else last,
                parent=self._items[-1] if self._items else None,
                group=self._groups if group is None else group,
                depth=len(self._items),
                level=level,
                is_fenced=is_fenced,
            )
        )


@lru_cache(maxsize=64)
def read_blocks(text: str) -> tuple[LineBlock, ...]:
    """Return the blocks of a Markdown text, in order."""
    reader = _Reader(text.split("\n"))
    tokens = _markdown().parse(text)
    for index, token in enumerate(tokens):
        reader.read(token, tokens[index + 1] if index + 1 < len(tokens) else None)
    return tuple(reader.blocks)


def remove_blocks(text: str, indexes: Collection[int]) -> str:
    """Return `text` without these blocks, which are given as indexes into `read_blocks`.

    The nested blocks of an item are removed with it. A heading, an introductory line ("These are
    the steps:"), or a label is removed as well if nothing remains below it. Items keep
    their numbers, which may be those of a document.
    """
    if not indexes:
        return text
    blocks = read_blocks(text)
    gone = _spread(blocks, indexes)
    while emptied := _find_emptied(blocks, gone):
        gone = _spread(blocks, {*gone, *emptied})
    lost = {n for at in gone for n in range(blocks[at].start, blocks[at].last)}
    return "\n".join(_without_lines(text.split("\n"), lost)).strip("\n")


def remove_cells(text: str, cells: Iterable[tuple[LineBlock, int]]) -> str:
    """Return `text` with these cells (row and index) replaced by an ellipsis."""
    lines = text.split("\n")
    for row, cell in cells:
        parts = _CELL_BORDER.split(lines[row.start])
        at = cell + (not parts[0].strip(" \t>"))
        if at < len(parts):
            parts[at] = f" {LEFT_OUT} "
            lines[row.start] = "|".join(parts)
    return "\n".join(lines)


def remove_empty_headings(text: str) -> str:
    """Return `text` without headings that have no content."""
    return remove_blocks(text, _find_bare_headings(read_blocks(text), ()))


def split_row(row: str) -> list[str]:
    """Return the cells of a table row, stripped; escaped bars stay escaped."""
    cells = [cell.strip() for cell in _CELL_BORDER.split(row.strip().removeprefix("|"))]
    return cells if cells[-1] else cells[:-1] or cells


def leads_over(block: LineBlock) -> bool:
    """Return whether a block introduces the next one, which means that it ends with a colon,
    ignoring marks.
    """
    bare = _without_marks_at_end(block.text).rstrip("*_").rstrip()
    return block.kind in (BlockForm.PARAGRAPH, BlockForm.ITEM) and bare.endswith(_LEADS)


def names_what_follows(blocks: Sequence[LineBlock], index: int) -> bool:
    """Return whether a block only introduces others, because it ends with a colon or is a bold
    heading.

    A sentence in bold is not a heading.
    """
    block = blocks[index]
    bare = _without_marks_at_end(block.text).strip()
    is_heading = _is_bold(bare) and not bare.rstrip("*").endswith(_ENDS_OF_STATEMENTS)
    return leads_over(block) or (is_heading and index + 1 < len(blocks))


def _is_bold(bare: str) -> bool:
    return bare.startswith("**") and bare.endswith("**") and bare.count("**") == 2


def _without_marks_at_end(text: str) -> str:
    bare = text.rstrip()
    while bare.endswith("]") and bare[bare.rfind("[") + 1 : -1].isdecimal():
        bare = bare[: bare.rfind("[")].rstrip()
    return bare


@cache
def _markdown() -> "MarkdownIt":
    """Return the block parser, which is loaded on first use."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    # Link definitions are parsed as ordinary lines, because links are checked elsewhere.
    return parser.disable(["inline", "text_join", "reference"])


def _map(token: "Token") -> tuple[int, int]:
    first, end = token.map if token.map is not None else (0, 0)
    return first, end


def _spread(blocks: Sequence[LineBlock], indexes: Collection[int]) -> set[int]:
    """Return the indexes of these blocks and of all blocks nested within them."""
    gone = set(indexes)
    for index, block in enumerate(blocks):
        if block.parent in gone:
            gone.add(index)
    return gone


def _without_lines(lines: Sequence[str], gone: Collection[int]) -> list[str]:
    """Return the remaining lines. Consecutive blank lines are collapsed where lines were
    removed.
    """
    kept: list[str] = []
    after_gap = False
    for number, line in enumerate(lines):
        if number in gone:
            after_gap = True
            continue
        is_doubled = after_gap and not line.strip() and (not kept or not kept[-1].strip())
        if not is_doubled:
            kept.append(line)
            after_gap = after_gap and not line.strip()
    return kept


def _find_emptied(blocks: Sequence[LineBlock], gone: Collection[int]) -> set[int]:
    """Return the blocks that have no content left after `gone` are removed."""
    emptied = _find_bare_headings(blocks, gone)
    under: dict[int | None, list[int]] = {}
    members: dict[int, list[int]] = {}
    for index, block in enumerate(blocks):
        under.setdefault(block.parent, []).append(index)
        if block.kind is not BlockForm.HEADER:
            members.setdefault(block.group, []).append(index)
    for index in range(len(blocks)):
        led = _list_led(blocks, index, under.get(index, []), members)
        if index not in gone and led and all(block_index in gone for block_index in led):
            emptied.add(index)
    return emptied


def _list_led(
    blocks: Sequence[LineBlock],
    index: int,
    under: Sequence[int],
    members: Mapping[int, Sequence[int]],
) -> Sequence[int]:
    """Return the blocks that a label, an introductory line, or a table header introduces."""
    block = blocks[index]
    if block.kind is BlockForm.HEADER:
        return members.get(block.group, ())
    if under:
        is_label = block.kind is BlockForm.ITEM and (leads_over(block) or _is_label(block))
        return under if is_label else ()
    if not leads_over(block) or index + 1 == len(blocks):
        return ()
    return members.get(blocks[index + 1].group, ())


def _is_label(block: LineBlock) -> bool:
    """Return whether an item is only a bold label for its nested blocks."""
    return _is_bold(block.text.strip())


def _find_bare_headings(blocks: Sequence[LineBlock], gone: Collection[int]) -> set[int]:
    """Return the headings whose sections contain no text."""
    bare: set[int] = set()
    holds_at = 7  # level of the highest heading kept directly above text; 0: text, 7: nothing
    for index in range(len(blocks) - 1, -1, -1):
        block = blocks[index]
        if index in gone:
            continue
        if block.kind is not BlockForm.HEADING:
            holds_at = 0
        elif holds_at == 0 or (holds_at > block.level and holds_at < 7):
            holds_at = block.level
        else:
            bare.add(index)
    return bare
