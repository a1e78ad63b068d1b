"""Stores the pages of a crawled website in a folder, with the data that the next crawl needs."""

import fcntl
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TypedDict, Unpack

from pydantic import BaseModel, Field, ValidationError

from knowledge.crawling.crawl_values import CrawlError, CrawlOutcome, CrawlScope
from knowledge.documents.folder import FolderListing, FoundFile
from knowledge.documents.survey import LanguageOf, ReadTitle, Survey, place_files
from outbound.fetcher import Validators

_STATE = "crawl.json"
_FORMAT = 1
_FILE = re.compile(r"[0-9a-f]{64}")


class MirroredPage(BaseModel, frozen=True, extra="forbid"):
    """The last fetched state of a page; `file` is its name in the folder."""

    file: str = Field(pattern=r"^[0-9a-f]{64}$")
    suffix: str = Field(
        pattern=r"^\.[a-z0-9]{1,10}$", description="reader for the format of the page"
    )
    etag: str = ""
    last_modified: str = ""
    depth: int = Field(0, ge=0)
    canonical: str = Field("", description="canonical URL stated by the page, if different")
    pictures: dict[str, str] = Field({}, description="files by the URLs on the page")


class PageFields(TypedDict):
    """The metadata of a crawled page; see `MirroredPage`."""

    suffix: str
    etag: str
    last_modified: str
    depth: int
    canonical: str


class MirrorState(BaseModel, extra="forbid"):
    """The pages by URL."""

    format: int = _FORMAT
    start: str
    pages: dict[str, MirroredPage] = {}


class WebsiteMirror:
    """The pages of one website in a folder; `save` makes changes durable."""

    def __init__(self, folder: Path, start: str) -> None:
        """Open the mirror in a folder, or an empty one; raises `CrawlError` if it cannot be
        read.
        """
        self._folder = folder
        self._path = folder / _STATE
        self._state = MirrorState(start=start)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._path.exists():
                self._state = MirrorState.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError) as error:
            raise CrawlError(
                f"the pages kept in {folder} cannot be read; remove that folder to fetch them again"
            ) from error

    @property
    def start(self) -> str:
        """The URL at which the crawl starts."""
        return self._state.start

    @property
    def pages(self) -> dict[str, MirroredPage]:
        """The pages by URL."""
        return dict(self._state.pages)

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Lock the mirror while the block runs; raises `CrawlError` if another process holds the
        lock.
        """
        with (self._folder / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise CrawlError(f"another process is crawling {self.start}") from error
            yield

    def find(self, url: str) -> MirroredPage | None:
        """Return a page, or None if it or its file does not exist."""
        page = self._state.pages.get(url)
        return page if page is not None and self.locate(page).exists() else None

    def find_validators(self, url: str) -> Validators:
        """Return the validators that the server sent for a page; empty if there is no page."""
        page = self.find(url)
        return Validators() if page is None else Validators(page.etag, page.last_modified)

    def locate(self, page: MirroredPage) -> Path:
        """Return the path of a page's file."""
        return self._folder / page.file

    def locate_pictures(self, page: MirroredPage) -> dict[str, Path]:
        """Return the files of its pictures, by the URLs used in the page."""
        return {address: self._folder / name for address, name in page.pictures.items()}

    def read(self, page: MirroredPage) -> bytes:
        """Return the bytes of a page; raises `OSError`."""
        return self.locate(page).read_bytes()

    def list_documents(self) -> Iterator[tuple[str, MirroredPage]]:
        """Yield the pages, except those that declare themselves to be copies of another one."""
        for url, page in sorted(self._state.pages.items()):
            original = self._state.pages.get(page.canonical)
            if original is None or original.canonical:
                yield url, page

    def put(self, url: str, body: bytes, **fields: Unpack[PageFields]) -> None:
        """Store a page, replacing its last version; raises `OSError`."""
        name = hashlib.sha256(url.encode()).hexdigest()
        _replace(self._folder / name, body)
        self._state.pages[url] = MirroredPage(file=name, **fields)

    def put_picture(self, url: str, body: bytes) -> str:
        """Store a picture and return its file name; raises `OSError`."""
        name = hashlib.sha256(f"picture {url}".encode()).hexdigest()
        _replace(self._folder / name, body)
        return name

    def show(self, url: str, pictures: dict[str, str]) -> None:
        """Set the pictures of a page, by the URLs used in the page."""
        page = self._state.pages[url]
        self._state.pages[url] = page.model_copy(update={"pictures": pictures})

    def prune(self) -> None:
        """Remove files that no page uses; raises `OSError`."""
        pages = self._state.pages.values()
        needed = {name for page in pages for name in (page.file, *page.pictures.values())}
        for path in self._folder.iterdir():
            if _FILE.fullmatch(path.name) and path.name not in needed:
                path.unlink(missing_ok=True)

    def remove(self, url: str) -> bool:
        """Remove a page; return whether it existed."""
        page = self._state.pages.pop(url, None)
        if page is not None:
            self.locate(page).unlink(missing_ok=True)
        return page is not None

    def save(self) -> None:
        """Write the state atomically; raises `OSError`.

        Another thread may add pages in the meantime, but only one thread saves at a time.
        """
        state = MirrorState(start=self._state.start, pages=dict(self._state.pages))
        _replace(self._path, state.model_dump_json(indent=1).encode())


def survey_mirror(
    mirror: WebsiteMirror,
    outcome: CrawlOutcome,
    read_title: ReadTitle,
    language_of: LanguageOf,
) -> Survey:
    """Return the pages in a mirror, each identified by its URL, to which citations lead."""
    scope = CrawlScope.of(mirror.start)
    pages = dict(mirror.list_documents())
    paths = _name_files(scope, pages)
    files = [
        FoundFile(path, mirror.locate(pages[url]), pictures=mirror.locate_pictures(pages[url]))
        for url, path in paths.items()
    ]
    files.sort(key=lambda file: file.path)
    places = place_files(files, files, read_title, language_of)
    placed = {
        path: replace(places[path], name=url, url=url, is_foreign=True)
        for url, path in paths.items()
    }
    listing = FolderListing(
        files,
        warnings=list(outcome.warnings),
        skipped=list(outcome.skipped),
        unreachable=list(outcome.failures),
        is_partial=outcome.is_partial,
    )
    return Survey(mirror.start, listing, placed)


def _replace(path: Path, data: bytes) -> None:
    waiting = path.with_name(f"{path.name}.new")
    waiting.write_bytes(data)
    os.replace(waiting, path)


def _name_files(scope: CrawlScope, pages: dict[str, MirroredPage]) -> dict[str, PurePosixPath]:
    """Return a path for each URL, whose suffix determines the reader; no path is used twice."""
    bare = {url: scope.name_file(url) for url in pages}
    folders = {folder for path in bare.values() for folder in path.parents}
    counts: Counter[PurePosixPath] = Counter()
    named: dict[str, PurePosixPath] = {}
    for url, path in sorted(bare.items()):
        suffix = pages[url].suffix
        shown = path / "index" if path in folders else path
        if shown.suffix.lower() != suffix:
            shown = shown.with_name(f"{shown.name}{suffix}")
        counts[shown] += 1
        if counts[shown] > 1:
            shown = shown.with_name(f"{shown.stem} ({counts[shown]}){suffix}")
        named[url] = shown
    return named
