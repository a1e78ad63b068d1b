import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from cli.evaluation.questions import UnknownFormatError
from cli.evaluation.retrieval import Ranking, compute_scores, evaluate
from tests.knowledge.searching.conftest import FakeReranker, WordEmbedder

PAGES = (
    {"page_id": "routes", "title": "Routes", "markdown": "# Routes\n\nA route carries messages."},
    {"page_id": "users", "title": "Users", "markdown": "# Users\n\nA user has a password."},
)
QUERIES = (
    {"query": "password of a user", "lang": "en", "kind": "question", "gold_pages": ["users"]},
    {"query": "Was trägt eine route?", "lang": "de", "kind": "question", "gold_pages": ["routes"]},
    {"query": "nothing answers this", "lang": "en", "gold_pages": []},
)


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


async def test_pages_and_queries_give_figures_per_level_language_and_kind(tmp_path: Path) -> None:
    write(tmp_path / "pages.jsonl", PAGES)
    write(tmp_path / "queries.jsonl", QUERIES)

    figures = await evaluate(tmp_path, embedder=WordEmbedder())
    again = await evaluate(tmp_path, embedder=WordEmbedder())

    json.dumps(figures)
    assert all(again[name] == figures[name] for name in ("fused", "levels", "languages", "kinds"))
    assert (figures["documents"], figures["questions"]) == (2, 2)
    assert figures["fused"] == {
        "questions": 2,
        "hit@1": 1.0,
        "hit@3": 1.0,
        "hit@5": 1.0,
        "hit@10": 1.0,
        "recall@5": 1.0,
        "ndcg@5": 1.0,
        "mrr": 1.0,
    }
    assert isinstance(figures["levels"], dict)
    assert set(figures["levels"]) == {"keywords", "semantic", "hierarchical", "summary"}
    assert isinstance(figures["languages"], dict)
    assert set(figures["languages"]) == {"de", "en"}
    assert isinstance(figures["kinds"], dict)
    assert set(figures["kinds"]) == {"question"}


async def test_a_reranker_is_measured_beside_the_search_and_its_failures_are_counted(
    tmp_path: Path,
) -> None:
    texts = ("A route and a password.", "A user of a route.", "Invoices.", "Terms.")
    more = [{"page_id": text, "title": text, "markdown": text} for text in texts]
    write(tmp_path / "pages.jsonl", [*PAGES, *more])
    write(tmp_path / "queries.jsonl", QUERIES)
    reranker = FakeReranker()
    reranker.fails = True

    figures = await evaluate(tmp_path, embedder=WordEmbedder(), reranker=reranker)

    assert isinstance(figures["reranked"], dict)
    assert isinstance(figures["fused"], dict)
    assert figures["reranked"]["mrr"] == figures["fused"]["mrr"]
    assert figures["reranked"]["failed"] == len(reranker.asked) > 0


async def test_tasks_are_asked_in_their_conversation(tmp_path: Path) -> None:
    write(
        tmp_path / "passages.jsonl",
        [
            {"passage_id": "p1", "text": "Webhooks report what was delivered."},
            {"passage_id": "p2", "text": "Reports about invoices come monthly."},
        ],
    )
    history = [
        {"speaker": "user", "text": "How do webhooks work?"},
        {"speaker": "agent", "text": "They call you."},
    ]
    asked = {"query": "And reports?", "history": history, "gold_passages": ["p1"]}
    write(
        tmp_path / "tasks.jsonl",
        [{**asked, "answerability": "ANSWERABLE"}, {**asked, "answerability": "UNDERSPECIFIED"}],
    )

    figures = await evaluate(tmp_path, embedder=WordEmbedder())

    assert figures["questions"] == 1
    assert isinstance(figures["fused"], dict)
    assert figures["fused"]["hit@1"] == 1.0


async def test_a_folder_in_an_unknown_format_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(UnknownFormatError, match=r"expected pages.jsonl.*found notes.txt"):
        await evaluate(tmp_path)
    write(tmp_path / "pages.jsonl", PAGES)
    with pytest.raises(UnknownFormatError, match=r"expected queries.jsonl.*found notes.txt"):
        await evaluate(tmp_path)
    write(tmp_path / "queries.jsonl", [{"question": "other keys"}])
    with pytest.raises(UnknownFormatError, match="expected lines with `query`"):
        await evaluate(tmp_path)
    (tmp_path / "queries.jsonl").write_text("[1]\n")
    with pytest.raises(UnknownFormatError, match=r"queries.jsonl:1: expected an object"):
        await evaluate(tmp_path)
    with pytest.raises(UnknownFormatError, match="no such folder"):
        await evaluate(tmp_path / "nowhere")


def test_rankings_are_scored_as_defined() -> None:
    scores = compute_scores([Ranking(["a", "b", "c"], {"b", "z"}), Ranking([], {"a"})])

    assert scores == {
        "questions": 2,
        "hit@1": 0.0,
        "hit@3": 0.5,
        "hit@5": 0.5,
        "hit@10": 0.5,
        "recall@5": 0.25,
        "ndcg@5": 0.1934,
        "mrr": 0.25,
    }
