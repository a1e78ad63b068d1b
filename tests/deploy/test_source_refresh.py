"""Sources are ingested again while the desk serves."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from config.settings import Settings
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.runtime import Runtime, run_desk
from deploy.assembly.source_refresh import refresh
from deploy.assembly.source_registry import (
    RegisteredSource,
    SourceRegistry,
    SourceSpec,
    parse_source,
)
from knowledge.ingestion_report import IngestionResult, PlainReport
from tests.support.app_harness import settings_of
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.redis]

LEAVE = "# Leave\n\nEverybody has 27 days of leave.\n"


@pytest.fixture
def settings(tmp_path: Path, redis_url: str) -> Settings:
    return settings_of(tmp_path / "data", redis_url=redis_url, tenant="refreshed")


def write_page(folder: Path, name: str, text: str) -> SourceSpec:
    """Write a page into a folder, and return the folder as a source."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.md").write_text(text)
    return parse_source(str(folder))


async def ingest(settings: Settings, spec: SourceSpec) -> None:
    """Ingest a source as the command does."""
    result = await run_ingestion(settings, [spec], PlainReport(lambda _line: None))
    SourceRegistry(settings).record([spec], result)


async def list_titles(runtime: Runtime) -> list[str]:
    assert runtime.knowledge is not None
    return sorted(one.title for one in await runtime.knowledge.index.list_documents())


def find_source(settings: Settings, spec: SourceSpec) -> RegisteredSource | None:
    sources = SourceRegistry(settings).read().sources
    return next((one for one in sources if one.spec == spec), None)


async def test_a_changed_folder_is_read_again_by_one_of_two_processes(
    settings: Settings, tmp_path: Path
) -> None:
    spec = write_page(tmp_path / "docs", "leave", LEAVE)
    await ingest(settings, spec)

    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(run_desk(settings))
        await stack.enter_async_context(refresh(runtime, 0.2))
        await stack.enter_async_context(refresh(runtime, 0.2))
        write_page(tmp_path / "docs", "travel", "# Travel\n\nBook at the travel desk.\n")
        (tmp_path / "docs" / "leave.md").unlink()

        async def is_refreshed() -> bool:
            return await list_titles(runtime) == ["Travel"]

        await wait_until(is_refreshed)


async def test_a_source_that_is_away_is_recorded_and_keeps_its_documents(
    settings: Settings, tmp_path: Path
) -> None:
    away, present = (write_page(tmp_path / name, name, LEAVE) for name in ("away", "present"))
    await ingest(settings, away)
    await ingest(settings, present)
    (tmp_path / "away").rename(tmp_path / "moved")

    async with run_desk(settings) as runtime, refresh(runtime, 0.2):

        def is_recorded() -> bool:
            found = find_source(settings, away)
            return found is not None and found.failed == 1

        await wait_until(is_recorded)
        assert await list_titles(runtime) == ["Leave", "Leave"]

    found = find_source(settings, away)
    assert found is not None
    assert "expected a file or a folder, found none" in found.reasons[0]


def test_a_removed_source_is_forgotten_and_those_of_others_stay(tmp_path: Path) -> None:
    first, second = (settings_of(tmp_path, tenant=name) for name in ("first", "second"))
    spec = SourceSpec(place="/documents")
    for one in (first, second, first):
        SourceRegistry(one).record([spec], IngestionResult())
    identity = SourceRegistry(first).read().id

    assert SourceRegistry(first).forget("/documents")
    assert not SourceRegistry(first).forget("/documents")

    left = SourceRegistry(second).read()
    assert [one.tenant for one in left.sources] == ["second"]
    assert left.id == identity
