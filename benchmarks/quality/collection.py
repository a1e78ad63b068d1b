"""Ingests the documents of a folder into a temporary index and searches it."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from cli.evaluation.retrieval import ingest_corpus
from config.settings import Settings
from deploy.assembly.knowledge import Knowledge
from knowledge.embedding import Embedder, local_embedder
from knowledge.index.embedded import open_embedded
from knowledge.index.qdrant import Identity
from knowledge.search.searcher import LevelSearcher


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
            await ingest_corpus(corpus, index, model)
            yield Knowledge(
                index,
                model,
                LevelSearcher(index, model),
            )
        finally:
            await index.close()
