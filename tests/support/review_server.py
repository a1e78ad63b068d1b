"""The HTTP server with reviews, before a desk whose agents follow a script."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from deploy.assembly.gateways.documents import make_attachments
from deploy.assembly.gateways.report_rendering import StoredReports
from envelope.question import Question
from gateway.http.review_documents import NamedDocumentFinder
from gateway.http.routes.review_form import ReviewEstimate
from gateway.http.routes.reviews import ReviewParts
from gateway.port import CatalogEntry
from tests.support.app_harness import EXAMPLES, settings_of
from tests.support.http_server import FakeCatalog, HttpServerFixture, open_http_server
from tests.support.worker_harness import WorkerHarness

EXAMPLE = EXAMPLES / "data_protection_review"
LAW, CLEAN, FAULTY = (
    (EXAMPLE / name).read_bytes() for name in ("law.md", "clean_contract.md", "faulty_contract.md")
)
CATALOG = {
    ("acme", "docs"): {
        "laws/privacy": CatalogEntry("laws/privacy", "Privacy Law", "laws/privacy.md", "en", 9),
        "laws/labour": CatalogEntry("laws/labour", "Labour Law", "laws/labour.md", "en", 9),
        "double/a": CatalogEntry("double/a", "Twice", "double/a.md", "en", 1),
        "double/b": CatalogEntry("double/b", "Twice", "double/b.md", "en", 1),
        "secret": CatalogEntry("secret", "Secret Law", "secret.md", "en", 1, groups=("board",)),
    }
}


class SelectingCatalog(FakeCatalog):
    """Documents of an index, selected by id, by folder, or all."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = {name: dict(entries) for name, entries in CATALOG.items()}

    def _select(self, tenant: str, assistant: str, selection: Any) -> list[CatalogEntry]:
        patterns = selection.patterns or ()
        kept = self.kept.get((tenant, assistant), {})
        results = [
            kept[name]
            for name in sorted(kept)
            if any(
                own == pattern or own.startswith(f"{pattern}/")
                for pattern in patterns
                for own in (name, kept[name].source)
            )
        ]
        return results if patterns else super()._select(tenant, assistant, selection)


@asynccontextmanager
async def open_review_server(
    harness: WorkerHarness, data: Path, **options: Any
) -> AsyncIterator[HttpServerFixture]:
    """Open the server; `data` is the data folder of its settings."""
    attachments = make_attachments(settings_of(data), harness.client)
    finder = NamedDocumentFinder(attachments, SelectingCatalog())

    async def read_nothing(_question: Question, _reference: str) -> None:
        return None

    async def estimate(rules: int, documents: int) -> ReviewEstimate:
        return ReviewEstimate(model="large", calls=rules + documents, tokens=1000, cost_usd=0.25)

    parts = ReviewParts(attachments, finder, StoredReports(read_nothing), estimate)
    try:
        async with open_http_server(harness, reviews=parts, **options) as server:
            yield server
    finally:
        await attachments.close()
