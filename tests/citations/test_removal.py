"""An answer that loses blocks loses their sources and links, and its numbers start at 1."""

from citations.citing import SourcedText, without_blocks
from envelope.sources import SourceReference, SourceUsed

PAGES = "https://docs.acme.test"
CONTEXT = f"Prices rise in May. Write to {PAGES}/help. Refunds take five days."
REFERENCES = tuple(
    SourceReference(number=number, chunk_id=name, title=name, url=f"{PAGES}/{name}", span=span)
    for number, name, span in ((1, "prices", (0, 19)), (2, "refunds", (20, len(CONTEXT))))
)
USED = tuple(
    SourceUsed(number=one.number, chunk_id=one.chunk_id, title=one.title) for one in REFERENCES
)
TEXT = f"Prices rise in May [1].\n\nRefunds take five days, see [prices]({PAGES}/prices) [2]."


def test_nothing_changes_when_no_block_is_removed() -> None:
    kept = without_blocks(SourcedText(TEXT, USED), (), REFERENCES, CONTEXT)

    assert (kept.text, kept.used) == (TEXT, USED)


def test_a_removed_block_takes_its_source_and_the_links_to_its_page_with_it() -> None:
    left = without_blocks(SourcedText(TEXT, USED), {0}, REFERENCES, CONTEXT)

    assert left.text == "Refunds take five days, see prices [1]."
    assert [(source.number, source.chunk_id) for source in left.used] == [(1, "refunds")]


def test_the_sources_left_name_the_addresses_that_the_text_left_shows() -> None:
    text = f"Prices rise in May [1].\n\nWrite to {PAGES}/help [2]."

    left = without_blocks(SourcedText(text, USED), {0}, REFERENCES, CONTEXT)

    assert [source.addresses for source in left.used] == [(f"{PAGES}/help",)]
