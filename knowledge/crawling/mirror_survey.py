"""Surveys a mirrored website, as a folder is surveyed: its files, and where each of them stands."""

from collections import Counter
from dataclasses import replace
from pathlib import PurePosixPath

from knowledge.crawling.crawl_values import CrawlOutcome
from knowledge.crawling.web_scope import CrawlScope
from knowledge.crawling.website_mirror import MirroredPage, WebsiteMirror
from knowledge.documents.folder import FolderListing, FoundFile
from knowledge.documents.survey import LanguageOf, ReadTitle, Survey, place_files


def survey_mirror(
    mirror: WebsiteMirror,
    outcome: CrawlOutcome,
    read_title: ReadTitle,
    language_of: LanguageOf,
) -> Survey:
    """Return the pages of a mirror; each one is named by its address, to which citations lead."""
    scope = CrawlScope.of(mirror.start)
    pages = dict(mirror.list_documents())
    paths = _name_files(scope, pages)
    files = [FoundFile(path, mirror.locate(pages[url])) for url, path in paths.items()]
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


def _name_files(scope: CrawlScope, pages: dict[str, MirroredPage]) -> dict[str, PurePosixPath]:
    """Return a path for each address, whose suffix chooses the reader; no path is used twice."""
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
