"""The site of the documentation has every page, and no link that leads nowhere."""

from pathlib import Path, PurePosixPath

import pytest

from deploy.generate.pages import pages
from deploy.generate.site import (
    SECTIONS,
    build,
    find_dead_links,
    list_pages,
    make_navigation,
    rewrite_links,
    stage,
    write_llms,
)


def test_every_page_is_in_the_site_once_and_in_its_navigation(tmp_path: Path) -> None:
    texts = stage(tmp_path)
    navigation = make_navigation(texts)

    assert texts.keys() == list_pages().keys()
    for name in texts:
        assert navigation.count(f'"{name}"') == 1, name
    assert all(f"{name}.md" in texts for names in SECTIONS.values() for name in names)


def test_a_link_leads_to_the_page_in_the_site_and_one_to_code_becomes_its_text() -> None:
    names = {"docs/http.md": "http.md", "CHANGELOG.md": "changelog.md"}
    text = (
        "[API](../http.md#errors), [list](../../CHANGELOG.md), [code](../../broker/keys.py), "
        "[web](https://example.org/a.md), [here](#below)"
    )

    made = rewrite_links(text, PurePosixPath("docs/adr/1.md"), "adr/1.md", names)

    assert made == (
        "[API](../http.md#errors), [list](../changelog.md), code, "
        "[web](https://example.org/a.md), [here](#below)"
    )


def test_the_list_for_programs_names_every_page_with_its_first_sentence(tmp_path: Path) -> None:
    texts = {"index.md": "# Desk\n\nIt answers. More.", "a/b.md": "# Keys\n\nThese open it.\n"}

    write_llms(tmp_path, texts)

    lines = (tmp_path / "llms.txt").read_text().splitlines()
    assert lines[:3] == ["# Desk", "", "> It answers."]
    assert lines[-1] == "- [Keys](a/b.md): These open it."
    assert "These open it." in (tmp_path / "llms-full.txt").read_text()
    assert (tmp_path / "a" / "b.md").read_text() == texts["a/b.md"]


def test_a_link_to_a_missing_page_or_place_is_found(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<h1 id="top">B</h1>')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#top">1</a><a href="b.html#gone">2</a><a href="c.html">3</a>'
        '<a href="https://example.org">4</a>'
    )

    assert list(find_dead_links(tmp_path)) == ["a.html: b.html#gone", "a.html: c.html"]


@pytest.mark.long
def test_the_site_builds_without_dead_links_and_with_a_search(tmp_path: Path) -> None:
    site = build(tmp_path)

    assert (site / "index.html").is_file()
    assert list(site.rglob("search*"))


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_generated_pages_are_not_stale(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == pages()[path], "run: python -m deploy.generate.pages"
