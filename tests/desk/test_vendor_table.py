"""Eight pages side by side without a model: each thing has a passage of its own page."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from deploy.assembly.ingestion_run import run_ingestion
from knowledge.embedding import Embedder
from knowledge.ingestion_report import PlainReport
from tests.support.app_harness import open_knowledge_with, run_app, settings_of
from tests.support.empty_redis import play_redis

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent.parent / "recordings" / "vendors"
VENDORS: list[str] = list(json.loads((FOLDER / "expected.json").read_text("utf-8"))["cells"])


async def ask(folder: Path, embedder: Embedder, question: str) -> Any:
    settings = settings_of(folder, way="swarm", domain_scope="vendors of archive storage")
    await run_ingestion(settings, sorted(FOLDER.glob("*.md")), PlainReport(lambda _line: None))
    async with (
        open_knowledge_with(settings, embedder) as knowledge,
        run_app(settings, play_redis(), knowledge) as harness,
    ):
        return await harness.driver().say(question)


def test_each_vendor_of_the_question_has_a_row_with_a_passage_of_its_own_page(
    tmp_path: Path, embedder: Embedder
) -> None:
    *most, last = VENDORS
    question = f"Compare {', '.join(most)} and {last}: what is the notice period?"

    reply = asyncio.run(ask(tmp_path, embedder, question))

    rows = [line for line in reply["text"].splitlines() if line.startswith("| ")][2:]
    titles = {source["number"]: source["title"] for source in reply["sources"]}
    assert [row.split(" | ")[0].strip("| *") for row in rows] == VENDORS
    for vendor, row in zip(VENDORS, rows, strict=True):
        number = int(row.rpartition("[")[2].partition("]")[0])
        assert titles[number] == vendor
