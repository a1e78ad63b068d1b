"""Where the links of a page stand: an address is given only where that is proved."""

import tracemalloc

from knowledge.documents.page import Block, BlockKind
from knowledge.link_places import Link, find_label, find_linked

A, B, C = "https://a.example", "https://b.example", "https://c.example"


def link(blocks: list[str], *links: Link) -> dict[int, list[Link]]:
    """Return the links of the blocks that have some."""
    linked = find_linked([Block(BlockKind.TEXT, text) for text in blocks], links)
    return {number: list(own) for number, own in linked.items()}


def test_a_label_that_stands_as_often_as_it_is_a_link_is_one_everywhere() -> None:
    linked = link(["Read the guide.", "The guide again."], ("guide", A), ("guide", B))

    assert linked == {0: [("guide", A)], 1: [("guide", B)]}


def test_a_label_that_also_stands_alone_is_no_link() -> None:
    assert link(["Chapter 1 has the plan."], ("1", A)) == {0: [("1", A)]}
    assert link(["Plan 1 of 1."], ("1", A)) == {}


def test_links_around_it_prove_where_a_label_is_a_link() -> None:
    blocks = ["The term stands here first.", "Read alpha, then term, then omega.", "A last term."]

    linked = link(blocks, ("alpha", A), ("term", B), ("omega", C))

    assert linked == {1: [("alpha", A), ("omega", C), ("term", B)]}


def test_a_label_with_two_addresses_in_one_block_gets_none() -> None:
    assert link(["See here and here."], ("here", A), ("here", B)) == {}


def test_code_has_no_links() -> None:
    code = Block(BlockKind.CODE, "```\nguide\n```")

    assert find_linked([code, Block(BlockKind.TEXT, "A guide.")], [("guide", A)]) == {
        1: [("guide", A)]
    }


def test_a_label_does_not_stand_in_names_and_addresses() -> None:
    text = "imap.beta.org, beta-test, me@beta, betas and beta."

    assert list(find_label(text, "beta")) == [text.rindex("beta")]


def test_the_words_of_a_wide_sheet_need_less_memory_than_its_text() -> None:
    sheet = Block(BlockKind.TABLE, "12.5 | " * 100_000)

    tracemalloc.start()
    linked = find_linked([sheet], [("Data sheet", "https://plant.example/p1.pdf")])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert not linked
    assert peak < len(sheet.text)
