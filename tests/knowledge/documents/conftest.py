from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from knowledge.chunking import text_to_embed
from knowledge.document import Document
from knowledge.index.listing import ListedDocument
from knowledge.index.overlap import SurveySource
from knowledge.index.port import WrittenDocument
from knowledge.ingestion import Describer, ingest
from knowledge.ingestion_report import IngestionResult, PlainReport
from knowledge.isolation.reader_process import ReaderProcess
from knowledge.rule_descriptions import Description, RuleDescriber
from tests.support.embedders import UniformEmbedder


class MemoryIndex:
    """Keeps documents in a dictionary, and every write it was asked for."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.roots: dict[str, str] = {}
        self.vectors: dict[str, Sequence[Sequence[float]]] = {}
        self.puts: list[str] = []
        self.keeps_vectors = False
        self.before_put: Callable[[], None] = lambda: None

    async def list_documents(self) -> list[ListedDocument]:
        return [
            ListedDocument(
                id=identity,
                title=document.title,
                source=document.source,
                root=self.roots[identity],
                language=document.language,
                chunks=len(document.chunks),
                content_hash=document.content_hash,
                groups=document.groups,
                path=document.path,
            )
            for identity, document in self.documents.items()
        ]

    async def put(self, document: Document, vectors: Sequence[Sequence[float]], root: str) -> None:
        self.before_put()
        for chunk, vector in zip(document.chunks, vectors, strict=True):
            if not self.keeps_vectors:
                assert list(vector) == [float(len(text_to_embed(document, chunk)))]
        self.documents[document.id] = document
        self.roots[document.id] = root
        self.vectors[document.id] = vectors
        self.puts.append(document.id)

    async def remove(self, document_ids: Sequence[str]) -> None:
        for identity in document_ids:
            self.documents.pop(identity, None)
            self.roots.pop(identity, None)

    async def read_written(self, document_id: str) -> WrittenDocument | None:
        document = self.documents[document_id]
        return WrittenDocument(
            document.title,
            document.crumbs,
            Description(
                document.description, document.summary, document.keypoints, document.keywords
            ),
            tuple(zip(document.chunks, self.vectors[document_id], strict=True)),
        )

    async def connect(self) -> int:
        return 0

    async def versions(self) -> dict[str, str]:
        return {identity: document.content_hash for identity, document in self.documents.items()}


class LengthEmbedder(UniformEmbedder):
    """Embeds a text as its length."""

    def __init__(self, name: str = "lengths") -> None:
        self.name = name
        self.batches: list[int] = []

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.batches.append(len(texts))
        return [(float(len(text)),) for text in texts]


class Desk:
    """Everything an ingestion needs, with the lines it reported."""

    def __init__(self, folder: Path, *readers: ReaderProcess) -> None:
        self.folder = folder
        self.reader, *_ = self.readers = readers
        self.index = MemoryIndex()
        self.embedder = LengthEmbedder()
        self.describer: Describer = RuleDescriber()
        self.lines: list[str] = []
        self.language = "en"

    def write(self, path: str, content: str | bytes) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    async def ingest(self, *paths: Path | SurveySource) -> IngestionResult:
        return await ingest(
            paths or (self.folder,),
            self.index,
            self.embedder,
            self.describer,
            self.readers,
            PlainReport(self.lines.append),
            language_of=lambda _: self.language,
        )


@pytest.fixture
def desk(tmp_path: Path, reader: ReaderProcess) -> Desk:
    folder = tmp_path / "docs"
    folder.mkdir()
    return Desk(folder, reader)
