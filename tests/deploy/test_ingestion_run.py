"""An index of another embedding model replaces the present one when it is complete."""

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from config.settings import Settings
from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.ingestion_run import (
    find_replacement_notes,
    read_vectors,
    run_ingestion,
)
from deploy.assembly.knowledge import (
    locate_index,
    make_embedder,
    open_index,
    open_knowledge,
    open_replacement,
)
from deploy.assembly.runtime import desk, run_desk
from gateway.desk import Message
from gateway.documents.index_owner import ask_owner
from knowledge.embedding import DEFAULT, SHIPPED_MODEL, earlier_embedder
from knowledge.embedding_forms import TextForms, VectorIdentity
from knowledge.errors import IndexOwned, IndexUnavailable
from knowledge.index.embedded import open_embedded
from knowledge.index.qdrant import Identity
from knowledge.ingestion_report import IngestionResult, PlainReport
from knowledge.owner_requests import OwnerRequest, act_on_documents
from knowledge.port import SearchRequest
from knowledge.source_registry import parse_source
from tests.knowledge.searching.conftest import WordEmbedder, document, put
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import command, environment, refdesk, settings_of
from tests.support.model_server import ModelServer, Received, Response, running_server
from tests.support.restricted_documents import write_pages
from tests.support.waiting import within

pytestmark = pytest.mark.slow

PREFIXES = {"embedding_question_prefix": "ask: ", "embedding_document_prefix": "it's; "}
FORMS = TextForms("ask: ", "it's; ").name
FIRST = f"{SHIPPED_MODEL} (384 dimensions)"
SECOND = f"{SHIPPED_MODEL} (384 dimensions, {FORMS})"
QUESTION = SearchRequest("Which port does the fax bridge listen on?", language="en")
FAX = {"fax.md": "# Fax bridge\n\nThe fax bridge listens on port 77.\n"}
LEAVE = {"leave.md": "# Leave\n\nEverybody has 27 days of leave.\n"}
STOP = "The gate of this ingestion"


@pytest.fixture
def first(tmp_path: Path) -> Settings:
    return settings_of(tmp_path / "data")


@pytest.fixture
def second(tmp_path: Path) -> Settings:
    """Settings with which texts are embedded in another form: their vectors do not fit."""
    return settings_of(tmp_path / "data", **PREFIXES)


async def ingest(settings: Settings, *folders: Path) -> IngestionResult:
    """Ingest folders as the command does."""
    specs = [parse_source(str(folder)) for folder in folders]
    result = await run_ingestion(settings, specs, PlainReport(lambda _line: None))
    open_source_registry(settings.data_place).record(specs, result)
    return result


async def search(settings: Settings) -> tuple[str, list[str], tuple[str, ...]]:
    """Return the forms with which a search embeds, the titles that it finds, its fallbacks."""
    async with open_knowledge(settings) as knowledge:
        results = await knowledge.searcher.search(QUESTION)
        titles = list(dict.fromkeys(hit.place.title for hit in results.hits))
        return knowledge.embedder.forms, titles[:1], results.fallbacks


async def find_notes(settings: Settings) -> list[str]:
    """Return the notes of `refdesk status` about another embedding model."""
    index = await open_index(settings, make_embedder(settings))
    try:
        serving = (await index.info()).vectors
    finally:
        await index.close()
    return await find_replacement_notes(settings, serving)


def list_folders(settings: Settings) -> list[str]:
    return [path.name for path in (settings.refdesk_data / "index").iterdir() if path.is_dir()]


async def test_all_sources_are_embedded_again_and_then_the_new_index_answers(
    tmp_path: Path, first: Settings, second: Settings
) -> None:
    fax, leave = write_pages(tmp_path / "fax", FAX), write_pages(tmp_path / "leave", LEAVE)
    await ingest(first, fax)
    await ingest(first, leave)
    before = list_folders(first)

    with capture_logs() as logged:
        asked = await search(second)
    notes = await find_notes(second)
    result = await ingest(second, leave)

    assert asked == ("", ["Fax bridge"], ())
    assert "index_of_another_model_serves" in [line["event"] for line in logged]
    assert notes == [
        f"questions are answered from the index of {FIRST}; run refdesk ingest for one of {SECOND}"
    ]
    assert (result.added, result.failed) == (2, ())
    assert result.replacement == (
        f"the index of {SECOND} is used for answers from now on; the earlier index was removed"
    )
    assert await search(second) == (FORMS, ["Fax bridge"], ())
    assert await find_notes(second) == []
    assert len(list_folders(second)) == 1
    assert list_folders(second) != before
    # Settings as they were use the new index with the prefixes that it was written with.
    assert await search(first) == (FORMS, ["Fax bridge"], ())


async def test_vectors_of_an_earlier_release_answer_until_they_are_made_again(
    tmp_path: Path, first: Settings
) -> None:
    embedder = earlier_embedder(VectorIdentity(DEFAULT, 384, ""))
    assert embedder is not None
    identity = Identity(first.tenant, first.assistant, embedder.name, embedder.dimensions)
    index = await open_embedded(first.refdesk_data / "index", identity)
    text = FAX["fax.md"]
    await index.put(
        document("fax", text, title="Fax bridge"), await embedder.embed_documents([text]), "root"
    )
    await index.close()

    with capture_logs() as logged:
        asked = await search(first)
    notes = await find_notes(first)

    assert asked == ("", ["Fax bridge"], ())
    assert "index_of_another_model_serves" in [line["event"] for line in logged]
    assert notes == [
        f"questions are answered from the index of {DEFAULT} (384 dimensions); "
        f"run refdesk ingest for one of {FIRST}"
    ]
    async with open_knowledge(first) as knowledge:
        await knowledge.index.remove(["fax"])
    result = await ingest(first, write_pages(tmp_path / "fax", FAX))
    assert result.replacement.startswith(f"the index of {FIRST} is used for answers from now on")
    assert await find_notes(first) == []


async def test_an_index_whose_model_cannot_be_loaded_is_searched_by_keywords(
    first: Settings,
) -> None:
    embedder = WordEmbedder()
    identity = Identity(first.tenant, first.assistant, embedder.name, embedder.dimensions)
    index = await open_embedded(first.refdesk_data / "index", identity)
    await put(index, document("fax", "The fax bridge listens on port 77.", title="Fax bridge"))
    await index.close()

    assert await search(first) == ("", ["Fax bridge"], ("semantic",))


async def test_the_earlier_index_answers_while_documents_of_it_could_not_be_read_again(
    tmp_path: Path, first: Settings, second: Settings
) -> None:
    fax, leave = write_pages(tmp_path / "fax", FAX), write_pages(tmp_path / "leave", LEAVE)
    await ingest(first, fax, leave)
    fax.rename(tmp_path / "away")

    result = await ingest(second, leave)

    assert f"the index of {SECOND} is not used for answers yet: the documents " in (
        result.replacement
    )
    assert (await search(second))[0] == ""
    assert "is not complete, with 1 documents: repeat" in (await find_notes(second))[0]

    (tmp_path / "away").rename(fax)
    repeated = await ingest(second, leave)

    assert (repeated.added, repeated.unchanged) == (1, 1)
    assert (await search(second))[0] == FORMS


async def test_a_source_that_is_not_registered_is_asked_for(
    tmp_path: Path, first: Settings, second: Settings
) -> None:
    fax, leave = write_pages(tmp_path / "fax", FAX), write_pages(tmp_path / "leave", LEAVE)
    await ingest(first, fax, leave)
    open_source_registry(first.data_place).forget(str(fax))

    result = await ingest(second, leave)

    assert f"the sources {fax} are missing; ingest" in result.replacement
    assert (await search(second))[0] == ""


async def test_a_process_with_the_earlier_index_answers_from_it_until_it_ends(
    tmp_path: Path, first: Settings, second: Settings
) -> None:
    await ingest(first, write_pages(tmp_path / "fax", FAX))
    folders = locate_index(second).folders

    async with open_knowledge(first) as running:
        reply = await act_on_documents(running.index, OwnerRequest(action="check"))
        running_vectors = VectorIdentity(SHIPPED_MODEL, 384, "")
        assert read_vectors(reply["vectors"]) == running_vectors
        async with open_replacement(second) as written:
            with pytest.raises(IndexOwned):
                async with open_replacement(second):
                    pass
            [note] = await find_replacement_notes(second, running_vectors)
            assert note.endswith(f"; the index of {SECOND} is being written")
            name = folders.name_replacement((await written.index.info()).vectors)
        assert not running.is_replaced()
        folders.switch(name)
        assert running.is_replaced()
        assert folders.remove_replaced() != []
        results = await running.searcher.search(QUESTION)
        assert [hit.place.title for hit in results.hits] == ["Fax bridge"]

    async with open_knowledge(second):
        assert list_folders(second) == [name]


@pytest.mark.redis
async def test_a_running_desk_answers_from_the_earlier_index_and_refuses_to_change_it(
    tmp_path: Path, redis_url: str
) -> None:
    own = {"redis_url": redis_url, "tenant": "replaced"}
    running, changed = (settings_of(tmp_path / "data", **own, **more) for more in ({}, PREFIXES))
    fax = write_pages(tmp_path / "fax", FAX)
    await ingest(running, fax)

    async with within(), run_desk(running) as runtime:
        result = await ingest(changed, fax)
        reply = await desk(runtime, "cli").ask(Message(QUESTION.question, "c-old", "m-old"))
        with pytest.raises(IndexUnavailable, match="was replaced by an index"):
            await ask_owner(
                runtime.broker,
                (running.tenant, running.assistant),
                OwnerRequest(action="check").encode(),
            )

    assert "processes that are already running use the earlier index" in result.replacement
    assert reply["outcome"] == "answered"
    assert (await search(changed))[0] == FORMS


class EmbeddingServer(ModelServer):
    """Embeds each text by its words; sends nothing for a text with `STOP`."""

    stops = True

    def choose_response(self, received: Received) -> Response:
        texts = received.body["input"]
        if self.stops and any(STOP in text for text in texts):
            return Response(ends="never")
        return OpenAI().vectors([embed_words(text) for text in texts])

    def list_texts(self) -> list[str]:
        return [text for item in self.received for text in item.body["input"]]


def embed_words(text: str) -> list[float]:
    vector = [0.01] * 8
    for word in text.lower().split():
        vector[hashlib.sha256(word.encode()).digest()[0] % len(vector)] += 1.0
    return vector


async def test_a_killed_replacement_goes_on_where_it_stopped_while_the_earlier_index_answers(
    tmp_path: Path, first: Settings
) -> None:
    data = first.refdesk_data
    fax = write_pages(tmp_path / "fax", FAX)
    gate = write_pages(tmp_path / "gate", {"gate.md": f"# Gate\n\n{STOP}.\n"})
    await ingest(first, fax, gate)
    server = EmbeddingServer("")
    async with running_server(server):
        other: dict[str, Any] = {
            "embedding_model": "words@own",
            "embedding_dimensions": "8",
            "compatible_servers": json.dumps({"own": {"base_url": f"{server.url}/v1"}}),
        }
        process = await asyncio.create_subprocess_exec(
            *command("ingest", str(fax), str(gate)), env=environment(data, **other), cwd=data
        )
        async with within():
            while not any(STOP in text for text in server.list_texts()):
                server.was_asked.clear()
                await server.was_asked.wait()
        process.kill()
        await process.wait()
        asked = await search(first)
        status = await asyncio.to_thread(lambda: refdesk(data, "status", **other))
        before = server.list_texts()
        server.stops = False
        repeated = await asyncio.to_thread(lambda: refdesk(data, "ingest", str(fax), **other))

    assert asked == ("", ["Fax bridge"], ())
    assert f"the index of {FIRST}; the index of words@own (8 dimensions) is not complete" in (
        status.stdout
    )
    assert "1 added, 1 unchanged" in repeated.stdout
    assert "words@own (8 dimensions) is used for answers from now on" in repeated.stdout
    assert [text for text in server.list_texts()[len(before) :] if "port 77" in text] == []


async def test_hosts_that_documents_often_link_to_are_suggested_until_they_are_trusted(
    tmp_path: Path,
) -> None:
    pages = {
        f"{topic}.md": f"# {topic}\n\n[State](https://status.acme.com/{topic}) of {topic} needs "
        f"the [{topic} form](https://forms.acme.com/{topic}).\n"
        for topic in ("Leave", "Travel", "Rent", "Training", "Parking")
    }
    rare = {"rare.md": "# Rare\n\nSee [elsewhere](https://elsewhere.example/a).\n"}
    settings = settings_of(tmp_path / "data", link_hosts=["status.acme.com"])
    write_pages(tmp_path / "pages", pages | rare)

    result = await run_ingestion(settings, [tmp_path / "pages"], PlainReport(lambda _line: None))

    [reason] = [reason for source, reason in result.warned if source == "LINK_HOSTS"]
    assert "forms.acme.com (5);" in reason
    assert """LINK_HOSTS='["status.acme.com", "forms.acme.com"]'""" in reason
