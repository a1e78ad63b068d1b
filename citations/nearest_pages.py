"""Lists the pages that a search found, where no answer can be given."""

from collections.abc import Sequence

from citations.addresses import page_of
from citations.links import plain_line
from envelope.conversation import SuggestedAction
from envelope.sources import SearchResult

MOST_PAGES = 4


def list_nearest_pages(results: Sequence[SearchResult]) -> tuple[SuggestedAction, ...]:
    """Return the first result of each page as a page to open, at most `MOST_PAGES`."""
    nearest = {result.document_id: result for result in reversed(results)}
    first = [result for result in results if nearest[result.document_id] is result]
    return tuple(_make_page(result) for result in first[:MOST_PAGES])


def list_labels(title: str, pages: Sequence[SuggestedAction]) -> str:
    """Return the labels of the pages as a list below `title`."""
    return "\n".join((title, *(f"- {page.label}" for page in pages)))


def _make_page(result: SearchResult) -> SuggestedAction:
    """Return a page to look at, with its address if that is a web address."""
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
