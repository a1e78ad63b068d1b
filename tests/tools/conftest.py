from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from knowledge.index.embedded import open_embedded
from knowledge.index.port import Index
from knowledge.library.library import Library
from knowledge.search.searcher import LevelSearcher
from tests.knowledge.searching.conftest import WordEmbedder, document, identity, put
from tools.catalog import ToolCatalog, make_builtin
from tools.executor import ToolExecutor
from tools.tool import ToolParts

REGULATION = (
    document(
        "alfa@2024",
        (("Scope",), "The Alfa Act applies to every carrier that Lorenzo Costa has licensed."),
        (("Fees",), "A carrier pays a fee of 100 euros a year."),
        title="Article 6 Scope of the Alfa Act",
        stated_version="2024",
        content_hash="old",
    ),
    document(
        "alfa@2025",
        (("Scope",), "The Alfa Act applies to every carrier that Lorenzo Costa has licensed."),
        (("Fees",), "A carrier pays a fee of 150 euros a year. See Article 83 for breaches."),
        (("Reports",), "A carrier shall send a report each quarter."),
        title="Article 6 Scope of the Alfa Act",
        stated_version="2025",
        content_hash="new",
    ),
    document(
        "penalties@2025",
        "A breach is punished with a fine of up to 4 % of the annual turnover.",
        title="Article 83 Penalties",
        stated_version="2025",
    ),
    document("repeal@2024", "A carrier keeps a book.", title="Article 9", stated_version="2024"),
    document(
        "repeal@2025",
        "[Withdrawn: incorporated into Article 6.]",
        title="Article 9",
        stated_version="2025",
    ),
    document("costa", "Lorenzo Costa was born in Mantua.", title="The first licensor"),
    document("secret", "The fee of Omega is 7 euros.", title="Omega", groups=("board",)),
    document(
        "weather",
        "It rains in autumn, and the wind is cold.",
        title="Weather",
        summary="The seasons in short.",
    ),
)


def make_parts(index: Index) -> ToolParts:
    """Return the parts of tools over an index, in which a search on one level is one on all."""
    searcher = LevelSearcher(index, WordEmbedder())
    return ToolParts(searcher, lambda _level: searcher, Library(index))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def parts(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ToolParts]:
    """One index for all tests: no tool writes to it."""
    index = await open_embedded(tmp_path_factory.mktemp("tools") / "index", identity())
    await put(index, *REGULATION)
    yield make_parts(index)
    await index.close()


@pytest.fixture
def catalog(parts: ToolParts) -> ToolCatalog:
    return make_builtin(parts)


@pytest.fixture
def executor(catalog: ToolCatalog) -> ToolExecutor:
    return ToolExecutor(catalog)
