from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from knowledge.index.embedded import open_embedded
from tests.knowledge.searching.conftest import document, identity, put
from tests.tools.conftest import make_parts
from tools.catalog import make_builtin
from tools.executor import ToolExecutor
from tools.tool import ToolParts

ISLANDS = ("Amrum", "Borkum", "Calder")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def parts(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ToolParts]:
    """One index for all tests: no worker writes to it."""
    index = await open_embedded(tmp_path_factory.mktemp("swarm") / "index", identity())
    await put(
        index,
        document("islands", f"The islands of the county are {'; '.join(ISLANDS)}", title="County"),
        *(
            document(
                island.lower(), f"The ferry to {island} leaves at {number} o'clock.", title=island
            )
            for number, island in enumerate(ISLANDS, start=7)
        ),
        document("harbour", "The harbour office sells tickets for boats.", title="Harbour"),
    )
    yield make_parts(index)
    await index.close()


@pytest.fixture
def executor(parts: ToolParts) -> ToolExecutor:
    return ToolExecutor(make_builtin(parts))
