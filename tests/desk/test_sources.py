"""Sources are ingested again while the desk serves."""

import json
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.runtime import Runtime, run_desk
from deploy.assembly.source_refresh import refresh, refresh_due_sources
from knowledge.ingestion_report import IngestionResult, PlainReport
from knowledge.source_registry import (
    RegisteredSource,
    SourceSpec,
    parse_source,
)
from tests.deploy.test_document_catalog import open_client, open_other_process, owner
from tests.support.app_harness import settings_of
from tests.support.waiting import wait_until
from tests.support.website import make_html, serve_website

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
    open_source_registry(settings.data_place).record([spec], result)


async def list_titles(runtime: Runtime) -> list[str]:
    assert runtime.knowledge is not None
    return sorted(document.title for document in await runtime.knowledge.index.list_documents())


def find_source(settings: Settings, spec: SourceSpec) -> RegisteredSource | None:
    sources = open_source_registry(settings.data_place).read().sources
    return next((source for source in sources if source.spec == spec), None)


@pytest.mark.slow
@pytest.mark.redis
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


@pytest.mark.slow
@pytest.mark.redis
async def test_a_source_that_is_away_is_recorded_and_keeps_its_documents(
    settings: Settings, tmp_path: Path
) -> None:
    away, present = (write_page(tmp_path / name, name, LEAVE) for name in ("away", "present"))
    await ingest(settings, away)
    await ingest(settings, present)
    (tmp_path / "away").rename(tmp_path / "moved")

    async with run_desk(settings) as runtime, refresh(runtime, 0.2):

        def is_recorded() -> bool:
            source = find_source(settings, away)
            return source is not None and source.failed == 1

        await wait_until(is_recorded)
        assert await list_titles(runtime) == ["Leave", "Leave"]

    found = find_source(settings, away)
    assert found is not None
    assert "the file or folder cannot be read" in found.reasons[0]


@pytest.mark.slow
@pytest.mark.redis
def test_a_removed_source_is_forgotten_and_those_of_others_stay(tmp_path: Path) -> None:
    first, second = (settings_of(tmp_path, tenant=name) for name in ("first", "second"))
    spec = SourceSpec(place="/documents")
    for settings in (first, second, first):
        open_source_registry(settings.data_place).record([spec], IngestionResult())
    identity = open_source_registry(first.data_place).read().id

    assert open_source_registry(first.data_place).forget("/documents")
    assert not open_source_registry(first.data_place).forget("/documents")

    left = open_source_registry(second.data_place).read()
    assert [source.tenant for source in left.sources] == ["second"]
    assert left.id == identity


__all__ = ["owner"]


SOURCES = "/v1/sources"


def let(owner: Runtime, *prefixes: str) -> Runtime:
    return replace(
        owner, settings=owner.settings.model_copy(update={"sources_over_http": list(prefixes)})
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    served = tmp_path / "served"
    served.mkdir()
    (served / "lamps.md").write_text("# Lamps\n\nThere are five lamps in the hall.\n")
    return served


async def test_a_source_is_added_read_listed_and_removed(owner: Runtime, folder: Path) -> None:
    async with open_other_process(let(owner, str(folder))) as client:
        asked = {"source": str(folder), "schedule": "0 6 * * *"}
        added = await client.post(SOURCES, json=asked)
        place = f"{SOURCES}/{added.json()['id']}"
        begun = await client.post(f"{place}/sync")

        async def is_read() -> bool:
            (one,) = (await client.get(SOURCES)).json()["sources"]
            return bool(one["state"] == "read")

        await wait_until(is_read)
        stopped = await client.post(f"{place}/stop")
        (listed,) = (await client.get(SOURCES)).json()["sources"]
        documents = (await client.get("/v1/documents", params={"pattern": "served"})).json()
        codes = [(await client.delete(place)).status_code for _ in range(2)]
        lost = await client.post(f"{place}/sync")

    assert (added.status_code, added.json()["state"]) == (201, "waiting")
    assert (begun.status_code, begun.json()["state"]) == (202, "reading")
    assert (stopped.status_code, stopped.json()["state"]) == (202, "read")
    assert (listed["schedule"], listed["failed"]) == ("0 6 * * *", 0)
    assert listed["next_at"].endswith("T06:00:00Z")
    assert [document["id"] for document in documents["documents"]] == ["served/lamps"]
    assert codes == [204, 404]
    assert lost.status_code == 404


async def test_entries_that_cannot_be_used_are_listed_beside_the_others_and_removed(
    owner: Runtime, folder: Path
) -> None:
    settings = owner.settings
    named = {"tenant": settings.tenant, "assistant": settings.assistant, "read_at": 5.0}
    list_file = settings.refdesk_data / "sources.json"
    later = {**named, "spec": {"place": "s3://docs/later", "region": "eu"}, "schedule": ""}
    never = {**named, "spec": {"place": "s3://docs/never"}, "schedule": "0 0 31 2 *"}
    kept = json.loads(list_file.read_text()) if list_file.exists() else {"sources": []}
    list_file.write_text(json.dumps({**kept, "sources": [*kept["sources"], later, never]}))

    async with open_other_process(let(owner, str(folder))) as client:
        await client.post(SOURCES, json={"source": str(folder)})
        listed = {
            source["source"]: source for source in (await client.get(SOURCES)).json()["sources"]
        }
        stored = json.loads(list_file.read_text())["sources"]
        await refresh_due_sources(owner, None)
        removed = [
            (await client.delete(f"{SOURCES}/{listed[place]['id']}")).status_code
            for place in ("s3://docs/later", "s3://docs/never")
        ]
        left = (await client.get(SOURCES)).json()["sources"]

    assert listed[str(folder)]["state"] == "waiting"
    assert "spec.region" in listed["s3://docs/later"]["reasons"][0]
    assert "within the next 5 years" in listed["s3://docs/never"]["reasons"][0]
    assert later in stored
    assert (removed, [item["source"] for item in left]) == ([204, 204], [str(folder)])


async def test_a_source_that_the_settings_do_not_name_is_refused(
    owner: Runtime, folder: Path
) -> None:
    (folder / "out").symlink_to("/etc")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"source": "/etc"}, "cannot be added over HTTP"),
        ({"source": str(folder / "out")}, "cannot be added over HTTP"),
        ({"source": f"{folder}-secret"}, "cannot be added over HTTP"),
        ({"source": "git:/srv/secret"}, "cannot be added over HTTP"),
        ({"source": "s3://docs-secret"}, "cannot be added over HTTP"),
        ({"source": "s3://docs/../secret"}, "cannot be added over HTTP"),
        ({"source": "s3://docs/%2e%2e/secret"}, "cannot be added over HTTP"),
        ({"source": "webdav://user:word@host/a"}, "must not contain a password"),
        ({"source": "confluence://evil.example/HR"}, "cannot be added over HTTP"),
        ({"source": "ftp://host"}, "expected a path"),
        ({"source": "s3://docs/a", "schedule": "daily"}, "expected a schedule"),
        ({"source": "s3://docs/a", "schedule": "0 0 31 2 *"}, "within the next 5 years"),
        ({"source": "s3://docs/a", "schedule": "0 0 31 4,6,9,11 *"}, "within the next 5 years"),
        ({"source": "s3://docs/a", "schedule": "* * * * * *"}, "with five fields"),
        ({"source": "s3://docs/a", "schedule": "R R * * *"}, "with five fields"),
    ]
    async with open_client(let(owner, "https://", "s3://docs", str(folder))) as client:
        answers = [await client.post(SOURCES, json=asked) for asked, _ in refused]
        listed = (await client.get(SOURCES)).json()

    assert [response.status_code for response in answers] == [400] * len(refused)
    for answer, (_, reason) in zip(answers, refused, strict=True):
        assert reason in answer.text
    assert listed == {"sources": []}


async def test_a_website_in_this_network_is_read_only_if_its_host_is_named(owner: Runtime) -> None:
    with serve_website() as site:
        site.pages["/"] = make_html("Metadata", "The token of this machine is 12345.")
        async with open_other_process(let(owner, "http://")) as client:
            refused = await client.post(SOURCES, json={"source": f"{site.url}/"})
        assert (refused.status_code, site.requests) == (400, [])
        assert "public address" in refused.text
        assert open_source_registry(owner.settings.data_place).list_own() == []
        async with open_other_process(let(owner, site.url)) as client:
            added = await client.post(SOURCES, json={"source": f"{site.url}/"})
            await client.post(f"{SOURCES}/{added.json()['id']}/sync")

            async def is_read() -> bool:
                (one,) = (await client.get(SOURCES)).json()["sources"]
                return bool(one["state"] == "read")

            await wait_until(is_read)
    assert ("/", 200) in site.requests
