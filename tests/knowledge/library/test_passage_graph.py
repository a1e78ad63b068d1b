"""The edges between passages are written at ingestion, and go with their documents."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog
from qdrant_client import AsyncQdrantClient

from knowledge.document import Document
from knowledge.index.embedded import EdgeEngine
from knowledge.index.engine import Engine
from knowledge.index.graph.mentioned_names import find_mentioned_names
from knowledge.index.listing import ListedDocument
from knowledge.index.points import layout
from knowledge.index.port import Index
from knowledge.index.qdrant import QdrantIndex
from knowledge.index.server.server_engine import ServerEngine
from knowledge.library.library import Library
from knowledge.library.passage_graph import ConnectedPassage, DocumentNames, PassageGraph
from knowledge.sections import document_of
from tests.knowledge.searching.conftest import document, identity, index, opening, put, vectors_of

__all__ = ["index", "opening"]


LICENCE = document("licence", "It was given by Lorenzo Costa.", title="The licence")
COSTA = document("costa", "Lorenzo Costa was born in Mantua.", title="The licensor")
SECRET = document("secret", "It was paid by Lorenzo Costa.", title="Fees", groups=("board",))
FREIGHT = document("freight", "A carrier has the licence, see Article 6.", title="Freight")
ACT = document(
    "act",
    (("1 Scope",), "It applies to all; fees are in Section 2."),
    (("2 Fees",), "A fee is due."),
    (("2 Fees", "Waivers"), "There is none. See Scope."),
    title="The freight act",
)


async def open_graph(index: Any, *groups: str) -> PassageGraph:
    return await Library(index).open_graph(groups)


async def find(index: Any, name: str, *groups: str) -> tuple[str, ...]:
    graph = await open_graph(index, *groups)
    return (await graph.find_sharing([name], most_common=20)).get(name, ())


async def read(index: Any, chunk_id: str, *groups: str) -> ConnectedPassage:
    graph = await open_graph(index, *groups)
    documents = await graph.read_documents([document_of(chunk_id)])
    return (await graph.read_passages([chunk_id], documents))[chunk_id]


async def find_linked(index: Any, chunk_id: str, *groups: str) -> list[str]:
    """Return the documents to which the links of a passage lead."""
    passage = await read(index, chunk_id, *groups)
    names = await (await open_graph(index, *groups)).find_called(passage.links)
    return [
        identifier for name in names.find_in(passage.chunk.text) for identifier in name.document_ids
    ]


async def forget_edges(engine: Engine, documents: Sequence[Document]) -> None:
    """Make an index one that an earlier version has written."""
    names = (layout.MENTIONED, layout.LINKS, layout.CALLED, layout.CONNECTED)
    kept = [
        layout.Point(point.id, {k: v for k, v in point.payload.items() if k not in names},
                     point.dense, point.sparse)
        for document in documents
        for kind in ("chunk", "document")
        for point in await engine.scroll({"kind": kind, "document": document.id}, vectors=True)
    ]  # fmt: skip
    await engine.upsert(kept)
    lists = [layout.links_identity(document.id) for document in documents]
    await engine.delete([layout.graph_identity(), *lists])


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_name_leads_to_all_passages_that_mention_it(index: Index) -> None:
    await put(index, LICENCE, COSTA)

    assert await find(index, "lorenzo costa") == ("costa#0", "licence#0")
    assert await index.connect() == 0, "edges are written once"


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_names_go_with_their_documents(index: Index) -> None:
    await put(index, LICENCE, COSTA)
    changed = document("costa", "He was born in Mantua.", title="The licensor", content_hash="2")
    await put(index, changed)
    after_a_change = await find(index, "lorenzo costa")
    await put(index, COSTA)
    after_a_return = await find(index, "lorenzo costa")
    await index.remove(["licence"])

    assert after_a_change == ()
    assert after_a_return == ("costa#0", "licence#0")
    assert await find(index, "lorenzo costa") == ()


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_names_in_documents_of_other_groups_connect_nothing(index: Index) -> None:
    await put(index, COSTA, SECRET)

    assert await find(index, "lorenzo costa") == ()
    assert await find(index, "lorenzo costa", "board") == ("costa#0", "secret#0")


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_name_that_many_passages_mention_connects_none_whoever_asks(index: Index) -> None:
    many = [document(f"d{at}", "Seen by Lorenzo Costa.", groups=("board",)) for at in range(19)]
    await put(index, LICENCE, COSTA, *many)

    assert await find(index, "lorenzo costa", "board") == ()
    assert await find(index, "lorenzo costa") == ("costa#0", "licence#0")


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_link_leads_to_a_document_that_is_ingested_later(index: Index) -> None:
    await put(index, FREIGHT)
    before = await find_linked(index, "freight#0")
    await put(index, document("a6", "It is lawful.", title="Article 6 Lawfulness"), LICENCE)

    assert before == []
    assert await find_linked(index, "freight#0") == ["licence", "a6"]


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_link_ends_with_the_title_or_the_document_to_which_it_leads(index: Index) -> None:
    article = document("a6", "It is lawful.", title="Article 6 Lawfulness")
    await put(index, FREIGHT, article, LICENCE)
    await put(index, document("a6", "It is lawful.", title="Repealed", content_hash="2"))
    await index.remove(["licence"])

    assert await find_linked(index, "freight#0") == []


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_link_to_a_document_of_other_groups_does_not_exist_for_others(
    index: Index,
) -> None:
    hidden = document("a6", "It is lawful.", title="Article 6", groups=("board",))
    longer = document("l", "Secret.", title="The licence, see Article", groups=("board",))
    await put(index, FREIGHT, hidden, longer, LICENCE)

    assert await find_linked(index, "freight#0") == ["licence"]
    assert await find_linked(index, "freight#0", "board") == ["l"]


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_passage_refers_to_sections_of_its_document_and_has_one_above_it(
    index: Index,
) -> None:
    await put(index, ACT)

    scope, waivers = await read(index, "act#0"), await read(index, "act#2")

    assert (scope.references, scope.parent) == (("act#1",), "")
    assert (waivers.references, waivers.parent) == (("act#0",), "act#1")


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_edges_are_written_again_after_a_run_that_was_interrupted(index: Index) -> None:
    await put(index, FREIGHT)
    await index.put(LICENCE, vectors_of(LICENCE), "library")
    await index.put(COSTA, vectors_of(COSTA), "library")
    before = await find_linked(index, "freight#0")

    assert before == []
    assert await index.connect() == 2
    assert await find_linked(index, "freight#0") == ["licence"]


async def list_points(engine: Engine, kind: str) -> list[dict[str, Any]]:
    return [point.payload for point in await engine.scroll({"kind": kind})]


@pytest.fixture(params=["embedded", "server"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made: Engine
    if request.param == "embedded":
        made = EdgeEngine(tmp_path / "index", identity().dimensions)
    else:
        server = ServerEngine(AsyncQdrantClient(":memory:"), identity(), "memory")
        await server.prepare()
        made = server
    yield made
    await made.close()


@pytest.fixture
async def earlier(engine: Engine) -> Any:
    index = QdrantIndex(engine, identity())
    await index.open()
    await put(index, LICENCE, COSTA, FREIGHT)
    await forget_edges(engine, (LICENCE, COSTA, FREIGHT))
    return index


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_links_change_no_chunk_and_go_with_their_document(engine: Engine) -> None:
    index = QdrantIndex(engine, identity())
    await index.open()
    await index.put(FREIGHT, vectors_of(FREIGHT), "library")
    await index.put(SECRET, vectors_of(SECRET), "library")
    before = await list_points(engine, "chunk")
    await put(index, LICENCE)
    linked = await find_linked(index, "freight#0")
    after = [
        point for point in await list_points(engine, "chunk") if point["document"] != "licence"
    ]
    groups = {
        point["document"]: point.get("groups") for point in await list_points(engine, "links")
    }
    await index.remove(["freight", "secret"])

    assert linked == ["licence"]
    assert sorted(map(str, after)) == sorted(map(str, before))
    assert groups == {"freight": None, "secret": ["board"], "licence": None}
    assert [point["document"] for point in await list_points(engine, "links")] == ["licence"]


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_long_document_has_the_links_of_all_its_passages(index: Index) -> None:
    count = 2 * layout.CHUNKS_OF_LINKS + 2
    texts = [((f"Part {at}",), f"Part {at} has the licence.") for at in range(count)]
    await put(index, document("long", *texts, title="A long one"))
    await put(index, LICENCE)

    assert [await find_linked(index, f"long#{at}") for at in (0, 64, count - 1)] == [
        ["licence"]
    ] * 3


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_an_index_of_an_earlier_version_says_once_that_it_has_no_edges(earlier: Any) -> None:
    library = Library(earlier)

    with structlog.testing.capture_logs() as logs:
        graphs = [await library.open_graph() for _ in range(2)]

    assert [await graph.find_sharing(["lorenzo costa"], most_common=20) for graph in graphs] == [
        {},
        {},
    ]
    assert [log["remedy"] for log in logs if log["event"] == "graph_missing"] == [
        "ingest the documents again"
    ]


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_the_next_ingestion_writes_the_edges_of_an_index_of_an_earlier_version(
    earlier: Any,
) -> None:
    assert await earlier.connect() == 3

    assert await find(earlier, "lorenzo costa") == ("costa#0", "licence#0")
    assert await find_linked(earlier, "freight#0") == ["licence"]


def make_listed(name: str, title: str, version: str = "") -> ListedDocument:
    return ListedDocument(
        id=name, title=title, source="s", root="r", language="en", chunks=1, stated_version=version
    )


NAMES = DocumentNames(
    [
        make_listed("ac2", "AC-2 Account Management"),
        make_listed("ac2-10@r4", "AC-2(10) Account Management | Shared", "r4"),
        make_listed("ac2-10@r5", "AC-2(10) Account Management | Shared", "r5"),
        make_listed("a6", "Article 6 Lawfulness"),
        make_listed("song", "Victrola (song)"),
        make_listed("it", "It"),
        make_listed("year", "1984"),
    ]
)


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("[Withdrawn: Incorporated into AC-2.]", ["ac2"]),
        ("see AC-2 (10)", ["ac2-10@r5"]),
        ("pursuant to Article 6(2)(a)", ["a6"]),
        ("article 60", []),
        ("the performer of Victrola was", ["song"]),
        ("VICTROLA (SONG)", ["song"]),
        ("it is", []),
        ("", []),
    ],
)
def test_a_text_names_documents_by_title_and_code(text: str, ids: list[str]) -> None:
    assert [identifier for name in NAMES.find_in(text) for identifier in name.document_ids] == ids


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
def test_a_version_that_is_asked_for_is_the_one_that_is_found() -> None:
    assert NAMES.find("ac-2(10)", "r4") == ["ac2-10@r4"]
    assert NAMES.find("AC-2(10)") == ["ac2-10@r5"]
    assert NAMES.find("unknown") == []


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
def test_a_long_text_is_read_in_time() -> None:
    assert len(NAMES.find_in("AC-2, " * 20_000)) == 20_000


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("stars Meg Ryan and Jo Orr", {"meg ryan and jo orr", "meg ryan", "jo orr"}),
        ("He met the Bank of England in Rome", {"bank of england in rome"}),
        ("In 1984 she read it", set()),
        ('the term "pyrrhic victory" comes', {"pyrrhic victory"}),
        ("a small word", set()),
        ("東京は大きい", set()),
        ("", set()),
    ],
)  # fmt: skip
def test_names_are_runs_of_capitalised_words_and_quoted_phrases(text: str, names: set[str]) -> None:
    assert set(find_mentioned_names(text)) == names
