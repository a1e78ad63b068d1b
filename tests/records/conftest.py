import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakeredis import FakeServer

from broker.embedded.endpoint import Endpoint
from broker.redis_broker import RedisBroker
from records.store import RecordStore, Selection, connect_store
from tests.support.broker_harness import ROLES, SHORT_LEASE, BrokerHarness


@pytest.fixture
async def harness() -> AsyncIterator[BrokerHarness]:
    client = Endpoint(url="", durable=False, played=FakeServer()).client()

    def make(**options: Any) -> RedisBroker:
        return RedisBroker(client, **{"lease_seconds": SHORT_LEASE, **options})

    broker = make()
    await broker.prepare(ROLES)
    yield BrokerHarness(broker, client, make)
    await client.aclose()


def find_postgres() -> Path | None:
    """Return the folder of PostgreSQL's programs, as Debian installs them."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A real PostgreSQL of the test run's own, on a socket; it does not run as root."""
    programs = find_postgres()
    if programs is None:
        missing = "PostgreSQL is not installed: apt-get install postgresql"
        if os.environ.get("CI"):
            pytest.fail(f"{missing}, and CI must not skip what needs it")
        pytest.skip(missing)
    user: dict[str, Any] = {"user": "postgres"} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="rd-pg-") as folder:
        if user:
            subprocess.run(["chown", "postgres", folder], check=True)
        data = f"{folder}/data"
        quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder, **user}
        initdb = [f"{programs}/initdb", "-D", data, "-A", "trust", "-U", "refdesk", "--no-sync"]
        subprocess.run(initdb, **quiet)
        options = f"-c listen_addresses='' -c fsync=off -k {folder}"
        control = [f"{programs}/pg_ctl", "-D", data, "-w"]
        subprocess.run([*control, "-l", f"{folder}/log", "-o", options, "start"], **quiet)
        try:
            yield f"postgresql://refdesk@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)


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
