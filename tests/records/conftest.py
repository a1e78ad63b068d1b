import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from records.store import RecordStore, Selection, connect_store
from tests.support.broker_harness import BrokerHarness, play_broker
from tests.support.postgres import PostgresServer


@pytest.fixture
async def harness() -> AsyncIterator[BrokerHarness]:
    async with play_broker() as made:
        yield made


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a real PostgreSQL of the test run's own."""
    with tempfile.TemporaryDirectory(prefix="rd-pg-") as folder:
        server = PostgresServer(Path(folder))
        server.start()
        try:
            yield server.url
        finally:
            server.kill()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordStore]:
    """An empty store in each of the databases."""
    is_file = request.param == "sqlite"
    url = f"sqlite:///{tmp_path / 'records.sqlite3'}" if is_file else None
    opened = connect_store(url or request.getfixturevalue("postgres_url"))
    opened.prepare()
    yield opened
    for record in opened.find(Selection(), limit=1000):
        opened.forget(record.id)
    opened.close()
