"""Describes a source of documents, as a person names it and as the next refresh needs it."""

import os
from pathlib import Path, PurePosixPath

from pydantic import BaseModel

from deploy.errors import CommandError
from knowledge.crawling.crawl_values import CrawlOutcome
from knowledge.crawling.errors import AddressRefusedError
from knowledge.crawling.web_scope import check_start

WEB = ("http://", "https://")
GIT = "git:"


class SourceSpec(BaseModel, frozen=True, extra="forbid"):
    """A source: `place` is an absolute path, a web address, or `git:` and an absolute path.

    `revision` and `folder` are those of a repository; `web_address` makes web addresses of paths,
    see `knowledge.documents.exports.make_address`. None: the limits of the settings.
    """

    place: str
    revision: str = ""
    folder: str = ""
    web_address: str = ""
    pages: int | None = None
    depth: int | None = None
    seconds: float | None = None

    @property
    def is_website(self) -> bool:
        """Whether the place is a website, which is crawled."""
        return self.place.startswith(WEB)

    @property
    def is_repository(self) -> bool:
        """Whether the place is a Git repository on this machine."""
        return self.place.startswith(GIT)

    @property
    def repository(self) -> Path:
        """The folder of the repository."""
        return Path(self.place.removeprefix(GIT))

    @property
    def root(self) -> str:
        """The name of the source in the index; a folder of a repository is a separate one."""
        return f"{self.place}/{self.folder}".rstrip("/") if self.is_repository else self.place


class FetchedSource(BaseModel, frozen=True, extra="forbid"):
    """A source that is ready to be ingested; `outcome` is that of its crawl, if it is a website."""

    spec: SourceSpec
    outcome: CrawlOutcome | None = None


def parse_source(text: str, **options: str | float | None) -> SourceSpec:
    """Return the source that a person names; raise `CommandError` if it names none."""
    if text.lower().startswith(WEB):
        try:
            return SourceSpec.model_validate({"place": check_start(text), **options})
        except AddressRefusedError as error:
            raise CommandError(str(error)) from error
    is_repository = text.startswith(GIT)
    path = os.path.abspath(text.removeprefix(GIT))
    spec = SourceSpec.model_validate({"place": f"{GIT * is_repository}{path}", **options})
    _check_options(spec)
    return spec


def _check_options(spec: SourceSpec) -> None:
    if not spec.is_repository and (spec.revision or spec.folder):
        raise CommandError("--revision and --folder are for repositories: refdesk ingest git:PATH")
    folder = PurePosixPath(spec.folder)
    if folder.is_absolute() or ".." in folder.parts:
        raise CommandError(f"expected a folder of the repository, found {spec.folder!r}")
    if spec.web_address and not spec.web_address.startswith(WEB):
        raise CommandError(
            "expected a web address such as https://github.com/acme/docs/blob/{revision}/{path}, "
            f"found {spec.web_address!r}"
        )


def spec_of(source: "Path | SourceSpec") -> SourceSpec:
    """Return the source of a path."""
    return source if isinstance(source, SourceSpec) else SourceSpec(place=str(source.absolute()))
