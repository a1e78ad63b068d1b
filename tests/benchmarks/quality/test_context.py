"""The suite `context`: is the section that answers in the context?"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.quality.context import evaluate
from tests.knowledge.searching.conftest import WordEmbedder

PAGES = (
    {
        "page_id": "routes",
        "title": "Routes",
        "markdown": "# Routes\n\nA route carries messages.\n\n## Prices\n\nA route costs a cent.",
    },
    {"page_id": "users", "title": "Users", "markdown": "# Users\n\nA user has a password."},
)
QUERIES = (
    {"query": "price of a route", "gold_pages": ["routes"], "gold_anchor": "prices"},
    {"query": "password of a user", "gold_pages": ["users"]},
)


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


async def test_questions_are_counted_by_how_exactly_the_place_of_the_answer_is_known(
    tmp_path: Path,
) -> None:
    write(tmp_path / "pages.jsonl", PAGES)
    write(tmp_path / "queries.jsonl", QUERIES)

    figures = await evaluate(tmp_path, embedder=WordEmbedder())

    assert (figures["questions"], figures["found"], figures["whole"]) == (2, 1.0, 1.0)
    assert isinstance(figures["by"], dict)
    assert set(figures["by"]) == {"section", "page"}
    assert isinstance(figures["tokens"], dict)
    assert 0 < figures["tokens"]["p50"] <= figures["tokens"]["max"]


async def test_a_page_that_is_not_in_the_documents_is_not_found(tmp_path: Path) -> None:
    write(tmp_path / "pages.jsonl", PAGES)
    missing = {"query": "password of a user", "gold_pages": ["nowhere"]}
    write(tmp_path / "queries.jsonl", [missing])

    figures = await evaluate(tmp_path, embedder=WordEmbedder())

    assert (figures["found"], figures["whole"], figures["page"]) == (0.0, 0.0, 0.0)
