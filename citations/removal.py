"""Removes blocks from a cited answer together with the sources and links that go with them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from citations.citing import leave_out
from citations.links import keep_links
from citations.sources import collect_allowed, references_of, with_addresses
from envelope.sources import SourceReference, SourceUsed


@dataclass(frozen=True, slots=True)
class SourcedText:
    """A text in Markdown, and the sources that it cites."""

    text: str
    used: tuple[SourceUsed, ...]


def without_blocks(
    cited: SourcedText,
    indexes: Collection[int],
    references: Sequence[SourceReference],
    context: str,
    typed: Collection[str] = (),
) -> SourcedText:
    """Return the text without the blocks at `indexes`, its sources numbered from 1 again.

    `indexes` are those of `citations.blocks.read_blocks`. Sources that nothing else cites are left
    out, and so are links to their pages. `context` holds the texts of `references`; `typed` is what
    the person typed.
    """
    kept = leave_out(cited.text, indexes)
    by_number = {source.number: source for source in cited.used}
    used = tuple(
        by_number[number].model_copy(update={"number": shown})
        for shown, number in enumerate(kept.order, start=1)
        if number in by_number
    )
    allowed = collect_allowed(references_of(used, references), context, typed)
    text = keep_links(kept.text, allowed).text
    return SourcedText(text, with_addresses(used, references, context, text, typed))
