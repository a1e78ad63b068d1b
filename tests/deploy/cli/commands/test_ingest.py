from pathlib import Path

import pytest

from tests.support.command_line import Run


@pytest.mark.slow
def test_a_file_that_takes_too_long_is_named_and_the_others_read(
    run: Run, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = elsewhere / "documents"
    folder.mkdir()
    (folder / "good.md").write_text("# Billing\n\nInvoices are sent on the first day.\n")
    (folder / "endless.rst").write_text("`a " * 40_000)
    monkeypatch.setenv("INGESTION_FILE_SECONDS", "1")

    result = run("ingest", str(folder))

    assert result.status == 6
    assert "could not read endless.rst: took longer than 1 s to read" in result.out
    assert "documents: 1 added, 1 failed; " in result.out
