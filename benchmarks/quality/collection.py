"""Ingests a folder's documents into a temporary index, with a searcher over it."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from config.settings import Settings
from deploy.assembly.knowledge import Knowledge, make_searcher
from knowledge.embedding import Embedder, local_embedder
from knowledge.index.embedded import open_embedded
from knowledge.index.qdrant import Identity
from knowledge.ingestion import ingest
from knowledge.ingestion_report import PlainReport
from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess
from knowledge.rule_descriptions import RuleDescriber


@asynccontextmanager
async def open_collection(
    corpus: Sequence[Path], settings: Settings, embedder: Embedder | None
) -> AsyncIterator[Knowledge]:
    """Provide a temporary index of these files."""
    model = local_embedder() if embedder is None else embedder
    with tempfile.TemporaryDirectory(prefix="refdesk-evaluate-") as folder:
        identity = Identity("evaluate", "desk", model.name, model.dimensions)
        index = await open_embedded(Path(folder), identity)
        try:
            with ReaderProcess(ReadingLimits()) as reader:
                await ingest(
                    corpus,
                    index,
                    model,
                    RuleDescriber(),
                    reader,
                    PlainReport(lambda _line: None),
                    language_of=lambda _text: "en",
                )
            yield Knowledge(index, model, make_searcher(settings, index, model))
        finally:
            await index.close()
