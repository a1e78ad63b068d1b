"""The generated pages are fresh."""

from pathlib import Path

import pytest

from deploy.generate.pages import pages


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_generated_pages_are_not_stale(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == pages()[path], "run: python -m deploy.generate.pages"
