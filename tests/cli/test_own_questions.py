"""The project's own pages contain what its own questions need."""

from collections.abc import Sequence
from pathlib import Path

from cli.commands.check import read_golden
from deploy.assembly.ingestion import ingest_here
from deploy.assembly.knowledge import make_embedder
from knowledge.checks import CheckQuestion, compare, take_snapshot
from knowledge.index.embedded import open_embedded
from knowledge.index.qdrant import Identity
from knowledge.ingestion_report import PlainReport
from knowledge.open_index import OpenIndex
from knowledge.port import SearchRequest
from knowledge.search.searcher import LevelSearcher
from tests.support.app_harness import EXAMPLES, ROOT, settings_of

LEAST_QUESTIONS = 40


def make_request(question: CheckQuestion) -> SearchRequest:
    return SearchRequest(
        question=question.text,
        text=question.text,
        language="en",
        limit=50,
        context_tokens=8000,
        reranked=True,
    )


def list_missing(questions: Sequence[CheckQuestion], missing: dict[str, tuple[str, ...]]) -> str:
    return "\n".join(
        f"{question.text}: {missing[question.id]}" for question in questions if missing[question.id]
    )


async def test_the_pages_of_this_project_answer_its_own_questions(tmp_path: Path) -> None:
    examples = [
        question for question in read_golden([EXAMPLES / "golden/golden.toml"]) if question.pages
    ]
    own = read_golden([ROOT / "docs/questions.yaml"])
    pages = {ROOT / "docs" / page for item in own for page in item.pages}
    embedder = make_embedder(settings_of(tmp_path))
    index = await open_embedded(tmp_path, Identity("t", "own", embedder.name, embedder.dimensions))
    opened = OpenIndex(index, embedder, LevelSearcher(index, embedder))
    sources = [EXAMPLES / "sms_platform", *sorted(pages)]
    try:
        await ingest_here(settings_of(tmp_path), opened, sources, PlainReport(lambda _line: None))
        # Without a model, nobody translates a question for the shipped embedding model.
        questions = [example for example in (*examples, *own) if example.language in {"", "en"}]
        snapshot = await take_snapshot(opened, questions, make_request)
        result = compare(questions, snapshot, snapshot)
    finally:
        await index.close()

    assert len(questions) >= LEAST_QUESTIONS
    missing = {
        question_result.question.id: question_result.missing for question_result in result.results
    }
    assert not any(missing.values()), list_missing(questions, missing)
    unranked = [
        question_result.question.text
        for question_result in result.results
        if question_result.rank_after is None
    ]
    assert unranked == []
