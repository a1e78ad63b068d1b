"""A process that ingests a folder and stops at the page `STOP`, to be killed there.

It writes a line for each text that it embeds, and one when it stops.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from knowledge.index.embedded import open_embedded
from knowledge.index.qdrant import Identity
from knowledge.ingestion import ingest as read_into
from knowledge.ingestion_report import IngestionResult, PlainReport
from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess
from knowledge.rule_descriptions import RuleDescriber
from tests.support.embedders import UniformEmbedder

STOP = "The gate of this ingestion"
STOPPED = "stopped"
EMBEDDED = "embedded "
INDEX = Identity("tenant", "desk", "lines", 2)


class ReportingEmbedder(UniformEmbedder):
    """Embeds a text as its length, and prints it; never returns from the text `STOP`."""

    name = "lines"

    def __init__(self, *, stops: bool) -> None:
        self._stops = stops

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if self._stops and any(STOP in text for text in texts):
            _write_line(STOPPED)
            await asyncio.Event().wait()
        for text in texts:
            _write_line(f"{EMBEDDED}{' '.join(text.split())}")
        return [(1.0, float(len(text))) for text in texts]


def _write_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def ingest(documents: Path, data: Path, *, stops: bool) -> IngestionResult:
    """Ingest a folder into the index of a data folder."""
    index = await open_embedded(data, INDEX)
    try:
        with ReaderProcess(ReadingLimits()) as reader:
            return await read_into(
                [documents],
                index,
                ReportingEmbedder(stops=stops),
                RuleDescriber(),
                [reader],
                PlainReport(lambda _line: None),
                language_of=lambda _text: "en",
            )
    finally:
        await index.close()


if __name__ == "__main__":
    asyncio.run(ingest(Path(sys.argv[1]), Path(sys.argv[2]), stops=True))
