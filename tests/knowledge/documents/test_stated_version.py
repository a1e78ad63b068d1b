"""The version that a document states, and the page whose version it is."""

import json
from datetime import date

import pytest

from knowledge.documents.stated_version import (
    find_numbers,
    parse_stated_version,
    remove_version,
)
from tests.knowledge.documents.conftest import Desk


@pytest.mark.parametrize(
    ("value", "version"),
    [
        ("1.4", "1.4"),
        (2, "2"),
        (date(2024, 5, 1), "2024-05-01"),
        (" v 2 ", "v 2"),
        (True, ""),
        (None, ""),
        (["1"], ""),
        ("x" * 41, ""),
        ("a\u0000b", ""),
    ],
)
def test_a_version_is_a_short_text_or_a_number(value: object, version: str) -> None:
    assert parse_stated_version(value) == version


def test_versions_are_compared_by_their_numbers() -> None:
    ordered = ["1", "1.4", "v1.10", "2.0", "r5", "2023", "2024-05-01", "2024-12-24"]

    assert sorted([*ordered[4:], *ordered[:4]], key=find_numbers) == ordered
    assert find_numbers("2.0.0") == find_numbers("v2")


@pytest.mark.parametrize(
    ("name", "version", "page"),
    [
        ("docs/v2/limits", "2", "docs/limits"),
        ("docs/v2/limits", "v2", "docs/limits"),
        ("docs/1.4/limits", "1.4", "docs/limits"),
        ("docs/v1.4.1/limits", "1.4", "docs/v1.4.1/limits"),
        ("policy-2023", "2023", "policy"),
        ("policy-2023-05-01", "2023-05-01", "policy"),
        ("r5/AC-5", "r5", "AC-5"),
        ("guide-1.4-limits", "1.4", "guide-1.4-limits"),
        ("guide-v1.4-limits", "1.4", "guide--limits"),
        ("docs/step-12", "2", "docs/step-12"),
        ("docs/limits", "", "docs/limits"),
        ("docs/limits", "v", "docs/limits"),
        ("2/2", "2", ""),
    ],
)
def test_names_of_versions_of_one_page_are_alike_without_the_version(
    name: str, version: str, page: str
) -> None:
    assert remove_version(name, version) == page


async def test_pages_lines_and_folders_state_versions(desk: Desk) -> None:
    desk.write("refdesk.toml", '[[documents]]\npath = "v2/*"\nversion = "2"\n')
    desk.write("v2/limits.txt", "Fifty messages.\n")
    desk.write("v2/own.md", "---\nversion: 1.10\n---\n# Own\n\nText.\n")
    desk.write("dated.md", "---\nversion: 2024-05-01\n---\n# Dated\n\nText.\n")
    desk.write("none.md", "---\nversion: [1]\n---\n# None\n\nText.\n")
    lines = [{"unit_id": "u", "text": f"{n}.", "version": n} for n in ("r4", "r5")]
    desk.write("all.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))

    result = await desk.ingest()

    assert (result.failed, result.warned) == ((), ())
    results = {name: document.stated_version for name, document in desk.index.documents.items()}
    assert results == {
        "docs/v2/limits": "2",
        "docs/v2/own": "1.10",
        "docs/dated": "2024-05-01",
        "docs/none": "",
        "u@r4": "r4",
        "u@r5": "r5",
    }
    assert {document.page for name, document in desk.index.documents.items() if name[0] == "u"} == {
        "u"
    }
