"""Metadata that the source of a page states is searched like its text."""

import json
from typing import Any

import pytest

from knowledge import chunking
from knowledge.composing import compose
from knowledge.document import Document
from knowledge.documents.interchange import json_lines
from knowledge.index.port import Index
from knowledge.port import Findings, SearchRequest
from knowledge.rule_descriptions import describe
from knowledge.search.searcher import LevelSearcher
from tests.knowledge.searching.conftest import WordEmbedder, document, put

TEXTS = {
    "billing": "Invoices are sent on the first day of a month. Pay them within fourteen days.",
    "accounts": "An administrator creates an account for each person and gives it a role.",
    "sending": "A message has at most 160 characters. Longer ones are split into parts.",
    "reports": "The monthly report lists all messages with their price and status.",
    "routes": "A route decides over which carrier a message travels.",
    "alerts": "The platform warns by e-mail when a carrier is slow for ten minutes.",
}


def is_prepared(name: str, **stated: Any) -> Document:
    """A document of JSON lines as ingestion reads it."""
    record = {
        "id": name,
        "source": f"{name}.md",
        "crumbs": ["Acme", name.title()],
        "content": f"# {name.title()}\n\n{TEXTS[name]}",
        **stated,
    }
    page = json_lines.read(json.dumps(record).encode(), "pages.jsonl")
    passages = tuple(chunking.passages(page))
    return compose(page, passages, describe(page), identity=name, language="en", content_hash="1")


async def find(index: Index, question: str) -> Findings:
    searcher = LevelSearcher(index, WordEmbedder())
    return await searcher.search(SearchRequest(question=question))


@pytest.mark.parametrize(
    ("name", "stated", "question"),
    [
        ("billing", {"keywords": ["dunning", "SEPA"]}, "How does dunning work?"),
        ("accounts", {"description": "Onboarding of employees."}, "Who does the onboarding?"),
        ("sending", {"summary": "Explains concatenation."}, "What is concatenation of a message?"),
        ("reports", {"keypoints": ["Export to Parquet is possible."]}, "messages in Parquet"),
        ("routes", {"crumbs": ["Acme", "Telephony", "Routes"]}, "What is said about telephony?"),
    ],
)
async def test_a_page_that_matches_in_one_stated_field_alone_comes_first(
    fake_documents: Index, name: str, stated: dict[str, Any], question: str
) -> None:
    await put(fake_documents, *(is_prepared(other) for other in TEXTS if other != name))
    before = await find(fake_documents, question)
    await put(fake_documents, is_prepared(name, **stated))

    findings = await find(fake_documents, question)

    assert findings.hits[0].page == name
    assert findings.features["bm"] > before.features.get("bm", 0.0)
    assert findings.corrected is None


async def test_a_stated_keyword_weighs_more_than_one_that_a_rule_made(
    fake_documents: Index,
) -> None:
    ruled = document("ruled", TEXTS["billing"], keywords=("dunning",))
    stated = document("stated", TEXTS["routes"], stated_keywords=("dunning",))
    await put(fake_documents, ruled, stated, *(is_prepared(name) for name in ("alerts", "reports")))

    findings = await find(fake_documents, "dunning")

    assert findings.hits[0].page == "stated"


async def test_a_stop_word_of_a_description_finds_nothing_for_a_short_follow_up(
    fake_documents: Index,
) -> None:
    await put(fake_documents, is_prepared("alerts", description="Why carriers and what for."))
    await put(fake_documents, *(is_prepared(name) for name in TEXTS if name != "alerts"))
    asked = SearchRequest(question="When are invoices sent in a month?", text_eng="why?")

    findings = await LevelSearcher(fake_documents, WordEmbedder()).search(asked)

    assert findings.hits[0].page == "billing"


async def test_a_long_summary_does_not_weaken_the_text_of_its_page(fake_documents: Index) -> None:
    summary = " ".join(f"word{number}" for number in range(300))
    await put(fake_documents, is_prepared("billing"), is_prepared("alerts"))
    [before, *_] = (await find(fake_documents, "invoices within fourteen days")).hits
    await put(fake_documents, is_prepared("billing", summary=summary))

    [after, *_] = (await find(fake_documents, "invoices within fourteen days")).hits

    assert (before.page, after.page) == ("billing", "billing")
    assert after.score == pytest.approx(before.score, rel=0.2)
