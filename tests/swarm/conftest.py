from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from knowledge.index.embedded import open_embedded
from knowledge.library.library import Library
from knowledge.search.searcher import LevelSearcher
from llm.offline.model import OfflineModel
from swarm.planning.plan import DocumentReference
from swarm.workers.run_worker import WorkerRunner
from swarm.workers.worker_type import make_registry
from tests.knowledge.searching.conftest import WordEmbedder, document, identity, put
from tests.tools.conftest import Parts
from tools.catalog import make_builtin
from tools.executor import ToolExecutor
from tools.schemas import describe_tools

ISLANDS = ("Amrum", "Borkum", "Calder")
CONTRACTS = (
    (
        "c1",
        "Supply Contract",
        "The Supplier has a right to audit the books and records of the Buyer.",
    ),
    ("c2", "Lease Contract", "The Tenant pays the rent of the garden on the first day of a month."),
    (
        "c3",
        "License Contract",
        "The Buyer may audit the books and records of the Seller. In no event is the aggregate "
        "liability of a party to exceed the amount that was paid, and no party is to be liable "
        "for consequential damages.",
    ),
)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def parts(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Parts]:
    """One index for all tests: no worker writes to it."""
    index = await open_embedded(tmp_path_factory.mktemp("swarm") / "index", identity())
    await put(
        index,
        document("islands", f"The islands of the county are {'; '.join(ISLANDS)}", title="County"),
        *(
            document(one.lower(), f"The ferry to {one} leaves at {number} o'clock.", title=one)
            for number, one in enumerate(ISLANDS, start=7)
        ),
        document("harbour", "The harbour office sells tickets for boats.", title="Harbour"),
        *(document(name, text, title=title) for name, title, text in CONTRACTS),
    )
    yield Parts(LevelSearcher(index, WordEmbedder()), Library(index))
    await index.close()


@pytest.fixture
def runner(parts: Parts) -> WorkerRunner:
    catalog = make_builtin(parts)
    tools = describe_tools(catalog.select())
    return WorkerRunner(OfflineModel(), ToolExecutor(catalog), tools, make_registry())


@pytest.fixture
def references() -> tuple[DocumentReference, ...]:
    return tuple(DocumentReference(document_id=name, title=title) for name, title, _ in CONTRACTS)
