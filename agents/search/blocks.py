"""Divides text into blocks (paragraphs, lists, tables, and code) with their positions."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from citations.claims import count_while, find_fence_end, sentences

_FENCE = re.compile(r"[ \t]{0,24}(`{3,}|~{3,})")
_ITEM = re.compile(r"[ \t]{0,24}(?:[-*+\u2022]|(\d{1,3})[.)])[ \t]")


class BlockType(Enum):
    """The type of a block."""

    PROSE = auto()
    LIST = auto()
    CODE = auto()
    TABLE = auto()


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A paragraph, list, table, or code block, given by its position in the text of a source."""

    kind: BlockType
    start: int
    end: int

    def overlap(self, spans: Iterable[tuple[int, int]]) -> int:
        """Return how many of its characters are within these spans."""
        return sum(max(0, min(self.end, end) - max(self.start, start)) for start, end in spans)


def split_blocks(text: str) -> list[TextBlock]:
    """Return the blocks of the text in order."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    blocks: list[TextBlock] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        kind, end = _measure_block(lines, at)
        blocks.append(TextBlock(kind, starts[at], starts[end] - 1))
        at = end
    return _join_steps(text, blocks)


def place_sentences(paragraph: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence."""
    at = 0
    for sentence in sentences(paragraph):
        start = paragraph.find(sentence, at)
        if start < 0:
            continue
        at = start + len(sentence)
        yield start, at


def place_items(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each outermost list item, including its nested content."""
    start: int | None = None
    at = 0
    for line in text.split("\n"):
        if not line[:1].isspace() and _ITEM.match(line):
            if start is not None:
                yield start, at - 1
            start = at
        at += len(line) + 1
    if start is not None:
        yield start, at - 1


def _measure_block(lines: Sequence[str], at: int) -> tuple[BlockType, int]:
    line = lines[at]
    if (fence := _FENCE.match(line)) is not None:
        return BlockType.CODE, find_fence_end(lines, at, fence[1])
    if _is_row(line):
        return BlockType.TABLE, count_while(lines, at, _is_row)
    if _ITEM.match(line):
        return BlockType.LIST, count_while(lines, at, lambda item: not _begins_other(item))
    return BlockType.PROSE, count_while(
        lines, at, lambda item: not (_begins_other(item) or _ITEM.match(item))
    )


def _begins_other(line: str) -> bool:
    return _FENCE.match(line) is not None or _is_row(line)


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def _join_steps(text: str, blocks: Sequence[TextBlock]) -> list[TextBlock]:
    """Return the blocks; lists with continuing numbers are joined, together with code between
    them.
    """
    joined: list[TextBlock] = []
    for block in blocks:
        number = _first_number(text, block)
        before = next((n for n in range(len(joined) - 1, -1, -1) if _holds(joined[n])), None)
        is_next = (
            before is not None
            and number > 1
            and len(joined) - before <= 2
            and _last_number(text, joined[before]) == number - 1
        )
        if is_next and before is not None:
            block = TextBlock(BlockType.LIST, joined[before].start, block.end)
            del joined[before:]
        joined.append(block)
    return joined


def _holds(block: TextBlock) -> bool:
    return block.kind is BlockType.LIST


def _first_number(text: str, block: TextBlock) -> int:
    return next(_numbers(text, block), 0) if block.kind is BlockType.LIST else 0


def _last_number(text: str, block: TextBlock) -> int:
    return max(_numbers(text, block), default=0)


def _numbers(text: str, block: TextBlock) -> Iterator[int]:
    for line in text[block.start : block.end].split("\n"):
        match = None if line[:1].isspace() else _ITEM.match(line)
        if match is not None and match[1]:
            yield int(match[1])
