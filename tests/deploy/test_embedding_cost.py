"""An ingestion waits for the limits of a vendor's embedding model, and reports what it has cost."""

from pathlib import Path
from typing import Any

from config.model_settings import CompatibleServer, ModelLimit
from deploy.assembly.ingestion import PaidEmbedder
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import open_knowledge
from deploy.assembly.source_registry import parse_source
from deploy.cli.commands.ingest import result_fields, result_lines
from knowledge.ingestion_report import PlainReport
from tests.knowledge.searching.conftest import WordEmbedder
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import settings_of
from tests.support.model_server import ModelServer, Received, Response, running_server
from tests.support.restricted_documents import write_pages

MODEL = "words@own"
LONG = "The fax bridge listens on port 77. " * 1500


class EmbeddingServer(ModelServer):
    """Gives every text the same vector."""

    def choose_response(self, received: Received) -> Response:
        return OpenAI().vectors([[0.6, 0.8] for _ in received.body["input"]])


async def test_an_ingestion_waits_for_the_limits_and_reports_calls_cost_and_waits(
    tmp_path: Path,
) -> None:
    folder = write_pages(tmp_path / "fax", {"fax.md": f"# Fax bridge\n\n{LONG}\n"})
    async with running_server(EmbeddingServer("")) as server:
        chosen: dict[str, Any] = {
            "embedding_model": MODEL,
            "embedding_dimensions": 2,
            "compatible_servers": {"own": CompatibleServer(base_url=f"{server.url}/v1")},
            "model_limits": {MODEL: ModelLimit(tokens_per_minute=12_000)},
        }
        settings = settings_of(tmp_path / "data", **chosen)
        report = PlainReport(lambda _line: None)
        result = await run_ingestion(settings, [parse_source(str(folder))], report)
        async with open_knowledge(settings) as knowledge:
            limits = knowledge.limits

    assert result.embedding is not None
    assert result.waits is not None
    assert result.embedding.calls == len(server.received)
    assert result.waits.waits >= 1
    assert any(line.startswith("embedding: ") for line in result_lines(result))
    assert any("for MODEL_LIMITS" in line for line in result_lines(result))
    assert {"embedding", "waits"} <= result_fields(result).keys()
    assert limits is not None


async def test_an_embedder_of_this_machine_costs_nothing_and_nothing_is_reported() -> None:
    embedder = PaidEmbedder(WordEmbedder())

    await embedder.embed_documents(["one"])
    await embedder.embed_questions(["two"])

    assert embedder.usage is None
