"""How embedding models are set, and what an ingestion with them costs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from cli.commands.ingest import result_fields, result_lines
from config.model_settings import CompatibleServer, ModelLimit
from config.settings import Settings
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import choose_forms, make_embedder, open_knowledge
from deploy.assembly.models import make_registry
from knowledge.calibration.calibrating import calibrate
from knowledge.calibration.learning import LEAST_CHUNKS
from knowledge.errors import EmbeddingFailed
from knowledge.index.calibration import Calibration
from knowledge.index.embedded import open_embedded
from knowledge.index.qdrant import Identity
from knowledge.ingestion_report import PlainReport
from knowledge.kept_answers import MOST_VECTORS, VECTORS, KeptAnswers
from knowledge.source_registry import parse_source
from tests.knowledge.searching.conftest import WordEmbedder, document
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import settings_of
from tests.support.embedders import UniformEmbedder
from tests.support.model_server import ModelServer, Received, Response, running_server
from tests.support.restricted_documents import write_pages
from worker.paid_embedder import TEXTS_AT_ONCE, PaidEmbedder
from worker.vendor_vectors import VendorEmbedding


async def embed_both(server: ModelServer, model: str, **chosen: Any) -> tuple[str, list[object]]:
    """Return the name of the forms, and what the server received for a question and a document."""
    own = CompatibleServer(base_url=f"{server.url}/v1", api_key=SecretStr("key"))
    values: dict[str, Any] = {
        "embedding_model": f"{model}@own",
        "embedding_dimensions": 2,
        **chosen,
    }
    settings = Settings(_env_file=None, compatible_servers={"own": own}, **values)
    registry = make_registry(settings)
    try:
        embedder = VendorEmbedding(
            registry.embedder(settings.embedding_model, settings.embedding_dimensions),
            choose_forms(
                settings.embedding_model,
                settings.embedding_question_prefix,
                settings.embedding_document_prefix,
            ),
        )
        server.will_send(*[OpenAI().vectors([[1.0, 0.0]])] * 2)
        await embedder.embed_questions(["text"])
        await embedder.embed_documents(["text"])
    finally:
        await registry.close()
    return embedder.forms, [request.body["input"] for request in server.received]


@pytest.mark.parametrize(
    ("model", "prefix", "received", "forms"),
    [
        ("intfloat/multilingual-e5-small", None, ["query: ", "passage: "], "'query: ' and "),
        ("mine", "ask: ", ["ask: ", ""], "'ask: ' and "),
        ("e5-small", "", ["", ""], ""),
    ],
)
async def test_the_prefixes_of_the_settings_replace_those_of_a_known_model(
    model: str, prefix: str | None, received: list[str], forms: str
) -> None:
    chosen = {"embedding_question_prefix": prefix, "embedding_document_prefix": ""}
    async with running_server() as server:
        named, sent = await embed_both(server, model, **({} if prefix is None else chosen))

    assert sent == [[f"{item}text"] for item in received]
    assert named.startswith(forms) if forms else named == ""


def test_the_shipped_model_has_one_length() -> None:
    with pytest.raises(EmbeddingFailed, match="expected EMBEDDING_DIMENSIONS=384"):
        make_embedder(Settings(_env_file=None, embedding_dimensions=64))


async def test_a_calibration_that_fails_is_said_and_the_previous_one_stays(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    index = await open_embedded(tmp_path, Identity("t", "desk", embedder.name, embedder.dimensions))
    present = {"en": Calibration(slope=1.0, offset=0.0, separation=1.0, chunks=1)}
    texts = [f"Rule {word} of the house is kept by all." for word in map(str, range(LEAST_CHUNKS))]
    try:
        await index.put(document("rules", *texts), await embedder.embed(texts), "root")
        await index.put_calibrations(present)
        embedder.fails = True
        notes = await calibrate(index, embedder)
        kept = dict(await index.calibrations())
        embedder.fails = False
        await calibrate(index, embedder)
        learned = dict(await index.calibrations())
    finally:
        await index.close()

    assert notes == (
        ("EMBEDDING_MODEL=words", "the embedding model could not be calibrated: out of order"),
    )
    assert kept == present
    assert learned["en"].chunks == LEAST_CHUNKS


MODEL = "words@own"


LONG = " ".join(f"The fax bridge listens on port {port}." for port in range(1500))


class EmbeddingServer(ModelServer):
    """Gives every text the same vector."""

    def choose_response(self, received: Received) -> Response:
        return OpenAI().vectors([[0.6, 0.8] for _ in received.body["input"]])


@pytest.mark.long
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


class FailingEmbedder(UniformEmbedder):
    """Embeds a text as its length; fails in the call that follows `after` of them."""

    name = "lengths"
    dimensions = 1

    def __init__(self, *, after: int) -> None:
        self.asked: list[str] = []
        self._left = after

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if not self._left:
            raise EmbeddingFailed("out of order")
        self._left -= 1
        self.asked += texts
        return [(float(len(text)),) for text in texts]


async def test_vectors_that_an_interrupted_ingestion_paid_for_are_not_paid_for_again(
    tmp_path: Path,
) -> None:
    texts = [f"text {number}" for number in range(2 * TEXTS_AT_ONCE + 1)]

    def open_kept() -> KeptAnswers:
        return KeptAnswers(tmp_path, VECTORS, most=MOST_VECTORS)

    first, second = FailingEmbedder(after=2), FailingEmbedder(after=9)
    with pytest.raises(EmbeddingFailed):
        await PaidEmbedder(first, open_kept()).embed_documents(texts)

    vectors = await PaidEmbedder(second, open_kept()).embed_documents(texts)

    assert second.asked == texts[2 * TEXTS_AT_ONCE :]
    assert [list(vector) for vector in vectors] == [[float(len(text))] for text in texts]
