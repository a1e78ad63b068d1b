"""A question whose search finds a page and whose writer does not come to an end."""

import asyncio

from envelope.role import Role
from envelope.sources import SearchResult
from tests.support.worker_harness import WorkerHarness

PAGE = SearchResult(
    chunk_id="c1",
    document_id="d1",
    title="Routing rules",
    url="https://docs.acme.test/rules",
    path="routing/rules.md",
    score=0.5,
    levels=(),
)
DEADLINE_SECONDS = 2.5


def hold_answer(harness: WorkerHarness) -> asyncio.Event:
    """Let the next question find `PAGE` and wait in the writer until the event is set."""
    results = {"search_quality": "good", "search_results": [PAGE.model_dump(mode="json")]}
    harness.script.next(Role.SEARCH, results)
    return harness.script.hold(Role.RESPONSE).goes_on
