"""`refdesk audit`: the citations of an answer against the index of the example."""

import json
from pathlib import Path

import pytest

from cli.commands.audit import EXIT_WRONG_CITATIONS
from cli.main import EXIT_ERROR, main
from tests.support.folder_copy import copy_folder

GOOD = """Delivery reports are kept for 90 days, message texts for 30 days. [1]

Sources:
  [1] Delivery reports > How long reports are kept
      api/delivery-reports.md#how-long-reports-are-kept
"""


@pytest.fixture
def answer(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of an answer, next to a copy of the index."""
    copy_folder(library, tmp_path / "data")
    monkeypatch.setenv("REFDESK_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "answer.md"


@pytest.mark.slow
def test_an_answer_with_good_citations_passes(
    answer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer.write_text(GOOD, "utf-8")

    status = main(["audit", str(answer)])

    shown = capsys.readouterr().out
    assert (status, shown.splitlines()[-1]) == (0, "1 of 1 citations are correct")
    assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "90 days",
            "120 days",
            "kept for 120 days”, but the source says “reports are kept for 90 days",
        ),
        ("[1] Delivery reports >", "[1] Delivery receipts >", "no document or passage"),
    ],
)
def test_a_planted_false_citation_is_found(
    answer: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, problem: str
) -> None:
    text = GOOD.replace(old, new, 1)
    if "receipts" in new:
        text = text.replace("api/delivery-reports.md#how-long-reports-are-kept", "api/receipts.md")
    answer.write_text(text, "utf-8")

    status = main(["audit", str(answer), "--json"])

    body = json.loads(capsys.readouterr().out)
    assert status == EXIT_WRONG_CITATIONS
    assert body["valid"] is False
    assert body["invalid_citations"] == ["[1]"]
    assert problem in body["citations"][0]["problems"][0]


def test_a_file_that_is_missing_or_no_text_is_an_error(
    answer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(answer)]) == EXIT_ERROR
    assert "the Markdown file " in capsys.readouterr().err
    answer.write_bytes(b"\xff\xfe\x00")
    assert main(["audit", str(answer)]) == EXIT_ERROR
    assert "is not valid UTF-8" in capsys.readouterr().err
