"""A whole desk reviews the contracts of the example: with the rules, and with a scripted model."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from broker.embedded.endpoint import Endpoint
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import Knowledge, make_searcher, open_index
from knowledge.embedding import Embedder
from knowledge.ingestion_report import PlainReport
from llm.port import Model
from tests.support.app_harness import EXAMPLES, AppHarness, Fields, run_app, settings_of

pytestmark = pytest.mark.slow

OpenReviews = Callable[..., AbstractAsyncContextManager[AppHarness]]
ASKED = "Does the {} contract comply with the Register Data Protection Act?"
FAULTY, CLEAN = ASKED.format("Brandt"), ASKED.format("Lindqvist")
LAW = "data_protection_review/law"


@pytest.fixture(scope="session")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the law and the contracts of the example, read once."""
    folder = tmp_path_factory.mktemp("reviews")
    quiet = PlainReport(lambda _line: None)
    asyncio.run(run_ingestion(settings_of(folder), [EXAMPLES / "data_protection_review"], quiet))
    return folder


@pytest.fixture
async def open_reviews(
    reviews: Path, endpoint: Endpoint, embedder: Embedder
) -> AsyncIterator[OpenReviews]:
    """Opens the desk over the example, with a model of the test's choice."""
    index = await open_index(settings_of(reviews), embedder)

    def open_harness(
        model: Model | None = None, **changes: Any
    ) -> AbstractAsyncContextManager[AppHarness]:
        settings = settings_of(
            reviews,
            **{
                "way": "specialists",
                "domain_name": "Compliance desk",
                "domain_scope": "data protection in contracts",
                **changes,
            },
        )
        found = Knowledge(index, embedder, make_searcher(settings, index, embedder))
        return run_app(settings, endpoint, found, model)

    yield open_harness
    await index.close()


def count(reply: Fields) -> dict[str, int]:
    """The verdicts of a review by their status."""
    names = ("requirements", "compliant", "violations", "gaps")
    return {name: reply["verdicts"][name] for name in names}


async def test_three_violations_and_two_gaps_are_found_with_their_places(
    open_reviews: OpenReviews,
) -> None:
    async with open_reviews() as harness:
        reply = await harness.driver().say(FAULTY)

    assert (reply["outcome"], reply["way"]) == ("answered", "specialists")
    assert reply["agent_sequence"] == ["extractor", "requirement_extractor", "compliance"]
    assert count(reply) == {"requirements": 8, "compliant": 3, "violations": 3, "gaps": 2}
    for phrase in ("within 14 days", "may engage a subcontractor", "may sell register data"):
        assert phrase in reply["text"]
    for phrase in ("train its employees", "record of all disclosures"):
        assert phrase in reply["text"]
    cited = {source["anchor"] for source in reply["sources"]}
    assert {"article-3-notice-of-a-breach", "3-incidents", "article-8-training"} <= cited
    assert reply["citation_check"]["valid"]


async def test_a_clean_contract_has_no_findings(open_reviews: OpenReviews) -> None:
    async with open_reviews() as harness:
        reply = await harness.driver().say(CLEAN)

    assert reply["outcome"] == "answered"
    assert count(reply) == {"requirements": 8, "compliant": 8, "violations": 0, "gaps": 0}
    assert "8 are fulfilled" in reply["text"]


async def test_two_contracts_are_compared_topic_by_topic_by_a_swarm(
    open_reviews: OpenReviews,
) -> None:
    asked = "How do the Lindqvist contract and the Brandt contract differ in fees and training?"
    async with open_reviews(way="swarm") as harness:
        reply = await harness.driver().say(asked)

    assert (reply["outcome"], reply["way"]) == ("answered", "swarm")
    assert "| fees | The keeper pays 900 crowns a month. [1] | The keeper pays 700" in reply["text"]
    assert "in data protection every year. [3] | not found |" in reply["text"]
    assert [one["anchor"] for one in reply["sources"]] == ["10-fees", "8-fees", "8-training"]
