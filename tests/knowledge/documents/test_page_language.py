"""The language that a page states, and the text from which its language is found otherwise."""

import pytest

from knowledge.documents.front_matter import find_stated_language, make_sample
from knowledge.documents.page import Block, BlockKind, Page


@pytest.mark.parametrize(
    ("stated", "language"),
    [("de", "de"), ("pt-BR", "pt"), ("EN_us", "en"), ("", None), (None, None), ("../x", None)],
)
def test_a_page_states_its_language_by_a_code(stated: str | None, language: str | None) -> None:
    assert find_stated_language(make_page(language=stated)) == language


def test_code_and_what_follows_two_thousand_characters_say_nothing_about_the_language() -> None:
    blocks = (
        Block(BlockKind.CODE, "for i in range(3): pass"),
        Block(BlockKind.TEXT, "Erste Seite. " * 200),
        Block(BlockKind.TEXT, "The last page."),
    )

    sample = make_sample(make_page(*blocks))

    assert sample.startswith("A title\nErste Seite.")
    assert "range" not in sample
    assert "last" not in sample


def make_page(*blocks: Block, language: str | None = None) -> Page:
    return Page("page.md", "A title", blocks, language=language)
