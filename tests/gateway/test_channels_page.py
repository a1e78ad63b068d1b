"""What docs/channels.md promises is tested: each row of its tables names tests that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "channels.md").read_text("utf-8")
PROMISES = PAGE[PAGE.index("## How a chat channel") :]


def rows() -> list[str]:
    """The rows of all tables of promises, without their heads."""
    lines = [line for line in PROMISES.splitlines() if line.startswith("|")]
    return [line for line in lines if not line.startswith(("|---", "| feature |"))]


def test_every_promise_of_a_channel_names_its_test() -> None:
    assert len(rows()) > 50
    assert [row for row in rows() if "`test_" not in row and "as above" not in row] == []


def test_every_test_that_a_promise_names_is_there() -> None:
    written = "\n".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    there = set(re.findall(r"def (test_\w+)\(", written))
    named = re.findall(r"`(test_\w+)`", PAGE)

    assert sorted(set(named) - there) == []
