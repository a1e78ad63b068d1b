import pytest

from deploy.generate.pages import DOCS, pages


@pytest.mark.parametrize("name", ["flow.md", "contracts.md", "settings.md"])
def test_generated_pages_are_not_stale(name: str) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")

    assert written == pages()[name], "run: python -m deploy.generate.pages"
