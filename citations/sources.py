"""Determines the links and addresses that an answer may contain, from the sources that it cites."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from citations.addresses import addresses_of, is_on, web_hosts_of
from citations.links import Allowed, LinkedPage, addresses_held, allow
from envelope.sources import SourceReference, SourceUsed


def collect_allowed(
    references: Iterable[SourceReference], context: str, said: Iterable[str] = ()
) -> Allowed:
    """Return the allowed links and addresses of an answer that cites `references`.

    `context` contains the texts of the sources, `said` what the person said: an address that they
    typed, such as `http://localhost:3000`, may be shown, and no link leads to it.
    """
    cited = tuple(references)
    pages = [LinkedPage(one.url, one.title) for one in cited if one.url is not None]
    typed = tuple(said)
    texts = (*(_text(one, context) for one in cited), *typed)
    hosts = frozenset().union(*map(web_hosts_of, typed))
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
    said: Iterable[str] = (),
) -> tuple[SourceUsed, ...]:
    """Return the sources, each with the addresses in its text that the answer shows.

    The first source also gets those that the person typed.
    """
    shown = addresses_of(answer)
    texts = {one.chunk_id: _text(one, context) for one in references} if shown else {}
    typed = frozenset(_find_typed(shown, tuple(said)) if shown else ())
    return tuple(
        _with(source, texts.get(source.chunk_id, ""), shown, frozenset() if place else typed)
        for place, source in enumerate(used)
    )


def _find_typed(shown: Collection[str], said: Sequence[str]) -> Iterator[str]:
    typed = frozenset().union(*map(addresses_of, said))
    hosts = frozenset().union(*map(web_hosts_of, said))
    return (address for address in shown if address in typed or is_on(address, hosts))


def _with(
    source: SourceUsed, text: str, shown: Collection[str], typed: Collection[str]
) -> SourceUsed:
    held = tuple(sorted(addresses_of(text).intersection(shown).union(typed)))
    return source.model_copy(update={"addresses": held}) if held else source


def _text(reference: SourceReference, context: str) -> str:
    start, end = reference.span
    return context[start:end]
