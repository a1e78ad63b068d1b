"""An ingestion that is killed keeps what it has finished, and continues there."""

import subprocess
import sys
from pathlib import Path

import pytest

from knowledge.index.embedded import open_embedded
from tests.knowledge.documents.killed_ingestion import EMBEDDED, INDEX, STOP, STOPPED, ingest
from tests.support.command_line import ROOT

pytestmark = pytest.mark.slow

FINISHED = {"docs/a", "docs/b", "docs/c"}


def embed_until_killed(documents: Path, data: Path) -> list[str]:
    """Ingest in another process, kill it at the page `STOP`, and return the embedded texts."""
    command = [sys.executable, "-m", "tests.knowledge.documents.killed_ingestion"]
    with subprocess.Popen(
        [*command, str(documents), str(data)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            if line.strip() == STOPPED:
                break
            lines.append(line.strip())
        process.kill()
    return [line for line in lines if line.startswith(EMBEDDED)]


async def test_a_killed_ingestion_keeps_its_documents_and_embeds_none_of_them_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents, data = tmp_path / "docs", tmp_path / "data"
    documents.mkdir()
    for name in "abcde":
        text = STOP if name == "d" else f"What {name} does."
        (documents / f"{name}.md").write_text(f"# Page {name}\n\n{text}\n")

    first = embed_until_killed(documents, data)

    index = await open_embedded(data, INDEX)
    loaded = await index.load(list(await index.versions()))
    await index.close()
    assert {one.document_id for one in loaded} == FINISHED
    assert len(first) == len(FINISHED)

    capsys.readouterr()
    result = await ingest(documents, data, stops=False)

    again = [line for line in capsys.readouterr().out.splitlines() if line.startswith(EMBEDDED)]
    assert (result.unchanged, result.added, result.failed) == (3, 2, ())
    assert len(again) == 2
    assert set(again).isdisjoint(first)
