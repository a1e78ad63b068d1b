"""An index that cannot be opened for HTTP requests is named to the operator."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from deploy.assembly.gateways.document_catalog import IndexedDocuments
from deploy.assembly.knowledge import make_embedder
from knowledge.errors import IndexMismatch
from knowledge.index.embedded import EdgeEngine
from knowledge.index.points import layout
from tests.knowledge.searching.test_index_contract import write_earlier_manifest
from tests.support.app_harness import settings_of


async def test_the_log_says_why_an_index_cannot_be_opened_for_http(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    name = (settings.tenant, settings.assistant)
    folder = settings.refdesk_data / "index" / layout.namespace(*name)
    engine = EdgeEngine(folder, make_embedder(settings).dimensions)
    await write_earlier_manifest(engine)
    await engine.close()

    with capture_logs() as logged, pytest.raises(IndexMismatch):
        await IndexedDocuments(settings, {}).index(name)

    [line] = [line for line in logged if line["event"] == "index_not_opened"]
    assert f"remove the folder {folder}, then ingest" in line["reason"]
