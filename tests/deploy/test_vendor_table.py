"""Eight pages side by side without a model: each thing has a passage of its own page."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from fakeredis import FakeServer

from broker.embedded_redis import Endpoint
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import Knowledge, make_searcher, open_index
from knowledge.embedding import Embedder
from knowledge.ingestion_report import PlainReport
from tests.support.app_harness import run_app, settings_of

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent.parent / "recordings" / "vendors"
VENDORS: list[str] = list(json.loads((FOLDER / "expected.json").read_text("utf-8"))["cells"])


async def ask(folder: Path, embedder: Embedder, question: str) -> Any:
    settings = settings_of(folder, way="swarm", domain_scope="vendors of archive storage")
    await run_ingestion(settings, sorted(FOLDER.glob("*.md")), PlainReport(lambda _line: None))
    index = await open_index(settings, embedder)
    knowledge = Knowledge(index, embedder, make_searcher(settings, index, embedder))
    redis = Endpoint(url="", durable=False, played=FakeServer())
    async with run_app(settings, redis, knowledge) as harness:
        reply = await harness.driver().say(question)
    await index.close()
    return reply


def test_each_vendor_of_the_question_has_a_row_with_a_passage_of_its_own_page(
    tmp_path: Path, embedder: Embedder
) -> None:
    *most, last = VENDORS
    question = f"Compare {', '.join(most)} and {last}: what is the notice period?"

    reply = asyncio.run(ask(tmp_path, embedder, question))

    rows = [one for one in reply["text"].splitlines() if one.startswith("| ")][2:]
    titles = {one["number"]: one["title"] for one in reply["sources"]}
    assert [row.split(" | ")[0].strip("| *") for row in rows] == VENDORS
    for vendor, row in zip(VENDORS, rows, strict=True):
        number = int(row.rpartition("[")[2].partition("]")[0])
        assert titles[number] == vendor
