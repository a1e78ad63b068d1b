import pytest

from deploy.documents import DOCS, pages


@pytest.mark.parametrize("name", ["flow.md", "contracts.md", "settings.md"])
def test_generated_pages_are_not_stale(name: str) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")

    assert written == pages()[name], "run: python -m deploy.documents"
