"""Determines the links and addresses that an answer may contain, from the sources that it cites."""

from collections.abc import Collection, Iterable, Sequence

from citations.addresses import addresses_of
from citations.links import Allowed, LinkedPage, addresses_held, allow
from envelope.sources import SourceReference, SourceUsed


def collect_allowed(references: Iterable[SourceReference], context: str) -> Allowed:
    """Return the allowed links and addresses of an answer that cites `references`.

    `context` contains the texts of the sources.
    """
    cited = tuple(references)
    pages = [LinkedPage(one.url, one.title) for one in cited if one.url is not None]
    return allow(pages, held=addresses_held(_text(one, context) for one in cited))


def references_of(
    used: Iterable[SourceUsed], references: Sequence[SourceReference]
) -> tuple[SourceReference, ...]:
    """Return the references that an answer cites."""
    chunks = {source.chunk_id for source in used}
    return tuple(reference for reference in references if reference.chunk_id in chunks)


def with_addresses(
    used: Iterable[SourceUsed], references: Sequence[SourceReference], context: str, answer: str
) -> tuple[SourceUsed, ...]:
    """Return the sources, each with the addresses in its text that the answer shows."""
    shown = addresses_of(answer)
    texts = {one.chunk_id: _text(one, context) for one in references} if shown else {}
    return tuple(_with(source, texts.get(source.chunk_id, ""), shown) for source in used)


def _with(source: SourceUsed, text: str, shown: Collection[str]) -> SourceUsed:
    held = tuple(sorted(addresses_of(text).intersection(shown)))
    return source.model_copy(update={"addresses": held}) if held else source


def _text(reference: SourceReference, context: str) -> str:
    start, end = reference.span
    return context[start:end]
