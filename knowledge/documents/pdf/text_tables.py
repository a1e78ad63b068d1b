"""Finds tables by cells that stand below each other, and rows by the rules between them."""

from collections.abc import Iterator, Sequence

from knowledge.documents.pdf.page_layout import LaidOutPage
from knowledge.documents.pdf.page_text import DrawnRule, Segment
from knowledge.documents.pdf.table_rows import TextTable
from knowledge.documents.pdf.text_lines import Line
from knowledge.documents.tables import Cell

_LARGEST_GAP = 4.0
_MOST_ROW_LINES = 12


def find_tables(page: LaidOutPage) -> Iterator[Line | TextTable]:
    """Yield the lines of a page, with the tables in the places of their lines."""
    at = 0
    while at < len(page.lines):
        drawn = page.lines[at].table
        if drawn is not None:
            yield drawn
            at += 1
            continue
        end = _find_end(page, at)
        if end - at >= 2:
            yield _build(page, page.lines[at:end])
            at = end
        else:
            yield page.lines[at]
            at += 1


def _find_end(page: LaidOutPage, start: int) -> int:
    """Return the index after the last line of a table that begins at a line, or the line itself."""
    lines = page.lines
    if len(lines[start].segments) < 2 or _is_code(lines[start]):
        return start
    columns = [(one.left, one.right) for one in lines[start].segments]
    end, last_row = start + 1, start
    while end < len(lines) and end - last_row <= _MOST_ROW_LINES:
        line = lines[end]
        if line.table is not None:
            break
        gap = lines[end - 1].base - line.base
        if not 0 < gap < _LARGEST_GAP * line.size or not _fits(line, columns):
            break
        if len(line.segments) >= 2:
            last_row = end
            columns = _widen(columns, line.segments)
        elif not _is_wrapped(page, lines[end - 1], line, columns):
            break
        end += 1
    while end > last_row + 1 and _is_ruled_off(page.text.rules, lines[end - 2], lines[end - 1]):
        end -= 1
    return end if last_row > start else start


def _is_code(line: Line) -> bool:
    return line.is_code


def _fits(line: Line, columns: Sequence[tuple[float, float]]) -> bool:
    """Return whether no segment of a line reaches over two columns that the table has so far."""
    for segment in line.segments:
        reached = sum(
            min(segment.right, right) - max(segment.left, left) > 2 for left, right in columns
        )
        if reached > 1:
            return False
    return True


def _is_wrapped(
    page: LaidOutPage, above: Line, line: Line, columns: Sequence[tuple[float, float]]
) -> bool:
    """Return whether a line of one segment goes on with a cell of the row above it."""
    segment = line.segments[0]
    is_close = above.base - line.base < 1.7 * line.size
    is_inner = segment.left > columns[0][1] - 1
    is_bounded = _has_rules(page.text.rules, line)
    return is_close and (is_inner or is_bounded)


def _has_rules(rules: Sequence[DrawnRule], line: Line) -> bool:
    """Return whether rules are drawn above and below a line."""
    left, right = line.segments[0].left, line.segments[-1].right
    over = [rule.base for rule in rules if rule.left - 5 <= left and right <= rule.right + 5]
    return any(base > line.base for base in over) and any(
        line.base - 6 * line.size < base < line.base for base in over
    )


def _is_ruled_off(rules: Sequence[DrawnRule], above: Line, line: Line) -> bool:
    below = any(rule.base < line.base for rule in rules)
    between = any(line.base + line.size * 0.7 < rule.base < above.base for rule in rules)
    return between and not below


def _widen(
    columns: list[tuple[float, float]], segments: Sequence[Segment]
) -> list[tuple[float, float]]:
    intervals = sorted([*columns, *((one.left, one.right) for one in segments)])
    merged: list[tuple[float, float]] = []
    for left, right in intervals:
        if merged and left < merged[-1][1] - 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return merged


def _build(page: LaidOutPage, lines: Sequence[Line]) -> TextTable:
    columns: list[tuple[float, float]] = []
    for line in lines:
        columns = _widen(columns, line.segments)
    rules = [rule for rule in page.text.rules if lines[-1].base < rule.base < lines[0].base]
    rows: list[list[list[str]]] = []
    above: Line | None = None
    for line in lines:
        if above is None or not _belongs_to_row(rules, above, line, columns):
            rows.append([[] for _ in columns])
        for segment in line.segments:
            rows[-1][_find_column(columns, segment)].append(segment.text)
        above = line
    texts = [[Cell(" ".join(cell)) for cell in row] for row in rows]
    return TextTable(page.number, columns, texts)


def _belongs_to_row(
    rules: Sequence[DrawnRule], above: Line, line: Line, columns: Sequence[tuple[float, float]]
) -> bool:
    """Return whether a line goes on with the row above it: no rule between, or no first cell."""
    if rules and len(rules) > 1:
        return not any(line.base + line.size * 0.3 < rule.base <= above.base for rule in rules)
    is_first_empty = _find_column(columns, line.segments[0]) != 0
    return is_first_empty and above.base - line.base < 1.5 * line.size


def _find_column(columns: Sequence[tuple[float, float]], segment: Segment) -> int:
    overlaps = [min(segment.right, right) - max(segment.left, left) for left, right in columns]
    return overlaps.index(max(overlaps))
