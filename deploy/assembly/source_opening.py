"""Opens sources: paths, archives, and repositories on this machine, websites, stores, and
services.
"""

import asyncio
import base64
import re
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from config.settings import Settings
from knowledge.connectors.confluence import Confluence
from knowledge.connectors.connector import (
    Connector,
    Service,
    copy_service,
    open_client,
    survey_service,
)
from knowledge.connectors.git_repository import copy_revision, find_places, survey_copy
from knowledge.connectors.store_values import StoreOutcome, is_service
from knowledge.connectors.stores import copy_store, survey_store
from knowledge.connectors.zendesk import Zendesk
from knowledge.crawling.crawl_values import CrawlLimits, CrawlOutcome
from knowledge.crawling.crawler import AGENT, crawl
from knowledge.crawling.website_mirror import WebsiteMirror, survey_mirror
from knowledge.data_folder import protect_data_folder
from knowledge.documents.survey import LanguageOf, ReadTitle, Survey
from knowledge.errors import ConnectorError
from knowledge.index.listing import ListedDocument
from knowledge.index.overlap import SurveySource, survey_part
from knowledge.ingestion_report import Report
from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess
from knowledge.source_registry import (
    STORES,
    WEBSITES,
    FetchedSource,
    SourceSpec,
    locate_copy,
    spec_of,
)

_NAME_IN_SERVICE = re.compile(r"[A-Za-z0-9~_-]{0,255}")


def open_local(data_folder: Path, spec: SourceSpec, stack: ExitStack) -> Path | SurveySource:
    """Return the source for a path or a repository; `stack` removes its copy at the end."""
    if spec.is_repository:
        protect_data_folder(data_folder)
        # Not in memory, because pages may refer to any file of the repository.
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=data_folder, prefix="git-"))
        return partial(_survey_repository, spec, Path(folder))
    if not spec.web_address:
        return Path(spec.place)
    return partial(_survey_path, spec)


async def fetch_sources(
    settings: Settings, sources: Sequence[Path | SourceSpec], report: Report
) -> list[FetchedSource]:
    """Crawl the websites and copy the stores among the sources; other sources do not need
    preparation.

    This is done before the index is opened, because it may take hours. Raises `ConnectorError` if a
    store is unreachable.
    """
    specs = [spec_of(source) for source in sources]
    if all(spec.is_local for spec in specs):
        return [FetchedSource(spec=spec) for spec in specs]
    protect_data_folder(settings.refdesk_data)
    limits = ReadingLimits(
        seconds=settings.ingestion_file_seconds, memory_mb=settings.ingestion_file_memory_mb
    )
    with ReaderProcess(limits) as reader:
        return [await _fetch(settings, spec, reader, report) for spec in specs]


def limits_of_crawl(delay_seconds: float, spec: SourceSpec) -> CrawlLimits:
    """Return the limits for a crawl, as configured for the source or the defaults."""
    usual = CrawlLimits(delay=delay_seconds)
    return replace(
        usual,
        pages=usual.pages if spec.pages is None else spec.pages,
        depth=usual.depth if spec.depth is None else spec.depth,
        seconds=usual.seconds if spec.seconds is None else spec.seconds,
    )


def survey_website(folder: Path, place: str, outcome: CrawlOutcome) -> SurveySource:
    """Return the survey of a crawled website, whose pages are stored in a folder."""

    def survey(
        listed: Sequence[ListedDocument],
        read_title: ReadTitle,
        language_of: LanguageOf,
    ) -> Survey:
        mirror = WebsiteMirror(folder, place)
        return survey_mirror(mirror, outcome, read_title, language_of)

    return survey


def open_copy(folder: Path, spec: SourceSpec, outcome: StoreOutcome) -> SurveySource:
    """Return the survey of the copy of a store or service in a folder."""
    if is_service(spec.place):
        return partial(survey_service, spec.place, folder, outcome)
    return partial(survey_store, spec.place, folder, outcome, spec.web_address)


@asynccontextmanager
async def open_connector(settings: Settings, place: str) -> AsyncIterator[Connector]:
    """Provide the client for a service; raises `ConnectorError` if the service is not configured.

    Whichever source is added, credentials are sent only to the URLs in the settings.
    """
    scheme, _, rest = place.partition("://")
    host, _, name = rest.partition("/")
    url, email, token = {
        "confluence": (
            settings.confluence_url,
            settings.confluence_email,
            settings.confluence_api_token,
        ),
        "zendesk": (
            settings.zendesk_url,
            f"{settings.zendesk_email}/token",
            settings.zendesk_api_token,
        ),
    }[scheme]
    prefix = scheme.upper()
    if not url or urlsplit(url).netloc.lower() != host:
        raise ConnectorError(
            place,
            f"{prefix}_URL must be the URL of {host}, found {url or 'nothing'}; set "
            f"{prefix}_URL, {prefix}_EMAIL and {prefix}_API_TOKEN",
        )
    if not _NAME_IN_SERVICE.fullmatch(name):
        raise ConnectorError(place, f"expected {scheme}://{host}/NAME, found {place!r}")
    headers = _make_headers(email, token)
    if not headers and (scheme == "confluence" or not name):
        raise ConnectorError(
            place,
            f"{place} needs credentials: set {prefix}_EMAIL and {prefix}_API_TOKEN"
            + (", or specify a language, such as /en-us" if scheme == "zendesk" else ""),
        )
    asked = (scheme == "confluence" and settings.confluence_api_url) or url
    service = Service(host, asked, headers, f"{prefix}_EMAIL and {prefix}_API_TOKEN")
    everybody = settings.source_everybody_groups
    async with open_client(service, f"{AGENT}/{version('refdesk')}") as client:
        if scheme == "confluence":
            yield Confluence(client, name, everybody)
        else:
            yield Zendesk(client, name, everybody, is_anonymous=not headers)


def _survey_repository(
    spec: SourceSpec,
    target: Path,
    listed: Sequence[ListedDocument],
    read_title: ReadTitle,
    language_of: LanguageOf,
) -> Survey:
    tree = target / (spec.repository.name.removesuffix(".git") or "repository")
    tree.mkdir()
    copied = copy_revision(spec.repository, spec.revision, spec.folder, tree)
    return survey_copy(
        spec.root,
        tree,
        spec.folder,
        copied,
        read_title,
        language_of,
        web_address=spec.web_address,
        places=find_places(spec.repository),
    )


def _survey_path(
    spec: SourceSpec,
    listed: Sequence[ListedDocument],
    read_title: ReadTitle,
    language_of: LanguageOf,
) -> Survey:
    return survey_part(Path(spec.place), listed, read_title, language_of, spec.web_address)


async def _fetch(
    settings: Settings, spec: SourceSpec, reader: ReaderProcess, report: Report
) -> FetchedSource:
    if is_service(spec.place):
        folder = locate_copy(*settings.data_place, STORES, spec.place)
        async with open_connector(settings, spec.place) as connector:
            outcome = await copy_service(connector, spec.place, folder)
        return FetchedSource(spec=spec, copied=outcome)
    if spec.is_store:
        folder = locate_copy(*settings.data_place, STORES, spec.place)
        copied = await asyncio.to_thread(copy_store, spec.place, folder)
        return FetchedSource(spec=spec, copied=copied)
    if not spec.is_website:
        return FetchedSource(spec=spec)
    _, crawled = await crawl(
        spec.place,
        locate_copy(*settings.data_place, WEBSITES, spec.place),
        limits_of_crawl(settings.crawl_delay_seconds, spec),
        user_agent=f"{AGENT}/{version('refdesk')}",
        read_links=reader.links,
        progress=partial(report.advance_crawl, spec.place),
        is_public=spec.is_public,
    )
    return FetchedSource(spec=spec, outcome=crawled)


def _make_headers(email: str, token: SecretStr | None) -> dict[str, str]:
    """Return the credentials for a service as headers, or none if there are no credentials."""
    if token is None:
        return {}
    pair = f"{email}:{token.get_secret_value()}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
