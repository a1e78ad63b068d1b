"""Determines the links and addresses that an answer may contain, from the sources that it cites."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from citations.addresses import addresses_of, is_on, web_hosts_of
from citations.links import Allowed, LinkedPage, addresses_held, allow
from envelope.sources import SourceReference, SourceUsed


def collect_allowed(
    references: Iterable[SourceReference], context: str, typed: Iterable[str] = ()
) -> Allowed:
    """Return the allowed links and addresses of an answer that cites `references`.

    `context` contains the texts of the sources, `typed` what the person typed: an address in
    it, such as `http://localhost:3000`, may be shown, and no link leads to it.
    """
    cited = tuple(references)
    pages = [LinkedPage(one.url, one.title) for one in cited if one.url is not None]
    own = tuple(typed)
    texts = (*(_text(one, context) for one in cited), *own)
    hosts = frozenset().union(*map(web_hosts_of, own))
    return allow(pages, held=addresses_held(texts), hosts=hosts)


def references_of(
    used: Iterable[SourceUsed], references: Sequence[SourceReference]
) -> tuple[SourceReference, ...]:
    """Return the references that an answer cites."""
    chunks = {source.chunk_id for source in used}
    return tuple(reference for reference in references if reference.chunk_id in chunks)


def with_addresses(
    used: Iterable[SourceUsed],
    references: Sequence[SourceReference],
    context: str,
    answer: str,
    typed: Iterable[str] = (),
) -> tuple[SourceUsed, ...]:
    """Return the sources, each with the addresses in its text that the answer shows.

    The first source also gets those that the person typed.
    """
    shown = addresses_of(answer)
    texts = {one.chunk_id: _text(one, context) for one in references} if shown else {}
    own = frozenset(_find_typed(shown, tuple(typed)) if shown else ())
    return tuple(
        _with(source, texts.get(source.chunk_id, ""), shown, frozenset() if place else own)
        for place, source in enumerate(used)
    )


def _find_typed(shown: Collection[str], typed: Sequence[str]) -> Iterator[str]:
    own = frozenset().union(*map(addresses_of, typed))
    hosts = frozenset().union(*map(web_hosts_of, typed))
    return (address for address in shown if address in own or is_on(address, hosts))


def _with(
    source: SourceUsed, text: str, shown: Collection[str], typed: Collection[str]
) -> SourceUsed:
    held = tuple(sorted(addresses_of(text).intersection(shown).union(typed)))
    return source.model_copy(update={"addresses": held}) if held else source


def _text(reference: SourceReference, context: str) -> str:
    start, end = reference.span
    return context[start:end]
