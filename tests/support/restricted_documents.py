"""Pages for everybody and pages of groups, ingested, and the desk over them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from deploy.assembly.ingestion_run import run_ingestion
from knowledge.embedding import Embedder
from knowledge.ingestion_report import PlainReport
from llm.port import Model
from tests.support.app_harness import AppHarness, open_knowledge_with, run_app, settings_of
from tests.support.empty_redis import play_redis

WORD = "xylophone"
"""What only the hidden pages say."""
AMOUNT = "9000 euros"
SITE = "https://handbook.acme.test"
PAGES = {
    "leave.md": f"---\nurl: {SITE}/leave\n---\n# Annual leave\n\nEvery employee has thirty days of "
    "leave in a year. Ask for leave in the calendar, two weeks before it begins.\n",
    "travel.md": "# Travel costs\n\nThe company pays train tickets of the second class. Hand the "
    "receipts in within thirty days.\n",
    "rooms.md": "# Meeting rooms\n\nRooms are booked in the calendar. A room holds ten people.\n",
}
HIDDEN = {
    "bonus.md": f"---\ngroups: [board, hr]\nurl: {SITE}/bonus\n---\n# Bonus of managers\n\nThe "
    f"{WORD} bonus of a manager is {AMOUNT} a year. It is paid in May, after the leave of the "
    "board.\n",
    "falcon.md": f"---\ngroups: [board]\n---\n# Project Falcon\n\nProject Falcon closes the "
    f"{WORD} office in Lyon. Travel costs of Falcon are paid in May.\n",
}


def write_pages(folder: Path, pages: dict[str, str]) -> Path:
    folder.mkdir(parents=True)
    for name, text in pages.items():
        (folder / name).write_text(text)
    return folder


async def ingest_pages(data: Path, pages: dict[str, str]) -> Path:
    """Return a data folder with these pages; the folder that they come from is named alike."""
    quiet = PlainReport(lambda _line: None)
    folder = write_pages(data / "docs", pages)
    result = await asyncio.to_thread(asyncio.run, run_ingestion(settings_of(data), [folder], quiet))
    assert (result.failed, result.added) == ((), len(pages))
    return data


@asynccontextmanager
async def open_app(
    data: Path, embedder: Embedder, model: Model | None = None, **changes: object
) -> AsyncIterator[AppHarness]:
    settings = settings_of(data, **changes)
    async with (
        open_knowledge_with(settings, embedder) as known,
        run_app(settings, play_redis(), known, model) as app,
    ):
        yield app
