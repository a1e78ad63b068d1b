from pathlib import Path

import pytest

from knowledge.documents.formats import Item
from knowledge.documents.front_matter import find_stated_language, make_sample
from knowledge.documents.page import Block, BlockKind, Page
from knowledge.documents.survey import survey

ENGLISH = "Every employee has thirty days of vacation a year, and asks the lead for them early."
CROATIAN = "Svaki zaposlenik ima trideset dana godišnjeg odmora, a voditelja pita na vrijeme."


def language_of(text: str) -> str:
    return "hr" if "zaposlenik" in text else "en"


def name_title(item: Item, *_: object) -> str:
    return item.source


def write(root: Path, **texts: str) -> Path:
    for name, text in texts.items():
        file = root / f"{name.replace('__', '/')}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Page\n\n{text}\n")
    return root


def languages_in(root: Path) -> dict[str, str | None]:
    locations = survey(root, name_title, language_of).locations
    return {place.name: place.language for place in locations.values()}


@pytest.mark.parametrize("folder", ["hr", "it", "docs"])
def test_a_department_whose_name_is_a_code_of_a_language_states_none(
    tmp_path: Path, folder: str
) -> None:
    texts = {"hr__index": ENGLISH, "it__index": ENGLISH, "index": ENGLISH}
    root = write(tmp_path / folder, **texts)

    assert languages_in(root) == {
        f"{folder}/hr/index": None,
        f"{folder}/it/index": None,
        f"{folder}/index": None,
    }


def test_a_folder_whose_texts_are_in_the_language_of_its_name_states_it(tmp_path: Path) -> None:
    root = write(tmp_path / "docs", hr__index=CROATIAN, en__index=ENGLISH)

    result = survey(root, name_title, language_of).locations.values()

    assert sorted((place.name, place.language) for place in result) == [
        ("docs/index", "en"),
        ("docs/index", "hr"),
    ]


def test_a_folder_without_texts_to_look_at_states_no_language(tmp_path: Path) -> None:
    root = tmp_path / "hr"
    root.mkdir()
    (root / "rules.pdf").write_bytes(b"%PDF-")

    assert languages_in(root) == {"hr/rules.pdf": None}


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
