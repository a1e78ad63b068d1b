"""A process that ingests a folder with an embedder that costs, to be killed anywhere.

It writes the texts of each call as a line of JSON before the call, and an empty line after it.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from knowledge.index.embedded import open_embedded
from knowledge.index.qdrant import Identity
from knowledge.ingestion import ingest
from knowledge.ingestion_report import IngestionResult, PlainReport
from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess
from knowledge.kept_answers import MOST_VECTORS, VECTORS, KeptAnswers
from knowledge.rule_descriptions import RuleDescriber
from tests.support.embedders import UniformEmbedder
from worker.paid_embedder import PaidEmbedder

INDEX = Identity("tenant", "desk", "lines", 2)
READERS = 2


class PayingEmbedder(UniformEmbedder):
    """Embeds a text as its length."""

    name, dimensions = INDEX.embedding, INDEX.dimensions

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        _write_line(json.dumps(list(texts)))
        await asyncio.to_thread(_write_line, "")
        return [(1.0, float(len(text))) for text in texts]


def _write_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def ingest_paying(documents: Path, data: Path) -> IngestionResult:
    """Ingest a folder into the index of a data folder."""
    index = await open_embedded(data, INDEX)
    kept = KeptAnswers(data, VECTORS, most=MOST_VECTORS)
    try:
        with ExitStack() as stack:
            return await ingest(
                [documents],
                index,
                PaidEmbedder(PayingEmbedder(), kept),
                RuleDescriber(),
                [stack.enter_context(ReaderProcess(ReadingLimits())) for _ in range(READERS)],
                PlainReport(lambda _line: None),
                language_of=lambda _text: "en",
            )
    finally:
        await index.close()


if __name__ == "__main__":
    asyncio.run(ingest_paying(Path(sys.argv[1]), Path(sys.argv[2])))
