"""An installation is updated worker by worker while it answers: from the last version to this one.

The last version is the commit in `upgraded_from.txt`, which a release moves.
"""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.speed.redis_server import private_redis
from deploy.assembly.runtime import connect_runtime, desk, run_maintenance
from gateway.desk import Desk, Message
from tests.faults.installed_worker import InstalledWorker
from tests.support.app_harness import ROOT, environment, settings_of

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]
AT_LEAST = 20
AGENTS = (
    "lang", "translation", "essence", "guardrails", "search", "augmentation", "response", "quality",
)  # fmt: skip
PAGE = ROOT / "examples" / "sms_platform" / "compliance" / "opt-out.md"
COMPILES = ""
"""The value of `PYTHONDONTWRITEBYTECODE` with which Python keeps what it compiles."""


@pytest.fixture(scope="module")
def last_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the last version, as its commit has it."""
    commit = (Path(__file__).parent / "upgraded_from.txt").read_text().strip()
    completed = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, capture_output=True, check=False
    )
    if completed.returncode:
        pytest.skip(f"the history of this checkout has no commit {commit}")
    folder = tmp_path_factory.mktemp("last_version")
    subprocess.run(["tar", "-x", "-C", folder], input=completed.stdout, check=True)
    return folder


@pytest.fixture
def url() -> Iterator[str]:
    """A server of this test's own."""
    with private_redis() as place:
        yield place


def has_run(code: Path) -> bool:
    """Return whether a process has imported this code, which Python compiles then."""
    return any(code.glob("worker/__pycache__/worker.*.pyc"))


async def ask_on(own: Desk, stop: asyncio.Event, outcomes: dict[str, str]) -> None:
    """Ask one question after the other until `stop` is set."""
    while not stop.is_set() or len(outcomes) < AT_LEAST:
        name = f"m{len(outcomes)}"
        message = Message(
            text="/help", command="help", conversation_id=f"c-{name}", message_id=name
        )
        outcomes[name] = str((await own.ask(message))["outcome"])


async def test_a_rolling_update_loses_and_doubles_no_question(
    last_version: Path, url: str, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path / "desk", redis_url=url)
    outcomes, stop = dict[str, str](), asyncio.Event()

    def worker(name: str, code: Path) -> InstalledWorker:
        return InstalledWorker(tmp_path / name, url, code=code, pythondontwritebytecode=COMPILES)

    async with connect_runtime(settings) as runtime, run_maintenance(runtime):
        own = desk(runtime, "cli")
        old = [worker(f"old{number}", last_version) for number in range(2)]
        new = [worker(f"new{number}", ROOT) for number in range(2)]
        for installed_worker in old:
            await asyncio.to_thread(installed_worker.__enter__)
        try:
            assert has_run(last_version)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(ask_on(own, stop, outcomes))
                for leaving, coming in zip(old, new, strict=True):
                    await asyncio.to_thread(coming.__enter__)
                    assert await asyncio.to_thread(leaving.dismiss) == 0
                stop.set()
        finally:
            for installed_worker in (*old, *new):
                installed_worker.__exit__(None, None, None)

        assert set(outcomes.values()) == {"answered"}
        for name in outcomes:
            question = own.name_question(f"c-{name}", name)
            entries = await runtime.broker.replies.read_journal(question)
            kinds = Counter(entry.kind for entry in entries)
            assert (kinds["accepted"], kinds["finished"], kinds["dead_lettered"]) == (1, 1, 0)
        for installed_worker in (*old, *new):
            assert installed_worker.complaints() == []


@pytest.mark.parametrize("manages", ["last", "this"])
async def test_a_question_is_answered_that_changes_versions_at_every_step(
    last_version: Path, url: str, tmp_path: Path, manages: str
) -> None:
    codes = {"last": last_version, "this": ROOT}
    manager_code, agent_code = codes.pop(manages), next(iter(codes.values()))
    folder = tmp_path / "agents"
    await asyncio.to_thread(ingest, folder, url, agent_code)
    settings = settings_of(tmp_path / "desk", redis_url=url)

    async with connect_runtime(settings) as runtime, run_maintenance(runtime):
        own = desk(runtime, "cli")
        workers = (
            InstalledWorker(tmp_path / "manager", url, roles=("manager",), code=manager_code),
            InstalledWorker(folder, url, roles=AGENTS, code=agent_code),
        )
        try:
            for worker in workers:
                await asyncio.to_thread(worker.__enter__)
            message = Message("How do I opt out of messages?", "c-1", "m-1")
            reply = await own.ask(message)
        finally:
            for worker in workers:
                worker.__exit__(None, None, None)

        journal = await runtime.broker.replies.read_journal(own.name_question("c-1", "m-1"))
        kinds = Counter(entry.kind for entry in journal)
        assert (kinds["accepted"], kinds["finished"], kinds["dead_lettered"]) == (1, 1, 0)
    assert reply["outcome"] == "answered"
    assert "STOP" in str(reply["text"])
    assert [worker.complaints() for worker in workers] == [[], []]


def ingest(folder: Path, url: str, code: Path) -> None:
    """Write an index with the code of a version; raises `CalledProcessError`."""
    folder.mkdir()
    subprocess.run(
        [sys.executable, "-m", "refdesk", "ingest", str(PAGE)],
        cwd=folder,
        env={**environment(folder, redis_url=url), "PYTHONPATH": str(code)},
        check=True,
        capture_output=True,
    )
