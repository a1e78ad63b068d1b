"""Finds notes beside prose, such as those in a margin, so that no line is made of both."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from knowledge.documents.pdf.page_objects import Box
from knowledge.documents.pdf.page_text import DrawnRule, Segment
from knowledge.documents.pdf.side_by_side import list_framed
from knowledge.documents.pdf.text_lines import DrawnTable, Line, is_long

_LEAST_DIFFERENCE = 0.08
"""Least difference between the sizes of a note and of the prose, relative to the prose."""
_WIDEST = 0.6
"""Largest width of a note, relative to the prose."""
_PITCH = 1.7
_LEAST_GAP = 0.8
_LEAST_LINES = 2
_MOST_OTHERS = 500
"""Maximum number of segments in another size than the prose; a page with more has no notes."""
_LETTERS_OF_NOTE = 6
"""Least number of letters of its lines on average, unlike bullets and numbers in another size."""
_SAME_LINE = 1.5
_ENDS = (".", "!", "?", ":")


def take_notes(
    segments: Sequence[Segment],
    boxes: Sequence[Box],
    rules: Sequence[DrawnRule],
    lowest: float,
) -> tuple[list[list[Segment]], list[Segment]]:
    """Return the notes above the `lowest` position, and the other segments.

    The lines of a note are in a box or in another size than the prose at its one side, which goes
    on above or below it or has other baselines. Cells of a table begin on one line and have rules
    between their rows.
    """
    letters: Counter[float] = Counter()
    for segment in segments:
        letters[segment.size] += len(segment.text)
    usual = max(letters, key=lambda size: letters[size], default=0.0)
    prose = [segment for segment in segments if segment.size == usual]
    others = [
        one for one in segments
        if not isinstance(one, DrawnTable) and abs(one.size - usual) >= _LEAST_DIFFERENCE * usual
    ]  # fmt: skip
    if len(others) > _MOST_OTHERS:
        return [], list(segments)
    stacks = [
        stack for stack in _list_stacks(others)
        if len(stack) >= _LEAST_LINES
        and sum(len(one.text) for one in stack) >= _LETTERS_OF_NOTE * len(stack)
    ]  # fmt: skip
    bare = [one for one in segments if not isinstance(one, DrawnTable)]
    framed = [own for _, own in list_framed(bare, boxes) if len(own) >= _LEAST_LINES]
    notes: list[list[Segment]] = []
    taken: set[int] = set()
    for stack in (*framed, *stacks):
        is_free = stack[0].base > lowest and taken.isdisjoint(map(id, stack))
        if is_free and _is_note(stack, segments, prose, rules):
            notes.append(stack)
            taken.update(map(id, stack))
    return notes, [segment for segment in segments if id(segment) not in taken]


def place_note(lines: list[Line], note: Sequence[Line]) -> None:
    """Insert a note into the lines of its page, before the sentence or text beside it."""
    beside = (at for at, line in enumerate(lines) if line.base <= note[0].base + _SAME_LINE)
    at = next(beside, len(lines))
    for line, above in pairwise(lines[at::-1]) if at < len(lines) else ():
        if above.text.endswith(_ENDS) or not 0 < above.base - line.base < _PITCH * line.size:
            break
        at -= 1
    lines[at:at] = note


def _list_stacks(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Return segments of one size that stand below each other as closely as lines do."""
    stacks: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda one: -one.base):
        for stack in stacks:
            above = stack[-1]
            is_below = 0 < above.base - segment.base < _PITCH * segment.size
            over = min(above.right, segment.right) - max(above.left, segment.left)
            if is_below and above.size == segment.size and over > 0:
                stack.append(segment)
                break
        else:
            stacks.append([segment])
    return stacks


def _is_note(
    stack: Sequence[Segment],
    segments: Sequence[Segment],
    prose: Sequence[Segment],
    rules: Sequence[DrawnRule],
) -> bool:
    left, right = min(one.left for one in stack), max(one.right for one in stack)
    lowest, highest = stack[-1].base - _SAME_LINE, stack[0].base + _SAME_LINE
    own = set(map(id, stack))
    beside = [
        one for one in segments
        if lowest <= one.base <= highest + one.size / 2 and id(one) not in own
    ]  # fmt: skip
    gap = _LEAST_GAP * stack[0].size
    is_apart = all(one.left > right + gap for one in beside) or all(
        one.right < left - gap for one in beside
    )
    long = [
        one for one in beside
        if is_long(one.text)
        and (one.size != stack[0].size or one.size == prose[0].size)
    ]  # fmt: skip
    if not is_apart or not long or 2 * len(long) < len(beside):
        return False
    if right - left > _WIDEST * max(one.right - one.left for one in long):
        return False
    if any(
        lowest < rule.base < highest and rule.left < right and left < rule.right for rule in rules
    ):
        return False
    first = max(long, key=lambda one: one.base)
    last = min(long, key=lambda one: one.base)
    is_within = any(
        (
            0 < one.base - first.base < _PITCH * first.size
            and abs(one.left - first.left) < first.size
        )
        or (
            0 < last.base - one.base < _PITCH * last.size
            and one.left < left + 1
            and right < one.right
            and last.left < one.right
        )
        for one in prose
    )
    level = sum(any(abs(one.base - line.base) < _SAME_LINE for one in long) for line in stack)
    return is_within or (len(long) >= _LEAST_LINES and 5 * level <= 2 * len(stack))
