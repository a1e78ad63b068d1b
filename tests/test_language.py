"""Names, docstrings, comments and pages use standard words, and more of them with each change."""

import pytest

from tests.language_rules import (
    PAGES,
    check_module,
    check_test_module,
    name_of,
    read_allowances,
    violations_of,
)
from tests.test_project_rules import PACKAGES, ROOT, list_tracked

SAMPLE = '''"""Tells what is due, so many at once."""

told: int = 1  # the house is closed


class ShelfView:
    """Returns a list. `told` in code is a name."""

    def tell_all(self, door: str) -> None:
        """Log the request beside the answer."""
        self.booth = door
'''


def test_every_package_and_the_pages_have_an_allowance() -> None:
    assert set(read_allowances()) == {PAGES, *PACKAGES}


@pytest.mark.parametrize("package", sorted({PAGES, *PACKAGES}))
def test_private_words_and_phrases_do_not_become_more(package: str) -> None:
    found, allowed = violations_of(package), read_allowances()[package]

    assert len(found) <= allowed, (
        f"expected at most {allowed} private words or phrases, found {len(found)}: "
        + "; ".join(map(str, found))
    )


def test_private_words_are_found_in_names_docstrings_and_comments() -> None:
    found = sorted((one.line, one.found) for one in check_module("sample.py", SAMPLE))

    assert found == [
        (1, "so many"),
        (1, "tells"),
        (1, "what is"),
        (3, "house"),
        (3, "told in told"),
        (6, "shelf in ShelfView"),
        (9, "door in door"),
        (9, "tell in tell_all"),
        (10, "beside"),
        (11, "booth in booth"),
    ]


def test_standard_words_are_not_taken_for_private_ones() -> None:
    source = '"""Returns the worker that holds the lease, or raises `LeaseLost`."""\nlease = 1\n'

    assert list(check_module("sample.py", source)) == []


@pytest.mark.parametrize("folder", ["benchmarks", "tests"])
def test_names_and_prose_of_tests_and_benchmarks_have_no_private_word(folder: str) -> None:
    found = [
        str(violation)
        for path in list_tracked("*.py")
        if path.relative_to(ROOT).parts[0] == folder
        for violation in check_test_module(name_of(path), path.read_text("utf-8"))
    ]

    assert found == []


def test_private_words_are_found_in_names_and_prose_of_tests() -> None:
    found = sorted((one.line, one.found) for one in check_test_module("sample.py", SAMPLE))

    assert found == [
        (1, "so many"),
        (1, "tells"),
        (3, "told in told"),
        (9, "door in door"),
        (9, "tell in tell_all"),
        (10, "beside"),
    ]
