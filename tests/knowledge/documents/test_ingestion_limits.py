import json
from pathlib import Path

import pytest

from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess
from tests.knowledge.documents.conftest import Desk
from tests.knowledge.isolation.documents import ENDLESS


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
    assert "its rest was left out" in result.failed[-1][1]


async def test_a_thousand_lines_that_cannot_be_read_are_counted(desk: Desk) -> None:
    desk.write("all.jsonl", "{}\n" * 250 + json.dumps({"passage_id": "p", "text": "One."}))

    result = await desk.ingest()

    assert len(result.failed) == 2
    source, reason = result.failed[-1]
    assert source == "all.jsonl"
    assert reason.startswith("249 more of its lines could not be read for this reason: expected")
    assert set(desk.index.documents) == {"p"}
