"""Programs add, list, remove and read sources over HTTP, as far as the settings let them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.assembly.runtime import Runtime
from deploy.assembly.source_registry import SourceRegistry
from tests.deploy.test_document_catalog import open_client, open_other_process, owner
from tests.support.waiting import wait_until
from tests.support.website import make_html, serve_website

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
        (listed,) = (await client.get(SOURCES)).json()["sources"]
        documents = (await client.get("/v1/documents", params={"pattern": "served"})).json()
        codes = [(await client.delete(place)).status_code for _ in range(2)]
        lost = await client.post(f"{place}/sync")

    assert (added.status_code, added.json()["state"]) == (201, "waiting")
    assert (begun.status_code, begun.json()["state"]) == (202, "reading")
    assert (listed["schedule"], listed["failed"]) == ("0 6 * * *", 0)
    assert listed["next_at"].endswith("T06:00:00Z")
    assert [one["id"] for one in documents["documents"]] == ["served/lamps"]
    assert codes == [204, 404]
    assert lost.status_code == 404


async def test_a_source_that_the_settings_do_not_name_is_refused(
    owner: Runtime, folder: Path
) -> None:
    (folder / "out").symlink_to("/etc")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"source": "/etc"}, "may not be added over HTTP"),
        ({"source": str(folder / "out")}, "may not be added over HTTP"),
        ({"source": f"{folder}-secret"}, "may not be added over HTTP"),
        ({"source": "git:/srv/secret"}, "may not be added over HTTP"),
        ({"source": "s3://docs-secret"}, "may not be added over HTTP"),
        ({"source": "s3://docs/../secret"}, "may not be added over HTTP"),
        ({"source": "s3://docs/%2e%2e/secret"}, "may not be added over HTTP"),
        ({"source": "webdav://user:word@host/a"}, "without a password"),
        ({"source": "confluence://evil.example/HR"}, "may not be added over HTTP"),
        ({"source": "ftp://host"}, "expected a path"),
        ({"source": "s3://docs/a", "schedule": "daily"}, "expected a schedule"),
    ]
    async with open_client(let(owner, "https://", "s3://docs", str(folder))) as client:
        answers = [await client.post(SOURCES, json=asked) for asked, _ in refused]
        listed = (await client.get(SOURCES)).json()

    assert [one.status_code for one in answers] == [400] * len(refused)
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
        assert SourceRegistry(owner.settings).list_own() == []
        async with open_other_process(let(owner, site.url)) as client:
            added = await client.post(SOURCES, json={"source": f"{site.url}/"})
            await client.post(f"{SOURCES}/{added.json()['id']}/sync")

            async def is_read() -> bool:
                (one,) = (await client.get(SOURCES)).json()["sources"]
                return bool(one["state"] == "read")

            await wait_until(is_read)
    assert ("/", 200) in site.requests
