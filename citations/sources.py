"""Determines the links and addresses that an answer may contain.

Also writes the labels of the options that a user can choose from, and of the closest pages that are
offered.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from citations.addresses import addresses_of, origins_of, page_of
from citations.composed_addresses import read_stated_parts
from citations.links import Allowed, LinkedPage, addresses_held, allow, plain_line
from citations.verbatim import as_markdown
from envelope.conversation import ClarificationOption, SuggestedAction
from envelope.sources import SearchResult, SourceReference, SourceUsed

MOST_PAGES = 4


def collect_allowed(
    cited: Iterable[SourceReference],
    context: str,
    typed: Iterable[str] = (),
    references: Iterable[SourceReference] = (),
) -> Allowed:
    """Return the allowed links and addresses of an answer that cites `cited`.

    `context` contains the texts of the sources. `typed` contains the user's messages: addresses in
    them, or on a host in them (`localhost:3000`), may be shown but not linked. `references`
    contains all given sources; sources from cited documents provide the parts of composed
    addresses.
    """
    cited, own = tuple(cited), tuple(typed)
    pages = [
        LinkedPage(reference.url, reference.title)
        for reference in cited
        if reference.url is not None
    ]
    titles = (part for reference in cited for part in (reference.title, *reference.heading_path))
    texts = (*titles, *(_text(reference, context) for reference in cited), *own)
    return allow(
        pages,
        held=addresses_held(texts),
        origins=frozenset().union(*map(origins_of, own)),
        documents=tuple(map(read_stated_parts, _join_documents(cited, references, context))),
    )


def cite_reference(reference: SourceReference, number: int) -> SourceUsed:
    """Return a reference as a cited source with this number."""
    fields = reference.model_dump(exclude={"span", "is_cut", "is_release_notes", "number", "found"})
    return SourceUsed.model_validate({**fields, "number": number})


def cite_references(
    order: Sequence[int], references: Sequence[SourceReference]
) -> tuple[SourceUsed, ...]:
    """Return the references with the numbers in `order`, numbered from 1 in this order."""
    by_number = {reference.number: reference for reference in references}
    return tuple(
        cite_reference(by_number[given], shown) for shown, given in enumerate(order, start=1)
    )


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
    """Add to each source those addresses in its text that the answer shows.

    The first source also gets the other addresses that may be shown, which are composed addresses
    and those in the user's messages.
    """
    used, shown = tuple(used), addresses_of(answer)
    if not used or not shown:
        return used
    allowed = collect_allowed(references_of(used, references), context, typed, references)
    own = frozenset(filter(allowed.shows, shown))
    texts = {reference.chunk_id: _text(reference, context) for reference in references}
    in_text = [own & addresses_of(texts.get(source_used.chunk_id, "")) for source_used in used]
    others = own.difference(*in_text)
    first, *further = (
        source.model_copy(update={"addresses": tuple(sorted(held))}) if held else source
        for source, held in zip(used, in_text, strict=True)
    )
    if others:
        first = first.model_copy(update={"other_addresses": tuple(sorted(others))})
    return (first, *further)


def choose_alternatives(
    options: Sequence[ClarificationOption], most: int
) -> tuple[ClarificationOption, ...]:
    """Return at most `most` options that are real alternatives.

    A location is not an alternative to a location below it. Locations with the same name get a
    distinguishing breadcrumb in brackets. Options worded by a model are kept unchanged. Returns no
    options if fewer than two remain.
    """
    cleaned = [_clean(option) for option in options]
    distinct = [option for option in dict.fromkeys(cleaned) if option.label]
    if any(option.is_worded for option in distinct):
        by_label = {option.label.casefold(): option for option in reversed(distinct)}
        kept = [option for option in distinct if by_label[option.label.casefold()] is option]
        return tuple(kept)[:most] if len(kept) > 1 else ()
    lowest = [
        option for option in distinct if not any(_is_above(option, other) for other in distinct)
    ]
    chosen = lowest if len(lowest) > 1 else distinct
    worded = {
        option.label: option for option in (_word(alternative, chosen) for alternative in chosen)
    }
    return tuple(worded.values())[:most] if len(worded) > 1 else ()


def list_nearest_pages(results: Sequence[SearchResult]) -> tuple[SuggestedAction, ...]:
    """Return actions that open the page of a search result, one per page, at most `MOST_PAGES`.

    Pages with the same title get the breadcrumb above them in brackets.
    """
    nearest = {result.document_id: result for result in reversed(results)}
    first = [result for result in results if nearest[result.document_id] is result]
    pages = [_make_page(result) for result in first[:MOST_PAGES]]
    titles = Counter(page.label for page in pages)
    return tuple(_name_crumb(page) if titles[page.label] > 1 else page for page in pages)


def list_labels(title: str, pages: Sequence[SuggestedAction]) -> str:
    """Return the labels of the pages as a Markdown list below `title`."""
    return "\n".join((title, *(f"- {as_markdown(page.label)}" for page in pages)))


def _join_documents(
    cited: Collection[SourceReference], references: Iterable[SourceReference], context: str
) -> Iterator[str]:
    """Yield the text of each cited document, joined from its sources."""
    texts: dict[str, dict[tuple[int, int], str]] = {
        _document_of(reference): {} for reference in cited
    }
    for reference in (*cited, *references):
        if (document := _document_of(reference)) in texts:
            texts[document][reference.span] = _text(reference, context)
    yield from ("\n".join(text for _, text in sorted(parts.items())) for parts in texts.values())


def _document_of(reference: SourceReference) -> str:
    return reference.chunk_id.rpartition("#")[0] or reference.chunk_id


def _text(reference: SourceReference, context: str) -> str:
    start, end = reference.span
    return context[start:end]


def _clean(option: ClarificationOption) -> ClarificationOption:
    crumbs = tuple(filter(None, map(plain_line, option.crumbs)))
    return ClarificationOption(label=plain_line(option.label), crumbs=crumbs)


def _path(option: ClarificationOption) -> tuple[str, ...]:
    """Return the breadcrumbs of an option, including the location itself."""
    ends_there = option.crumbs[-1:] == (option.label,)
    return option.crumbs if ends_there else (*option.crumbs, option.label)


def _is_above(option: ClarificationOption, other: ClarificationOption) -> bool:
    above, below = _path(option), _path(other)
    return len(above) < len(below) and below[: len(above)] == above


def _word(option: ClarificationOption, among: Sequence[ClarificationOption]) -> ClarificationOption:
    same = [other for other in among if other.label == option.label]
    if len(same) < 2:
        return option
    shared = set(_path(option)).intersection(*(_path(other) for other in same))
    distinctive = [crumb for crumb in _path(option) if crumb not in shared]
    if not distinctive:
        return option
    return option.model_copy(update={"label": f"{option.label} ({distinctive[-1]})"})


def _name_crumb(page: SuggestedAction) -> SuggestedAction:
    above = next((crumb for crumb in reversed(page.crumbs) if crumb != page.label), "")
    label = f"{page.label} ({above})" if above else page.label
    return page.model_copy(update={"label": label, "value": label})


def _make_page(result: SearchResult) -> SuggestedAction:
    """Return an action that opens a page, with its URL if it has a web URL."""
    title = plain_line(result.title)
    url = result.url if result.url is not None and page_of(result.url) is not None else None
    return SuggestedAction(
        label=title,
        value=title,
        kind="source",
        url=url,
        crumbs=tuple(map(plain_line, result.crumbs)),
        chunk_id=result.chunk_id,
        path=result.path,
        anchor=result.anchor,
    )
