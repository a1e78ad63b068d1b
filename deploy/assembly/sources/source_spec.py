"""Describes a source of documents, as a person names it and as the next refresh needs it."""

import os
from pathlib import Path

from pydantic import BaseModel

from deploy.errors import CommandError
from knowledge.crawling.crawl_values import CrawlOutcome
from knowledge.crawling.errors import AddressRefusedError
from knowledge.crawling.web_scope import check_start

WEB = ("http://", "https://")


class SourceSpec(BaseModel, frozen=True, extra="forbid"):
    """A source: `place` is an absolute path or a web address; None: the limits of the settings."""

    place: str
    pages: int | None = None
    depth: int | None = None
    seconds: float | None = None

    @property
    def is_website(self) -> bool:
        """Whether the place is a website, which is crawled."""
        return self.place.startswith(WEB)


class FetchedSource(BaseModel, frozen=True, extra="forbid"):
    """A source that is ready to be ingested; `outcome` is that of its crawl, if it is a website."""

    spec: SourceSpec
    outcome: CrawlOutcome | None = None


def parse_source(text: str, **options: float | None) -> SourceSpec:
    """Return the source that a person names; raise `CommandError` if it names none."""
    if text.lower().startswith(WEB):
        try:
            return SourceSpec.model_validate({"place": check_start(text), **options})
        except AddressRefusedError as error:
            raise CommandError(str(error)) from error
    return SourceSpec(place=os.path.abspath(text))


def spec_of(source: "Path | SourceSpec") -> SourceSpec:
    """Return the source of a path."""
    return source if isinstance(source, SourceSpec) else SourceSpec(place=str(source.absolute()))
