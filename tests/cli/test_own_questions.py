"""The project's own pages contain what its own questions need."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from cli.commands.check import read_golden
from deploy.assembly.ingestion import ingest_here
from knowledge.checks import CheckQuestion, SearchOptions, compare, take_snapshot
from knowledge.index.embedded import open_embedded
from knowledge.index.qdrant import Identity
from knowledge.ingestion_report import PlainReport
from knowledge.open_index import OpenIndex
from knowledge.search.searcher import LevelSearcher
from tests.support.app_harness import EXAMPLES, ROOT, settings_of
from tests.support.embedders import UniformEmbedder, Vectors

OPTIONS = SearchOptions(limit=50, context_tokens=8000, language_of=lambda _text: "en")
LEAST_QUESTIONS = 40


class WordEmbedder(UniformEmbedder):
    """Embeds a text by its words alone: quick, and the same on every machine."""

    name = "words"
    dimensions = 64

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return [self._embed_one(text) for text in texts]

    def _embed_one(self, text: str) -> Sequence[float]:
        vector = [1e-3] * self.dimensions
        for word in text.casefold().split():
            vector[hashlib.blake2b(word.encode()).digest()[0] % self.dimensions] += 1.0
        length = sum(one * one for one in vector) ** 0.5
        return [one / length for one in vector]


def list_missing(questions: Sequence[CheckQuestion], missing: dict[str, tuple[str, ...]]) -> str:
    return "\n".join(f"{one.text}: {missing[one.id]}" for one in questions if missing[one.id])


async def test_the_pages_of_this_project_answer_its_own_questions(tmp_path: Path) -> None:
    examples = [one for one in read_golden([EXAMPLES / "golden/golden.toml"]) if one.pages]
    own = read_golden([ROOT / "docs/questions.yaml"])
    pages = {ROOT / "docs" / page for one in own for page in one.pages}
    embedder = WordEmbedder()
    index = await open_embedded(tmp_path, Identity("t", "own", embedder.name, embedder.dimensions))
    opened = OpenIndex(index, embedder, LevelSearcher(index, embedder))
    sources = [EXAMPLES / "sms_platform", *sorted(pages)]
    try:
        await ingest_here(settings_of(tmp_path), opened, sources, PlainReport(lambda _line: None))
        questions = [*examples, *own]
        found = await take_snapshot(opened, questions, OPTIONS)
        result = compare(questions, found, found)
    finally:
        await index.close()

    assert len(questions) >= LEAST_QUESTIONS
    missing = {one.question.id: one.missing for one in result.results}
    assert not any(missing.values()), list_missing(questions, missing)
    ranks = [one.rank_after for one in result.results]
    assert None not in ranks
