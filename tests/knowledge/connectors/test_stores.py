"""Documents of stores are copied from real servers of their kind, and read from the copy."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from knowledge.connectors.store_values import StoreOutcome, is_store
from knowledge.connectors.stores import copy_store, survey_store
from knowledge.errors import ConnectorError
from tests.knowledge.documents.conftest import Desk, desk
from tests.support.stores import serve_s3, serve_sftp, serve_webdav

__all__ = ["desk"]

pytestmark = pytest.mark.slow


class Store(Protocol):
    """A store that is served, and how the tests change it."""

    place: str

    def put(self, path: str, text: str) -> None: ...

    def remove(self, path: str) -> None: ...


class FolderStore:
    def __init__(self, place: str, folder: Path) -> None:
        self.place = place
        self._folder = folder
        self._time = 1_700_000_000

    def put(self, path: str, text: str) -> None:
        file = self._folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        # Servers state times by the second: a change within one has another size, or is later.
        self._time += 10
        os.utime(file, (self._time, self._time))

    def remove(self, path: str) -> None:
        (self._folder / path).unlink()


class BucketStore:
    def __init__(self, bucket: str) -> None:
        import s3fs

        self.place = f"{bucket}/handbook"
        self._files = s3fs.S3FileSystem(skip_instance_cache=True)

    def put(self, path: str, text: str) -> None:
        self._files.pipe(f"docs/handbook/{path}", text.encode())

    def remove(self, path: str) -> None:
        self._files.rm(f"docs/handbook/{path}")


@pytest.fixture(params=["s3", "webdav", "sftp"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    folder = tmp_path / "served"
    folder.mkdir()
    if request.param == "s3":
        with serve_s3(monkeypatch) as bucket:
            yield BucketStore(bucket)
    elif request.param == "webdav":
        with serve_webdav(monkeypatch, folder) as place:
            yield FolderStore(place, folder)
    else:
        with serve_sftp(monkeypatch, folder) as place:
            yield FolderStore(place, folder)


async def ingest(desk: Desk, place: str, folder: Path) -> StoreOutcome:
    outcome = copy_store(place, folder)
    await desk.ingest(partial(survey_store, place, folder, outcome, ""))
    return outcome


async def test_only_what_changed_in_a_store_is_fetched_and_what_is_gone_is_removed(
    store: Store, desk: Desk, tmp_path: Path
) -> None:
    store.put("plans.md", "# Plans\n\nA plan costs 4 EUR.\n")
    store.put("hr/leave.md", "# Leave\n\n27 days.\n")
    store.put("logo.png", "no text")
    store.put(".git/config.md", "hidden")

    first = await ingest(desk, store.place, tmp_path / "copy")

    titles = {document.title for document in desk.index.documents.values()}
    assert (first.fetched, titles) == (2, {"Plans", "Leave"})
    assert [path for path, _ in first.skipped] == ["logo.png"]
    assert set(desk.index.roots.values()) == {store.place}

    store.put("plans.md", "# Plans\n\nA plan costs 5 EUR.\n")
    store.remove("hr/leave.md")
    second = await ingest(desk, store.place, tmp_path / "copy")

    assert second.fetched == 1
    (left,) = desk.index.documents.values()
    assert "5 EUR" in left.content
    assert (await ingest(desk, store.place, tmp_path / "copy")).fetched == 0


async def test_rules_of_access_of_a_store_hold_for_its_documents(
    store: Store, desk: Desk, tmp_path: Path
) -> None:
    store.put("refdesk.toml", '[[documents]]\npath = "hr/*"\ngroups = ["hr"]\n')
    store.put("hr/leave.md", "# Leave\n\n27 days.\n")

    await ingest(desk, store.place, tmp_path / "copy")

    (document,) = desk.index.documents.values()
    assert document.groups == ("hr",)


@pytest.mark.parametrize(
    "imitation",
    ["refdesk.toml\u00a0", "\u2009refdesk.toml", "refdesk\u200b.toml", "hr\u00a0/refdesk.toml"],
)
async def test_a_file_whose_name_looks_like_that_of_the_rules_changes_no_rights(
    imitation: str, store: Store, desk: Desk, tmp_path: Path
) -> None:
    store.put("refdesk.toml", '[[documents]]\npath = "hr/*"\ngroups = ["hr"]\n')
    store.put("hr/leave.md", "# Leave\n\n27 days.\n")
    store.put(imitation, '[[documents]]\npath = "*"\ngroups = ["sales"]\n')

    outcome = await ingest(desk, store.place, tmp_path / "copy")

    (document,) = desk.index.documents.values()
    assert document.groups == ("hr",)
    # The client of WebDAV does not list the files of a folder with such a name.
    assert len(outcome.skipped) == 1 or "/" in imitation


async def test_a_file_with_a_name_that_looks_the_same_replaces_no_other(
    store: Store, desk: Desk, tmp_path: Path
) -> None:
    store.put("leave.md", "# Leave\n\n27 days.\n")
    store.put("\u2009leave.md", "# Leave\n\n99 days.\n")

    await ingest(desk, store.place, tmp_path / "copy")

    (document,) = desk.index.documents.values()
    assert "27 days" in document.content


def test_a_wrong_password_is_an_error_that_says_what_to_do(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("plans.md", "# Plans\n")
    # The server of S3 takes every key: for it, this is one that nobody reaches.
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("WEBDAV_PASSWORD", "wrong")
    monkeypatch.setenv("SFTP_PASSWORD", "wrong")

    with pytest.raises(ConnectorError, match="the credentials in the environment"):
        copy_store(store.place, tmp_path / "copy")


@pytest.mark.parametrize(
    ("place", "is_one"), [("s3://a/b", True), ("S3://a", True), ("a/b", False), ("ftp://a", False)]
)
def test_a_store_is_known_by_its_scheme(place: str, is_one: bool) -> None:
    assert is_store(place) is is_one
