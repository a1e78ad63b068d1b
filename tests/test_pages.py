"""The documentation holds together: links resolve, and the README leads to every page."""

import re
from pathlib import Path

from tests.test_project_rules import PACKAGES, ROOT, list_tracked

LINK = re.compile(r"\]\(([^)\s]+)\)")
HISTORY = frozenset({"CHANGELOG.md", "upgrading.md"})
"""These pages name files as they were."""
FOLDERS = frozenset({*PACKAGES, "benchmarks", "docs", "tests"})
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def links_of(page: Path) -> list[str]:
    """Return the link targets of a page, without those in code and those of the web."""
    text = FENCE.sub("", page.read_text("utf-8"))
    text = re.sub(r"`[^`\n]*`", "", text)
    return [target for target in LINK.findall(text) if "://" not in target]


def anchors_of(page: Path) -> set[str]:
    """Return the anchors that a reader's browser finds on a page, in GitHub's form."""
    text = FENCE.sub("", page.read_text("utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def pages() -> list[Path]:
    written = {*list_tracked("*.md"), *list_tracked("docs/*.md")}
    return sorted(path for path in written if path.relative_to(ROOT).parts[0] != "examples")


def test_every_link_between_pages_leads_somewhere() -> None:
    broken = []
    for page in pages():
        for target in links_of(page):
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            if not file.exists() or (anchor and anchor not in anchors_of(file)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")

    assert broken == []


def test_the_readme_leads_to_every_page_of_documentation() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        waiting += [
            file
            for target in links_of(page)
            if (file := (page.parent / target.partition("#")[0]).resolve()).suffix == ".md"
        ]

    assert set(list_tracked("docs/*.md")) - reached == set()


def test_the_pages_of_measurements_are_where_their_programs_write_them() -> None:
    from benchmarks.speed.overload import PAGE as OVERLOAD
    from benchmarks.speed.page import PAGE as BENCHMARKS
    from tests.simulation.__main__ import PAGE as SIMULATION

    written = {BENCHMARKS, OVERLOAD, SIMULATION}

    assert {page.parent for page in written} == {ROOT / "docs" / "internal" / "measurements"}
    assert [page for page in written if not page.exists()] == []


def test_every_file_that_a_page_names_exists() -> None:
    named = {
        (page.relative_to(ROOT), path)
        for page in pages()
        if page.name not in HISTORY and page.parent.name != "adr"
        for path in re.findall(r"`([a-z]+/[\w./-]+\.[a-z]+)`", page.read_text("utf-8"))
        if path.split("/")[0] in FOLDERS
    }

    assert len(named) > 50
    assert sorted(f"{page}: {path}" for page, path in named if not (ROOT / path).exists()) == []
