import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from broker.embedded_redis import Endpoint
from broker.transport.connect import connect
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import Knowledge, make_embedder, open_index
from knowledge.embedding import Embedder
from knowledge.ingestion_report import PlainReport
from knowledge.search.searcher import LevelSearcher
from llm.port import Model
from tests.support.app_harness import (
    EXAMPLES,
    AppHarness,
    open_knowledge_with,
    run_app,
    settings_of,
)
from tests.support.empty_redis import PLAYED_REDIS, play_redis
from tests.support.folder_copy import copy_folder
from tests.support.model_server import ModelServer, running_server
from tests.support.restricted_documents import HIDDEN, PAGES, ingest_pages
from tests.support.shared_folder import provide_folder

OpenApp = Callable[..., AbstractAsyncContextManager[AppHarness]]
OpenReviews = OpenApp
"""Opens a desk over the example of a review, which is answered by specialists."""


@pytest.fixture(autouse=True)
def _settings_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the machine reaches a test, nor a command that a test starts."""
    from config.settings import Settings

    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the example documents, read once."""
    return provide_folder(tmp_path_factory, "library", partial(ingest_example, "sms_platform"))


def ingest_example(name: str, folder: Path) -> None:
    """Read the documents of an example into a data folder."""
    quiet = PlainReport(lambda _line: None)
    result = asyncio.run(run_ingestion(settings_of(folder), [EXAMPLES / name], quiet))
    assert (result.failed, result.added > 0) == ((), True)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    """A vendor's server, which sends what a test says."""
    async with running_server() as opened:
        yield opened


@pytest.fixture(scope="session")
def embedder(library: Path) -> Embedder:
    """The shipped model, loaded once."""
    return make_embedder(settings_of(library))


@pytest.fixture(scope="session")
def restricted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with pages for everybody and pages of groups, read once."""
    return asyncio.run(ingest_pages(tmp_path_factory.mktemp("restricted"), {**PAGES, **HIDDEN}))


@pytest.fixture(scope="session")
def unrestricted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the same pages for everybody, and without those of groups."""
    return asyncio.run(ingest_pages(tmp_path_factory.mktemp("unrestricted"), PAGES))


@pytest.fixture
def own_library(library: Path, tmp_path: Path) -> Path:
    """A data folder of the test's own, with the example documents."""
    copy_folder(library / "index", tmp_path / "index")
    return tmp_path


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[Any]:
    """An empty Redis, a real one."""
    made: Any = connect(redis_url)
    await made.flushall()
    yield made
    await made.aclose()


@pytest.fixture
async def knowledge(library: Path, embedder: Embedder) -> AsyncIterator[Knowledge]:
    """The example documents, open."""
    async with open_knowledge_with(settings_of(library), embedder) as found:
        yield found


@pytest.fixture(params=PLAYED_REDIS)
async def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    """An empty Redis: played in the process, and a real one."""
    if request.param == "played":
        return play_redis()
    made = Endpoint(url=request.getfixturevalue("redis_url"), durable=True)
    client = made.client()
    await client.flushall()
    await client.aclose()
    return made


@pytest.fixture
def open_app(library: Path, endpoint: Endpoint, knowledge: Knowledge) -> OpenApp:
    """Opens the desk over the example documents, with a model of the test's choice."""

    def open_harness(
        model: Model | None = None, **changes: object
    ) -> AbstractAsyncContextManager[AppHarness]:
        return run_app(settings_of(library, **changes), endpoint, knowledge, model)

    return open_harness


@pytest.fixture(scope="session")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the law and the contracts of the example, read once."""
    make = partial(ingest_example, "data_protection_review")
    return provide_folder(tmp_path_factory, "reviews", make)


@pytest.fixture
async def open_reviews(
    reviews: Path, endpoint: Endpoint, embedder: Embedder
) -> AsyncIterator[OpenReviews]:
    """Opens the desk over the example, with a model of the test's choice."""
    index = await open_index(settings_of(reviews), embedder)

    def open_harness(
        model: Model | None = None, **changes: Any
    ) -> AbstractAsyncContextManager[AppHarness]:
        settings = settings_of(
            reviews,
            **{
                "way": "specialists",
                "domain_name": "Compliance desk",
                "domain_scope": "data protection in contracts",
                **changes,
            },
        )
        result = Knowledge(
            index,
            embedder,
            LevelSearcher(index, embedder),
        )
        return run_app(settings, endpoint, result, model)

    yield open_harness
    await index.close()
