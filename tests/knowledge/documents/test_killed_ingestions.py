"""Ingestions that are killed again and again lose no document, and pay for nothing twice."""

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from knowledge.index.embedded import open_embedded
from tests.knowledge.documents.paying_ingestion import INDEX
from tests.support.command_line import ROOT

MODULE = "tests.knowledge.documents.paying_ingestion"


def pay_until_killed(documents: Path, data: Path, lines: int) -> list[Sequence[str]]:
    """Ingest in another process, kill it after some lines, and return the texts of its calls."""
    calls: list[Sequence[str]] = []
    command = [sys.executable, "-m", MODULE, str(documents), str(data)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for number, line in enumerate(process.stdout, 1):
            # A kill may cut the last line, before its call.
            if line.endswith("]\n"):
                calls.append(json.loads(line))
            if number == lines:
                process.kill()
    return calls


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("documents", "kills"),
    [pytest.param(60, 3, marks=pytest.mark.slow), pytest.param(1000, 50, marks=pytest.mark.long)],
)
async def test_every_document_is_written_once_and_paid_for_once_however_often_it_is_killed(
    documents: int, kills: int, tmp_path: Path
) -> None:
    folder, data = tmp_path / "docs", tmp_path / "data"
    folder.mkdir()
    for number in range(documents):
        (folder / f"{number:04}.md").write_text(f"# Page {number}\n\nWhat page {number} says.\n")
    chosen = random.Random(49)
    most = 4 * documents // kills
    paid: Counter[str] = Counter()
    unanswered: Counter[str] = Counter()
    for _ in range(kills):
        calls = pay_until_killed(folder, data, chosen.randint(1, min(most, 12)))
        paid.update(text for call in calls for text in call)
        unanswered.update(calls[-1] if calls else ())

    calls = pay_until_killed(folder, data, 0)
    paid.update(text for call in calls for text in call)

    index = await open_embedded(data, INDEX)
    written = await index.list_documents()
    chunks = (await index.info()).chunks
    await index.close()
    assert len(written) == len({document.id for document in written}) == documents
    assert chunks == documents
    assert len(paid) == documents
    # A kill during a call leaves nobody who could keep its answer.
    assert paid - Counter(dict.fromkeys(paid, 1)) <= unanswered
