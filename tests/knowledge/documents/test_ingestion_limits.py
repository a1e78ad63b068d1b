import json
import subprocess
import sys
from pathlib import Path

import pytest

from knowledge.index.embedded import open_embedded
from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess
from tests.knowledge.documents.conftest import Desk
from tests.knowledge.documents.killed_ingestion import EMBEDDED, INDEX, STOP, STOPPED, ingest
from tests.knowledge.isolation.documents import ENDLESS
from tests.support.command_line import ROOT


@pytest.fixture
def hasty_desk(tmp_path: Path, hasty: ReaderProcess) -> Desk:
    folder = tmp_path / "docs"
    folder.mkdir()
    return Desk(folder, hasty)


@pytest.mark.slow
async def test_a_file_over_its_time_is_skipped_with_its_reason_and_the_others_are_read(
    hasty_desk: Desk,
) -> None:
    hasty_desk.write("a.md", "# A\n\nOne.\n")
    hasty_desk.write("b.rst", ENDLESS)
    hasty_desk.write("c.md", "# C\n\nThree.\n")

    result = await hasty_desk.ingest()

    assert result.failed == (("b.rst", "took longer than 1 s to read"),)
    assert set(hasty_desk.index.documents) == {"docs/a", "docs/c"}


@pytest.mark.slow
async def test_a_slow_index_page_takes_no_title_from_its_folder(hasty_desk: Desk) -> None:
    hasty_desk.write("routing/README.rst", ENDLESS)
    hasty_desk.write("routing/a.md", "# A\n\nOne.\n")

    result = await hasty_desk.ingest()

    assert [source for source, _ in result.failed] == ["routing/README.rst"]
    assert hasty_desk.index.documents["docs/routing/a"].crumbs == ("Routing", "A")


@pytest.mark.slow
async def test_a_file_over_its_time_keeps_its_last_version(hasty_desk: Desk) -> None:
    hasty_desk.write("b.rst", "B\n=\n\nTwo.\n")
    await hasty_desk.ingest()
    hasty_desk.write("b.rst", ENDLESS)

    result = await hasty_desk.ingest()

    assert (result.removed, len(result.failed)) == (0, 1)
    assert hasty_desk.index.documents["docs/b"].content == "# B\n\nTwo."


@pytest.mark.slow
async def test_a_file_of_many_documents_has_a_time_for_all_of_them(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    with ReaderProcess(ReadingLimits(seconds=0.001)) as reader:
        desk = Desk(folder, reader)
        lines = [json.dumps({"passage_id": f"p{n}", "text": "One. " * 900}) for n in range(90)]
        desk.write("all.jsonl", "\n".join(lines))

        result = await desk.ingest()

    assert result.failed[-1][0] == "all.jsonl"
    assert "the rest was left out" in result.failed[-1][1]


async def test_lines_that_fail_for_one_reason_are_one_note_with_their_number(desk: Desk) -> None:
    questions = "\n".join('{"question": "How?", "answer": "So."}' for _ in range(26))
    desk.write("questions.jsonl", f"{questions}\nno JSON\n")

    result = await desk.ingest()

    (first, reason), other, (source, repeated) = result.failed
    assert first == "questions.jsonl:1"
    assert reason.startswith("expected the keys")
    assert other[0] == "questions.jsonl:27"
    assert source == "questions.jsonl"
    assert repeated == f"25 further lines could not be read for this reason: {reason}"


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


@pytest.mark.slow
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
    assert 0 < len(loaded) == len(first)

    capsys.readouterr()
    result = await ingest(documents, data, stops=False)

    again = [line for line in capsys.readouterr().out.splitlines() if line.startswith(EMBEDDED)]
    assert (result.unchanged, result.added, result.failed) == (len(first), 5 - len(first), ())
    assert len(again) == result.added
    assert set(again).isdisjoint(first)
