"""Lays out quotations: source by source, each with its number, rows below the head of their table.

What only the heading says of a quotation is written above it: a change stands below its version.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from citations.claims import UnitKind, marker
from llm.offline.quoting.extracts import Extract


def lay_out(chosen: Sequence[Extract], headings: dict[int, str]) -> str:
    """Return the quotations as Markdown; `headings` has what to write above a source's, by rank."""
    return "\n\n".join(_lay_out_blocks(chosen, headings))


def _lay_out_blocks(chosen: Sequence[Extract], headings: dict[int, str]) -> Iterator[str]:
    shown: set[str] = set()
    for (kind, _, _), group in groupby(
        chosen, key=lambda e: (e.kind, e.head, _source_of(e, headings))
    ):
        run = list(group)
        heading = headings.get(run[0].rank, "")
        block = _block(kind, run)
        if not heading or heading in shown:
            yield block
            continue
        shown.add(heading)
        is_line = kind is UnitKind.SENTENCE or (kind is UnitKind.ITEM and len(run) == 1)
        yield f"{heading}: {block}" if is_line else f"{heading}: [{run[0].number}]\n\n{block}"


def _source_of(extract: Extract, headings: Collection[int]) -> int:
    """Items of one list may come from several chunks; anything else is laid out by its source."""
    if extract.kind is UnitKind.ITEM and extract.rank not in headings:
        return 0
    return extract.number


def _block(kind: UnitKind, run: Sequence[Extract]) -> str:
    cite = f"[{run[0].number}]"
    if kind is UnitKind.CODE:
        return "\n\n".join(f"{extract.text}\n\n{cite}" for extract in run)
    if kind is UnitKind.TABLE:
        return "\n".join((run[0].head, *(extract.text for extract in run))) + f"\n\n{cite}"
    if kind is UnitKind.ITEM and len(run) == 1:
        return f"{run[0].text[len(marker(run[0].text)) :]} {cite}"
    joint = "\n" if kind is UnitKind.ITEM else " "
    return joint.join(f"{extract.text} [{extract.number}]" for extract in run)
