"""The security page names tests that exist, and leaves out no line of the lists that it answers."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "security.md"
STATES = {"tested", "by design", "documented", "partial", "not met", "n/a"}
RISKS = {
    "LLM01 Prompt injection",
    "LLM02 Sensitive information disclosure",
    "LLM03 Supply chain",
    "LLM04 Data and model poisoning",
    "LLM05 Improper output handling",
    "LLM06 Excessive agency",
    "LLM07 System prompt leakage",
    "LLM08 Vector and embedding weaknesses",
    "LLM09 Misinformation",
    "LLM10 Unbounded consumption",
}
SHORTEST_REASON = 15
"""Characters that are left of a cell without its tests."""

# How many requirements of levels 1 and 2 each section of ASVS 5.0.0 has; they are numbered from 1
# on without a gap. Sections that are missing hold requirements of level 3 alone.
REQUIREMENTS = {
    "1": {"1": 2, "2": 9, "3": 11, "4": 3, "5": 2},
    "2": {"1": 3, "2": 3, "3": 4, "4": 1},
    "3": {"2": 2, "3": 4, "4": 6, "5": 5, "7": 2},
    "4": {"1": 3, "2": 1, "3": 2, "4": 4},
    "5": {"1": 1, "2": 3, "3": 2, "4": 3},
    "6": {"1": 3, "2": 12, "3": 4, "4": 4, "5": 5, "6": 3, "8": 4},
    "7": {"1": 3, "2": 4, "3": 2, "4": 5, "5": 2, "6": 2},
    "8": {"1": 2, "2": 3, "3": 1, "4": 1},
    "9": {"1": 3, "2": 4},
    "10": {"1": 2, "2": 2, "3": 4, "4": 11, "5": 5, "6": 2, "7": 3},
    "11": {"1": 2, "2": 3, "3": 3, "4": 4, "5": 1, "6": 1},
    "12": {"1": 3, "2": 2, "3": 4},
    "13": {"1": 1, "2": 5, "3": 2, "4": 5},
    "14": {"1": 2, "2": 4, "3": 3},
    "15": {"1": 3, "2": 3, "3": 7},
    "16": {"1": 1, "2": 5, "3": 4, "4": 3, "5": 3},
    "17": {"1": 1, "2": 4, "3": 2},
}


def list_requirements() -> set[str]:
    """Return the numbers of all requirements of levels 1 and 2."""
    return {
        f"{chapter}.{section}.{number}"
        for chapter, sections in REQUIREMENTS.items()
        for section, count in sections.items()
        for number in range(1, count + 1)
    }


def section(title: str) -> str:
    """Return the text below a heading of the second level."""
    results = re.search(
        rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert results is not None, title
    return results[1]


def rows(text: str, columns: int) -> Iterator[list[str]]:
    """Yield the lines of all tables of that many columns, without their heads."""
    head = True
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            head = True
        elif not head and len(cells) == columns and set(cells[0]) - set("-"):
            yield cells
        else:
            head = False


def find_tests(cell: str) -> list[str]:
    return re.findall(r"`(tests/[\w/]+\.py::test_\w+)`", cell)


@cache
def functions_of(path: str) -> frozenset[str]:
    file = ROOT / path
    if not file.exists():
        return frozenset()
    tree = ast.parse(file.read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


def is_there(test: str) -> bool:
    path, _, name = test.partition("::")
    return name in functions_of(path)


def says_why(cell: str) -> bool:
    """Return whether a cell says something besides the names of tests."""
    return len(re.sub(r"`tests/[^`]*`[,;. ]*", "", cell)) >= SHORTEST_REASON


def numbers(cell: str) -> Iterator[str]:
    """Yield the requirements that a cell names: `1.2.6-8, 1.3.1`."""
    for part in cell.split(", "):
        result = re.fullmatch(r"(\d+\.\d+)\.(\d+)(?:-(\d+))?", part)
        assert result is not None, cell
        first, last = int(result[2]), int(result[3] or result[2])
        assert first <= last, cell
        yield from (f"{result[1]}.{number}" for number in range(first, last + 1))


def test_every_test_that_the_page_names_is_there_by_file_and_name() -> None:
    named = find_tests(PAGE.read_text())

    assert len(named) > 100
    assert [test for test in named if not is_there(test)] == []


def test_nothing_that_looks_like_a_test_is_written_in_another_form() -> None:
    page = PAGE.read_text()

    assert page.count("::test_") == len(find_tests(page))


def test_a_test_that_is_not_there_is_noticed() -> None:
    assert is_there(f"tests/{Path(__file__).name}::test_a_test_that_is_not_there_is_noticed")
    assert not is_there(f"tests/{Path(__file__).name}::test_that_nobody_wrote")
    assert not is_there("tests/test_nowhere.py::test_that_nobody_wrote")


def test_every_threat_has_a_test_or_says_why_it_has_none() -> None:
    threats = list(rows(section("Threats"), 3))

    assert len(threats) > 40
    assert [
        threat
        for threat, held, test in threats
        if not held or not (find_tests(test) or (test.startswith("none: ") and says_why(test)))
    ] == []


def test_every_risk_of_a_language_model_has_a_test_or_a_reason() -> None:
    risks = list(rows(section("OWASP top ten for LLM applications, 2025"), 4))

    assert {line for line, *_ in risks} == RISKS
    assert len(risks) == len(RISKS)
    assert [
        line for line, _, held, test in risks if not (says_why(held) and find_tests(test))
    ] == []


def test_every_requirement_of_level_two_is_answered_once() -> None:
    answered = Counter(
        number
        for cells in rows(section("OWASP ASVS 5.0.0, level 2"), 4)
        for number in numbers(cells[0])
    )

    assert list_requirements() - set(answered) == set()
    assert set(answered) - list_requirements() == set()
    assert [number for number, times in answered.items() if times > 1] == []
    assert f"All {len(list_requirements())} requirements" in PAGE.read_text()


def test_the_page_counts_its_answers() -> None:
    list_of_levels = section("OWASP ASVS 5.0.0, level 2")
    counted = Counter[str]()
    for requirement, _, state, _ in rows(list_of_levels, 4):
        counted[state] += len(list(numbers(requirement)))

    counts = {state: int(count) for state, _, count in rows(list_of_levels, 3)}

    assert counts == counted
    assert set(counts) == STATES


@pytest.mark.parametrize("chapter", REQUIREMENTS)
def test_every_answer_to_a_requirement_has_a_test_a_page_or_a_reason(chapter: str) -> None:
    below = re.split(r"^### V", section("OWASP ASVS 5.0.0, level 2"), flags=re.MULTILINE)
    part = next(text for text in below if text.startswith(f"{chapter} "))
    lines = list(rows(part, 4))

    assert lines
    for requirement, about, state, reason in lines:
        assert all(number.startswith(f"{chapter}.") for number in numbers(requirement))
        assert about, requirement
        assert state in STATES, requirement
        if state == "tested":
            assert find_tests(reason), requirement
        elif state == "documented":
            assert re.search(r"\[[^]]+\]\([^)]+\)", reason), requirement
        elif state != "n/a":
            assert says_why(reason), requirement
        else:
            assert reason, requirement


def test_every_page_that_the_page_links_exists() -> None:
    page = PAGE.read_text()
    headings = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^##+ (.+)$", page, re.MULTILINE)
    }

    for target in re.findall(r"\]\(([^)]+)\)", page):
        if target.startswith("#"):
            assert target[1:] in headings, target
        else:
            assert (PAGE.parent / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize("page", ["README.md", "SECURITY.md", "docs/operations.md"])
def test_a_short_section_links_to_the_complete_page(page: str) -> None:
    targets = re.findall(r"\]\(([^)]+)\)", (ROOT / page).read_text())

    assert PAGE in {((ROOT / page).parent / target).resolve() for target in targets}
