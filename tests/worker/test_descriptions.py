"""Pages described by a model on a local server while they are ingested."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from config.model_settings import CompatibleServer
from config.settings import Settings
from deploy.assembly.ingestion import make_describer
from knowledge.document_writer import CHUNKS_PER_BATCH
from knowledge.ingestion import ingest
from knowledge.ingestion_report import IngestionResult, PlainReport
from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess
from knowledge.kept_answers import DESCRIPTIONS, MOST_DESCRIPTIONS, KeptAnswers
from tests.knowledge.documents.conftest import LengthEmbedder, MemoryIndex
from tests.llm.vendor_dialects import OpenAI
from tests.support.model_server import ModelServer, Response, running_server
from worker.descriptions import LONGEST_CONTENT, MOST_PARTS, ModelDescriber, cut_page

OUTPUT = {"description": "By a model.", "summary": "Sum.", "keypoints": [], "keywords": ["word"]}


ANSWER = OpenAI().answer(json.dumps(OUTPUT))


HANGS = Response(ends="never")


AWAY = Response(status=503, body=b"{}", headers={"retry-after": "0"})


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    """A vendor's server, which sends what a test says."""
    async with running_server() as opened:
        yield opened


@pytest.fixture(scope="module")
def reader() -> Iterator[ReaderProcess]:
    with ReaderProcess(ReadingLimits()) as reader:
        yield reader


class DescribedFolder:
    """A folder of documents, and an index that a killed ingestion would lose."""

    def __init__(self, path: Path, server: ModelServer, reader: ReaderProcess) -> None:
        self.documents = path / "docs"
        self.documents.mkdir()
        self.index = MemoryIndex()
        self.lines: list[str] = []
        self._path = path
        self._server = server
        self._reader = reader

    def write(self, *names: str) -> None:
        for name in names:
            (self.documents / f"{name}.md").write_text(f"# Page {name}\n\nText of {name}.\n")

    async def ingest(
        self, *, pauses: tuple[float, ...] = (), **chosen: Any
    ) -> tuple[IngestionResult, ModelDescriber]:
        """Ingest in what could be a new process."""
        own = CompatibleServer(base_url=f"{self._server.url}/v1")
        settings = Settings(
            _env_file=None,
            description_model="m@own",
            compatible_servers={"own": own},
            refdesk_data=self._path / "data",
            **chosen,
        )
        report = PlainReport(self.lines.append, files_per_line=2)
        describer = make_describer(settings, report, pauses=pauses)
        assert isinstance(describer, ModelDescriber)
        result = await ingest(
            [self.documents],
            self.index,
            LengthEmbedder(),
            describer,
            [self._reader],
            report,
            language_of=lambda _text: "en",
        )
        await describer.close()
        return result, describer

    def list_described(self) -> list[str]:
        """Return the documents that the model has described."""
        described = self.index.documents.items()
        return sorted(
            name[-1] for name, document in described if document.description == "By a model."
        )


@pytest.fixture
def folder(tmp_path: Path, server: ModelServer, reader: ReaderProcess) -> DescribedFolder:
    return DescribedFolder(tmp_path, server, reader)


def read_names(server: ModelServer) -> list[str]:
    """Return the pages that the server was asked about."""
    texts = [json.dumps(received.body) for received in server.received]
    return [next(name for name in "abcd" if f"Text of {name}." in text) for text in texts]


async def test_calls_tokens_and_cost_are_reported_while_it_runs_and_in_the_end(
    folder: DescribedFolder, server: ModelServer
) -> None:
    folder.write("a", "b", "c")
    server.will_send(*[ANSWER] * 3)

    _, describer = await folder.ingest()

    usage = describer.usage
    assert folder.list_described() == ["a", "b", "c"]
    assert (usage.calls, usage.failed, usage.cost_usd) == (3, 0, None)
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0
    assert [line for line in folder.lines if "so far, descriptions: 2 model calls" in line]
    assert usage.format().startswith("descriptions: 3 model calls, ")
    assert "of unknown price" in usage.format()


async def test_a_long_page_is_described_from_the_summaries_of_all_its_parts(
    folder: DescribedFolder, server: ModelServer
) -> None:
    paragraphs = [f"Rule {number} says what a carrier has to do. " * 8 for number in range(80)]
    (folder.documents / "a.md").write_text("# Page a\n\n" + "\n\n".join(paragraphs), "utf-8")
    summaries = [
        OpenAI().answer(json.dumps({"summary": f"Part {number} in short."})) for number in (1, 2, 3)
    ]
    server.will_send(*summaries, ANSWER)

    _, describer = await folder.ingest()

    asked = [json.dumps(received.body) for received in server.received]
    assert "Rule 79 says" in asked[2], "the end of the page is read, too"
    assert all(f"Part {number} in short." in asked[3] for number in (1, 2, 3))
    assert "Rule 1 says" not in asked[3]
    assert folder.list_described() == ["a"]
    assert describer.usage.calls == 4


def test_the_parts_of_a_page_are_all_of_it_and_end_at_paragraphs() -> None:
    page = "\n\n".join(f"{number} " + "word " * 600 for number in range(10))

    parts = cut_page(page)

    assert "".join("".join(parts).split()) == "".join(page.split())
    assert max(map(len, parts)) <= LONGEST_CONTENT
    assert all(part.rstrip().endswith("word") for part in parts)
    assert len(cut_page("x" * 10**6)) == MOST_PARTS


async def test_an_ingestion_that_is_killed_pays_no_description_twice(
    folder: DescribedFolder, server: ModelServer
) -> None:
    folder.write("a", "b", "c", "d")
    server.will_send(ANSWER, ANSWER, HANGS)

    async with asyncio.TaskGroup() as tasks:
        killed = tasks.create_task(folder.ingest(description_concurrency=1))
        while len(server.received) < 3:
            await server.was_asked.wait()
            server.was_asked.clear()
        killed.cancel()
    folder.index = MemoryIndex()
    server.will_send(ANSWER, ANSWER)
    _, describer = await folder.ingest()

    assert folder.list_described() == ["a", "b", "c", "d"]
    assert sorted(read_names(server)) == ["a", "b", "c", "c", "d"]
    assert (describer.usage.calls, describer.usage.kept) == (2, 2)
    assert "2 kept from an interrupted ingestion" in describer.usage.format()


async def test_a_model_that_is_away_loses_no_document_and_the_next_ingestion_asks_it_again(
    folder: DescribedFolder, server: ModelServer
) -> None:
    folder.write("a", "b", "c")
    server.will_send(ANSWER, *[AWAY] * 4)
    first, describer = await folder.ingest(description_concurrency=1)
    described = folder.list_described()

    server.will_send(*[ANSWER] * 2)
    second, _ = await folder.ingest()
    third, _ = await folder.ingest()

    assert (first.added, first.failed, described) == (3, (), ["a"])
    assert [reason for _, reason in first.warned if "repeats the request" in reason]
    assert describer.usage.failed == 2
    assert (second.unchanged, second.changed, second.warned) == (1, 2, ())
    assert folder.list_described() == ["a", "b", "c"]
    assert (third.unchanged, third.changed) == (3, 0)


async def test_a_model_that_comes_back_after_a_pause_describes_the_page(
    folder: DescribedFolder, server: ModelServer
) -> None:
    folder.write("a")
    server.will_send(*[AWAY] * 2, ANSWER)

    result, describer = await folder.ingest(pauses=(0.0,))

    assert (folder.list_described(), result.warned) == (["a"], ())
    assert describer.usage.failed == 0


async def test_a_page_that_the_model_refuses_stays_described_by_rules(
    folder: DescribedFolder, server: ModelServer
) -> None:
    folder.write("a")
    server.will_send(Response(status=400, body=b'{"error": {"message": "no", "param": "x"}}'))

    first, _ = await folder.ingest()
    second, _ = await folder.ingest()

    assert first.added == second.unchanged == 1
    assert len(first.warned) == len(server.received) == 1


def keep_in(folder: Path) -> KeptAnswers:
    return KeptAnswers(folder, DESCRIPTIONS, most=MOST_DESCRIPTIONS)


async def test_kept_answers_are_available_to_the_next_process_until_cleared(
    tmp_path: Path,
) -> None:
    await keep_in(tmp_path).put({"one": b"1"})
    await keep_in(tmp_path).put({"one": b"2"})
    after = keep_in(tmp_path)

    assert await after.get(["one", "two"]) == {"one": b"2"}
    await after.clear()
    await after.clear()
    assert not await after.get(["one"])


async def test_only_the_last_answers_are_kept(tmp_path: Path) -> None:
    kept = KeptAnswers(tmp_path, DESCRIPTIONS, most=3)

    for number in range(5):
        await kept.put({str(number): b"answer"})

    assert set(await kept.get([str(number) for number in range(5)])) == {"2", "3", "4"}
    assert MOST_DESCRIPTIONS > 2 * CHUNKS_PER_BATCH


async def test_a_corrupt_database_file_is_replaced_and_logged(tmp_path: Path) -> None:
    (tmp_path / DESCRIPTIONS).write_bytes(b"no database" * 1000)
    kept = keep_in(tmp_path)

    with capture_logs() as logs:
        assert not await kept.get(["one"])
    await kept.put({"one": b"1"})

    assert [log["event"] for log in logs if log["event"].startswith("kept")] == [
        "kept_answers_unusable"
    ]
    assert await kept.get(["one"]) == {"one": b"1"}


async def test_an_unwritable_folder_disables_the_cache_without_an_error(
    tmp_path: Path,
) -> None:
    (tmp_path / DESCRIPTIONS).mkdir()
    kept = keep_in(tmp_path)

    with capture_logs() as logs:
        await kept.put({"one": b"1"})

    assert not await kept.get(["one"])
    assert logs[-1]["event"] == "kept_answers_unusable"
