"""Removes sentences from a cited answer together with the sources and links that go with them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from citations.citing import remove_units
from citations.links import keep_links
from citations.sources import collect_allowed, references_of, with_addresses
from envelope.sources import SourceReference, SourceUsed


@dataclass(frozen=True, slots=True)
class SourcedText:
    """A text in Markdown, and the sources that it cites."""

    text: str
    used: tuple[SourceUsed, ...]


def remove_cited_units(
    cited: SourcedText,
    places: Collection[int],
    references: Sequence[SourceReference],
    context: str,
) -> SourcedText:
    """Return the text without the units at `places`, its sources numbered from 1 again.

    `places` are indices of `citations.claims.split_units`. Sources that no other unit cites are
    left out, and so are links to their pages. `context` holds the texts of `references`.
    """
    if not places:
        return cited
    kept = remove_units(cited.text, places)
    by_number = {source.number: source for source in cited.used}
    used = tuple(
        by_number[number].model_copy(update={"number": shown})
        for shown, number in enumerate(kept.order, start=1)
        if number in by_number
    )
    text = keep_links(kept.text, collect_allowed(references_of(used, references), context)).text
    return SourcedText(text, with_addresses(used, references, context, text))
