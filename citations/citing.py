"""Writes the citation marks of an answer in one style, only for known sources, and numbered by
first use.

A mark covers more than its own sentence:

| position of the mark                                  | it covers                            |
|-------------------------------------------------------|--------------------------------------|
| in a paragraph or a row                               | the paragraph, the row               |
| in an item                                            | the item and its nested blocks       |
| in the line above a list, a table or code             | the list, the table, the code        |
| on a line below a paragraph, a list, a table or code  | the same                             |
| in a later item or row                                | the items or rows before it          |
| in the last marked item or row                        | the list, the table                  |
| at the end of the answer                              | all blocks that are not yet covered  |

A list that contains marks is covered by these marks. The line above it covers it only if that line
introduces the list. A mark alone on a line is moved into the item, row, or paragraph that it
covers, if possible.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from citations.blocks import (
    BlockForm,
    LineBlock,
    leads_over,
    names_what_follows,
    read_blocks,
    remove_blocks,
    remove_empty_headings,
)
from citations.claims import marker, sentences
from citations.links import keep_links
from citations.marking import (
    code_lines,
    is_only_marks,
    keep_known_marks,
    map_marks,
    mark_tools,
    read_marks,
    remove_marks,
    write_plainly,
)
from citations.proof import SourceTexts
from citations.sources import collect_allowed, references_of, with_addresses
from envelope.sources import SourceReference, SourceUsed

_CLAIMS = (BlockForm.PARAGRAPH, BlockForm.ITEM, BlockForm.ROW, BlockForm.CODE)
_UNDER_A_LEAD = (BlockForm.ITEM, BlockForm.HEADER, BlockForm.ROW, BlockForm.CODE)
_MOST_LABEL_WORDS = 4
_LONGEST_LABEL = 40


@dataclass(frozen=True, slots=True)
class Cited:
    """An answer with marks numbered in display order.

    `order` contains the original numbers of the cited sources in order of first use; the first one
    is `[1]` in the text. `unknown` contains the cited numbers that have no source.
    """

    text: str
    order: tuple[int, ...]
    unknown: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MovedMark:
    """A quotation in a block, and the number of the source that it should cite instead."""

    block: int
    quote: str
    number: int


@dataclass(frozen=True, slots=True)
class SourcedText:
    """A text in Markdown, and the sources that it cites."""

    text: str
    used: tuple[SourceUsed, ...]


class _Names:
    """Recognizes lines that consist only of source names."""

    def __init__(self, sources: SourceTexts) -> None:
        names = {_bare(name) for source in sources.sources for name in source.names}
        self._names = sorted(names - {""}, key=len, reverse=True)

    def is_listing(self, block: LineBlock) -> bool:
        """Return whether a block consists only of marks and source names, optionally after a
        label.
        """
        if block.kind not in (BlockForm.PARAGRAPH, BlockForm.ITEM):
            return False
        first, *others = block.text.split("\n")
        rest = [self._strip(line) for line in (self._after_label(first), *others)]
        has_one = bool(read_marks(block.text)) or any(
            name in _bare(block.text) for name in self._names
        )
        return has_one and not any(rest)

    def has_label(self, block: LineBlock) -> bool:
        """Return whether a listing begins with a label, or has the format of footnotes."""
        first = block.text.split("\n")[0]
        is_footnote = first.lstrip().startswith("[") and bool(_bare(remove_marks(first)))
        return self._after_label(first) != first or is_footnote

    def _after_label(self, line: str) -> str:
        label, colon, rest = line.replace("\uff1a", ":").partition(":")
        is_label = bool(colon) and len(label.split()) <= _MOST_LABEL_WORDS and not read_marks(label)
        return rest if is_label and len(label) <= _LONGEST_LABEL else line

    def _strip(self, line: str) -> str:
        left = _bare(remove_marks(line))
        for name in self._names:
            left = left.replace(name, "")
        return left


def cite(answer: str, sources: SourceTexts) -> Cited:
    """Normalize the marks of an answer, and add marks to uncited blocks whose text is in a source.

    Marks of unknown sources, a list of sources written by the model, and empty headings are
    removed.
    """
    plain = write_plainly(mark_tools(answer, sources.find_tool), sources.literal)
    plain = sources.words.escape(plain)
    unknown = tuple(number for number in read_marks(plain) if number not in sources.numbers)
    text = keep_known_marks(plain, sources.numbers) if unknown else plain
    text, listed = _without_own_list(text, sources)
    text = _lift_marks(remove_empty_headings(text)).strip("\n")
    text = _add_proved(text, sources)
    if listed and (left := _select_left(text, listed, sources.numbers)):
        text = _lift_marks(f"{text}\n\n{_write(left)}")
    return _in_display_order(text, unknown)


def leave_out(text: str, indexes: Collection[int]) -> Cited:
    """Return an answer without these blocks, with renumbered marks.

    The remaining blocks keep their sources, even if a mark that covered them was removed.
    """
    blocks = read_blocks(text)
    before = zip(blocks, cover_nearby(blocks), strict=True)
    covered = {(block.kind, remove_marks(block.text)): numbers for block, numbers in before}
    left = remove_blocks(text, indexes)
    if indexes:
        left = _add_marks(
            left,
            lambda block: covered.get((block.kind, remove_marks(block.text)), ()),
            restores=True,
        )
    return _in_display_order(left, ())


def move_marks(text: str, moves: Sequence[MovedMark]) -> str:
    """Return an answer in which each quotation cites its new source; other claims keep their
    sources.

    The indexes of the blocks do not change.
    """
    lines = text.split("\n")
    for move in moves:
        block = read_blocks(text)[move.block]
        own = range(block.start, block.end)
        if block.kind in (BlockForm.PARAGRAPH, BlockForm.ITEM):
            prose = "\n".join(lines[at] for at in own)
            sign = marker(prose) if block.kind is BlockForm.ITEM else ""
            moved = f"{sign}{_move_in_prose(prose.removeprefix(sign), move)}"
            lines[block.start : block.end] = moved.split("\n")
        elif block.kind is BlockForm.ROW:
            bare = remove_marks(lines[block.start])
            lines[block.start] = _with_marks(bare, [move.number], is_row=True)
        elif (line := _line_above(read_blocks(text), move.block)) is not None:
            lines[line] = _with_marks(lines[line], [move.number])
        text = "\n".join(lines)
    return text


def find_marks_at(block: LineBlock, quote: str) -> tuple[int, ...]:
    """Return the source numbers that the sentence with a quotation cites in prose.

    A sentence without marks shares those of the next marked sentence of its block.
    """
    if block.kind not in (BlockForm.PARAGRAPH, BlockForm.ITEM):
        return ()
    parts = _split_sentences(block.text)
    at = _find_sentence(parts, quote)
    return next((marks for part in parts[at:] if (marks := read_marks(part))), ())


def cover(blocks: Sequence[LineBlock]) -> tuple[tuple[int, ...], ...]:
    """Return the source numbers that cover each block, according to the table above."""
    near = cover_nearby(blocks)
    return tuple(numbers or near[-1] for numbers in near)


def claims_something(block: LineBlock) -> bool:
    """Return whether a block contains text other than marks."""
    return block.kind in _CLAIMS and bool(block.text.strip()) and not is_only_marks(block.text)


def cover_nearby(blocks: Sequence[LineBlock]) -> list[tuple[int, ...]]:
    """Return the source numbers that cover each block, ignoring marks at the end of the answer."""
    covering = [_own(block) for block in blocks]
    firsts, inside = _find_firsts(blocks), _find_later(blocks, covering)
    for index, block in enumerate(blocks):
        if covering[index]:
            continue
        first = firsts[block.group]
        lead = _from_lead(blocks, covering, index, first)
        if inside[index] and not (first and leads_over(blocks[first - 1])):
            lead = ()
        above = covering[block.parent] if block.parent is not None else ()
        covering[index] = above or tuple(dict.fromkeys((*lead, *inside[index])))
    _cover_from_below(blocks, covering)
    return covering


def uncovered(blocks: Sequence[LineBlock], covering: Sequence[tuple[int, ...]]) -> Iterator[int]:
    """Yield the indexes of blocks that contain a claim but are not covered by any mark."""
    for index, block in enumerate(blocks):
        if claims_something(block) and not covering[index]:
            yield index


def without_blocks(
    cited: SourcedText,
    indexes: Collection[int],
    references: Sequence[SourceReference],
    context: str,
    typed: Collection[str] = (),
) -> SourcedText:
    """Return the text without the blocks at `indexes`, with renumbered sources.

    `indexes` refer to `citations.blocks.read_blocks`. Sources that are no longer cited are removed,
    together with links to their pages. `context` contains the texts of `references`; `typed` are
    the user's messages.
    """
    kept = leave_out(cited.text, indexes)
    by_number = {source.number: source for source in cited.used}
    used = tuple(
        by_number[number].model_copy(update={"number": shown})
        for shown, number in enumerate(kept.order, start=1)
        if number in by_number
    )
    allowed = collect_allowed(references_of(used, references), context, typed, references)
    text = keep_links(kept.text, allowed).text
    return SourcedText(text, with_addresses(used, references, context, text, typed))


def _move_in_prose(prose: str, move: MovedMark) -> str:
    """Return a paragraph or an item with a different mark for the sentence that contains a
    quotation.

    If the previous sentence shared the old mark, the previous sentence keeps it.
    """
    parts = _split_sentences(prose)
    at = _find_sentence(parts, move.quote)
    shared = next((marks for part in parts[at:] if (marks := read_marks(part))), ())
    unmarked = at > 0 and not read_marks(parts[at - 1])
    if unmarked:
        parts[at - 1] = _mark_sentence(parts[at - 1], shared)
    parts[at] = _mark_sentence(remove_marks(parts[at]), [move.number])
    return "".join(parts)


def _split_sentences(prose: str) -> list[str]:
    """Split a text into sentences, keeping the white space between them."""
    parts, start = [], 0
    for sentence in sentences(prose):
        end = prose.index(sentence, start) + len(sentence)
        parts.append(prose[start:end])
        start = end
    return [*parts[:-1], parts[-1] + prose[start:]] if parts else [prose]


def _find_sentence(parts: Sequence[str], quote: str) -> int:
    """Return the index of the sentence that contains a quotation, or else of the last one."""
    return next((at for at, part in enumerate(parts) if _has_quote(part, quote)), len(parts) - 1)


def _has_quote(sentence: str, quote: str) -> bool:
    return bool(_bare(quote)) and _bare(quote) in _bare(remove_marks(sentence))


def _mark_sentence(sentence: str, numbers: Sequence[int]) -> str:
    bare = sentence.rstrip()
    return f"{bare} {_write(numbers)}{sentence[len(bare) :]}" if numbers else sentence


def _own(block: LineBlock) -> tuple[int, ...]:
    return () if block.kind is BlockForm.CODE else read_marks(block.text)


def _find_later(
    blocks: Sequence[LineBlock], own_marks: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Return, for each item and row, the marks of the next marked item or row in its group or,
    after the last one, the last marks.
    """
    following = {
        block.group: own_marks[index] for index, block in enumerate(blocks) if own_marks[index]
    }
    later: list[tuple[int, ...]] = [()] * len(blocks)
    for index in range(len(blocks) - 1, -1, -1):
        block = blocks[index]
        if block.kind in (BlockForm.ITEM, BlockForm.ROW):
            following[block.group] = own_marks[index] or following.get(block.group, ())
            later[index] = following[block.group]
    return later


def _find_firsts(blocks: Sequence[LineBlock]) -> dict[int, int]:
    """Return the index of the first block of each group."""
    return {block.group: index for index, block in reversed(list(enumerate(blocks)))}


def _from_lead(
    blocks: Sequence[LineBlock], covering: Sequence[tuple[int, ...]], index: int, first: int
) -> tuple[int, ...]:
    """Return the marks of the line above a list, table, or code that starts with block `first`."""
    if not first or blocks[index].kind not in _UNDER_A_LEAD:
        return ()
    is_lead = blocks[first - 1].kind in (BlockForm.PARAGRAPH, BlockForm.ITEM)
    return covering[first - 1] if is_lead else ()


def _cover_from_below(blocks: Sequence[LineBlock], covering: list[tuple[int, ...]]) -> None:
    """Apply marks alone on a line to the paragraph, list, table, or code above them."""
    for index, block in enumerate(blocks):
        if block.kind is not BlockForm.PARAGRAPH or not is_only_marks(block.text) or not index:
            continue
        at = index - 1
        while at > 0 and blocks[at].parent is not None and blocks[at].parent != block.parent:
            at = blocks[at].parent or 0
        group = blocks[at].group
        for other in range(index - 1, -1, -1):
            inside = blocks[other].group == group or blocks[other].start > blocks[at].start
            if not inside:
                break
            covering[other] = covering[other] or covering[index]


def _add_proved(text: str, sources: SourceTexts) -> str:
    """Add a mark to each uncovered block whose text is in a source.

    Bold headings do not get a mark, because any source that contains the same words would match.
    """
    preferred = read_marks(text)

    def find(block: LineBlock) -> tuple[int, ...]:
        number = _find(block, sources, preferred)
        return () if number is None else (number,)

    return _add_marks(text, find)


def _add_marks(
    text: str, find: Callable[[LineBlock], Sequence[int]], *, restores: bool = False
) -> str:
    """Add the marks that `find` returns to blocks that no nearby mark covers.

    If `restores` is true, covered blocks also get the marks that are missing.
    """
    blocks = read_blocks(text)
    near = cover_nearby(blocks)
    lines, firsts = text.split("\n"), _find_firsts(blocks)
    ends = {block.group: block.end for block in blocks}
    added: dict[int, list[int]] = {}
    for index, block in enumerate(blocks):
        is_open = restores or not (near[index] or _is_bold_heading(blocks, index))
        if claims_something(block) and is_open:
            numbers = [number for number in find(block) if number not in near[index]]
            added |= {index: numbers} if numbers else {}
    shared = {} if restores else _find_shared(blocks, near, added)
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for index, numbers in added.items():
        block = blocks[index]
        line = shared.get(block.group, _line_for(blocks, index, firsts[block.group]))
        places, at = (above, line) if line is not None else (below, ends[block.group])
        places[at] = list(dict.fromkeys((*places.get(at, ()), *numbers)))
    for line, numbers in above.items():
        lines[line] = _with_marks(lines[line], numbers)
    for line in sorted(below, reverse=True):
        lines[line:line] = ["", _write(below[line])]
    return _lift_marks("\n".join(lines))


def _is_bold_heading(blocks: Sequence[LineBlock], index: int) -> bool:
    return names_what_follows(blocks, index) and not leads_over(blocks[index])


def _find_shared(
    blocks: Sequence[LineBlock],
    near: Sequence[tuple[int, ...]],
    added: Mapping[int, Sequence[int]],
) -> dict[int, int]:
    """Return, by group, the line that gets a single mark for a whole list.

    This is the introductory line or, if there is none, the last item. If one source contains most
    of the items, marks on only these items would suggest that the others have no source.
    """
    groups: dict[int, list[int]] = {}
    for index, block in enumerate(blocks):
        groups.setdefault(block.group, []).append(index)
    shared: dict[int, int] = {}
    for group, items in groups.items():
        first = next((at for at in items if blocks[at].kind is BlockForm.ITEM), None)
        named = [tuple(added[at]) for at in items if at in added]
        is_shared = len(items) > 1 and len(set(named)) == 1 and 2 * len(named) >= len(items)
        if first is not None and is_shared and not any(near[at] for at in items):
            lead = _line_above(blocks, first)
            shared[group] = blocks[items[-1]].end - 1 if lead is None else lead
    return shared


def _find(block: LineBlock, sources: SourceTexts, preferred: Collection[int]) -> int | None:
    match block.kind:
        case BlockForm.CODE:
            return sources.find_code(block.text, preferred)
        case BlockForm.ROW:
            return sources.find_row(block.cells, preferred)
        case _:
            is_lead = leads_over(block) and len(block.text) <= _LONGEST_LABEL
            return None if is_lead else sources.find_prose(block.text, preferred)


def _line_for(blocks: Sequence[LineBlock], index: int, first: int) -> int | None:
    """Return the line that gets the mark of a block, or None for a new line below it.

    `first` is the first block of its group.
    """
    block = blocks[index]
    is_below = block.kind in (BlockForm.CODE, BlockForm.ROW)
    return _line_above(blocks, first) if is_below else block.end - 1


def _line_above(blocks: Sequence[LineBlock], first: int) -> int | None:
    """Return the line that introduces a list, table, or code that starts with block `first`."""
    parent = blocks[first].parent
    if parent is not None and blocks[parent].text.strip():
        return blocks[parent].end - 1
    before = blocks[first - 1] if first else None
    if before is None or before.kind is not BlockForm.PARAGRAPH or before.depth:
        return None
    return before.end - 1 if leads_over(before) else None


def _with_marks(line: str, numbers: Sequence[int], *, is_row: bool = False) -> str:
    present = read_marks(line)
    added = [number for number in numbers if number not in present]
    if not added:
        return line
    bare = line.rstrip()
    if is_row and bare.endswith("|"):
        return f"{bare[:-1].rstrip()} {_write(added)} |"
    return f"{bare} {_write(added)}"


def _write(numbers: Sequence[int]) -> str:
    return "".join(f"[{number}]" for number in numbers)


def _lift_marks(text: str) -> str:
    """Move marks alone on a line into the item, paragraph, list, table, or code that they cover."""
    text = _dedent_marks(text)
    blocks = read_blocks(text)
    lines, firsts = text.split("\n"), _find_firsts(blocks)
    lifted: set[int] = set()
    for index, block in enumerate(blocks):
        if block.kind is not BlockForm.PARAGRAPH or not is_only_marks(block.text):
            continue
        target = _find_target(blocks, index, firsts)
        if target is None or target in lifted:
            continue
        at, is_row = blocks[target].end - 1, blocks[target].kind is BlockForm.ROW
        lines[at] = _with_marks(lines[at], read_marks(block.text), is_row=is_row)
        lifted.add(index)
    return remove_blocks("\n".join(lines), lifted)


def _find_target(blocks: Sequence[LineBlock], index: int, firsts: Mapping[int, int]) -> int | None:
    """Return the block into which the marks alone on the line at `index` should be moved, or
    None.
    """
    parent = blocks[index].parent
    if parent is not None and blocks[parent].text.strip():
        return parent
    before = _find_before(blocks, index)
    if before is None:
        return None
    block, lead = blocks[before], firsts[blocks[before].group] - 1
    can_lead = lead >= 0 and blocks[lead].parent == parent and not is_only_marks(blocks[lead].text)
    match block.kind:
        case BlockForm.CODE:
            is_line = can_lead and blocks[lead].kind is BlockForm.PARAGRAPH
            return lead if is_line else None
        case BlockForm.ITEM | BlockForm.ROW:
            if can_lead and leads_over(blocks[lead]):
                return lead
            return before if block.text.strip() else None
        case BlockForm.PARAGRAPH:
            return None if is_only_marks(block.text) else before
        case _:
            return None


def _find_before(blocks: Sequence[LineBlock], index: int) -> int | None:
    """Return the block before this one that has the same parent."""
    at = index - 1
    while at >= 0 and blocks[at].parent != blocks[index].parent:
        parent = blocks[at].parent
        at = -1 if parent is None else parent
    return at if at >= 0 else None


def _dedent_marks(text: str) -> str:
    """Remove the indentation of lines that consist of marks, because it would turn them into
    code.
    """
    code, lines = code_lines(text), text.split("\n")
    for block in read_blocks(text):
        if block.kind is BlockForm.CODE and block.start not in code:
            lines[block.start] = lines[block.start].lstrip()
    return "\n".join(lines)


def _without_own_list(text: str, sources: SourceTexts) -> tuple[str, tuple[int, ...]]:
    """Return `text` without a list of sources at its end, and the numbers in that list.

    The list is recognized by its format: a label, followed only by marks and names of sources.
    """
    blocks = read_blocks(text)
    names = _Names(sources)
    first = len(blocks)
    while first and names.is_listing(blocks[first - 1]):
        first -= 1
    listing = list(range(first, len(blocks)))
    if first and listing and _is_label(blocks[first - 1]):
        listing.insert(0, first - 1)
    elif not any(names.has_label(blocks[index]) for index in listing):
        return text, ()
    if len(listing) == len(blocks):
        return text, ()
    numbers = dict.fromkeys(n for index in listing for n in _own(blocks[index]))
    return remove_blocks(text, listing), tuple(numbers)


def _is_label(block: LineBlock) -> bool:
    if block.kind is BlockForm.HEADING:
        return True
    bare = block.text.strip()
    is_named = leads_over(block) or (bare.startswith("**") and bare.endswith("**"))
    return is_named and len(bare.split()) <= _MOST_LABEL_WORDS and not read_marks(bare)


def _bare(text: str) -> str:
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def _select_left(text: str, listed: Sequence[int], given: Collection[int]) -> Sequence[int]:
    """Return the numbers of a removed list that must be kept, because a claim would otherwise have
    no source.

    A list of all given sources is not kept if the answer has other marks, because it proves
    nothing.
    """
    if set(listed) == set(given) and len(listed) > 1 and read_marks(text):
        return ()
    blocks = read_blocks(text)
    bare = uncovered(blocks, cover_nearby(blocks))
    return listed if any(not leads_over(blocks[index]) for index in bare) else ()


def _in_display_order(text: str, unknown: tuple[int, ...]) -> Cited:
    order = read_marks(text)
    shown = {number: index for index, number in enumerate(order, start=1)}
    return Cited(map_marks(text, shown.get), order, unknown)
