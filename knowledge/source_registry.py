"""Records, in the data folder, the ingested sources and the result of the last ingestion."""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from croniter import CroniterError, croniter
from pydantic import BaseModel, Field, JsonValue, ValidationError, field_serializer, field_validator

from knowledge.connectors.store_values import SCHEMES, SERVICES, StoreOutcome, is_store
from knowledge.crawling.crawl_values import (
    CrawlOutcome,
    check_start,
)
from knowledge.documents.page import LeftOut
from knowledge.errors import SourceError
from knowledge.ingestion_report import IngestionResult
from outbound.errors import AddressRefusedError, FetchError
from outbound.resolution import GuardedResolver, Resolve, resolve_by_system

WEBSITES, STORES = "websites", "stores"
"""The folders with the copies of websites and stores."""
_FILE = "sources.json"
_MOST_REASONS = 3
_LONGEST_PLACE = 200
_NOBODY = ("", "")
_CRON_FIELDS = 5
_MOST_YEARS = 5
"""A schedule without a date for this many years is rejected."""
WEB = ("http://", "https://")
GIT = "git:"


class SourceSpec(BaseModel, frozen=True, extra="forbid"):
    """A source: `place` is an absolute path, a URL, the URL of a store or a service such as
    `s3://bucket/folder` or `confluence://host/SPACE`, or `git:` followed by an absolute path.

    `revision` and `folder` belong to a repository; `web_address` is the template that turns paths
    into URLs, see `knowledge.documents.exports.make_address`. A limit of None stands for its
    default value. `is_public` is true for a website that is crawled only at public addresses.
    """

    place: str
    revision: str = ""
    folder: str = ""
    web_address: str = ""
    pages: int | None = None
    depth: int | None = None
    seconds: float | None = None
    is_public: bool = False

    @property
    def is_website(self) -> bool:
        """Whether the source is a website, which is crawled."""
        return self.place.startswith(WEB)

    @property
    def is_repository(self) -> bool:
        """Whether the source is a Git repository on this machine."""
        return self.place.startswith(GIT)

    @property
    def is_store(self) -> bool:
        """Whether the source is a file store, whose files are copied."""
        return is_store(self.place)

    @property
    def is_local(self) -> bool:
        """Whether the source is a path on this machine."""
        return not (self.is_website or self.is_store)

    @property
    def repository(self) -> Path:
        """The folder of the repository."""
        return Path(self.place.removeprefix(GIT))

    @property
    def root(self) -> str:
        """The name of the source in the index; each folder of a repository is a separate source."""
        return f"{self.place}/{self.folder}".rstrip("/") if self.is_repository else self.place


class RegisteredSource(BaseModel, frozen=True, extra="forbid"):
    """A source; `read_at` is the time of the last ingestion in Unix seconds, or 0 before the first
    one.

    `failed` counts its unreadable documents, and `reasons` contains some of the reasons. `left_out`
    lists content of its files that is not in the index, accumulated over the ingestions since all
    documents were read. `schedule` is a cron expression in UTC; if it is empty, the source is
    ingested on request and by `--refresh`. `fault` is the reason why the source is not ingested on
    its schedule. `entry` is an unreadable entry of the list, unchanged; such a source can only be
    listed and removed.
    """

    tenant: str
    assistant: str
    spec: SourceSpec
    read_at: float
    failed: int = 0
    reasons: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    schedule: str = ""
    fault: str = Field("", exclude=True)
    entry: JsonValue = Field(None, exclude=True)

    @property
    def id(self) -> str:
        """The id of the source in URLs."""
        return hashlib.sha256(self.spec.root.encode()).hexdigest()[:16]

    def next_at(self, every_seconds: float | None = None) -> float | None:
        """Return when the source is to be ingested again, in Unix seconds, or None if only on
        request.
        """
        if self.fault:
            return None
        if self.schedule:
            return find_next_date(self.schedule, self.read_at or time.time())
        return None if every_seconds is None else self.read_at + every_seconds


class SourceListFile(BaseModel, extra="forbid"):
    """The sources in a data folder; `id` identifies the list for other processes that share it.

    An entry that cannot be read is a source with a `fault`, and is written back unchanged.
    """

    id: str = Field(default_factory=lambda: uuid4().hex)
    sources: list[RegisteredSource] = []

    @field_validator("sources", mode="before")
    @classmethod
    def _read_entries(cls, entries: object) -> object:
        return [_read_entry(entry) for entry in entries] if isinstance(entries, list) else entries

    @field_serializer("sources")
    def _write_entries(self, sources: list[RegisteredSource]) -> list[JsonValue]:
        return [
            source.model_dump(mode="json") if source.entry is None else source.entry
            for source in sources
        ]


class FetchedSource(BaseModel, frozen=True, extra="forbid"):
    """A source that is ready to be ingested; `outcome` is the result of its crawl, if it is a
    website.

    `copied` is the result of copying it, if it is a store.
    """

    spec: SourceSpec
    outcome: CrawlOutcome | None = None
    copied: StoreOutcome | None = None


def locate_copy(data: Path, tenant: str, assistant: str, kind: str, place: str) -> Path:
    """Return the folder that contains the copy of a source; `kind` is the type of source."""
    named = "\n".join((tenant, assistant, place))
    return data.resolve() / kind / hashlib.sha256(named.encode()).hexdigest()[:16]


def parse_source(text: str, **options: str | float | None) -> SourceSpec:
    """Return the source with a name given by a person; raises `SourceError` if the name is
    invalid.
    """
    if text.lower().startswith(WEB):
        try:
            return SourceSpec.model_validate({"place": check_start(text), **options})
        except AddressRefusedError as error:
            raise SourceError(str(error)) from error
    if is_store(text):
        place = _normalise_store(text)
        spec = SourceSpec.model_validate({"place": place, **options})
        _check_options(spec)
        return spec
    if "://" in text:
        known = ", ".join(f"{scheme}://" for scheme in ("http", "https", *SCHEMES, *SERVICES))
        raise SourceError(f"expected a path, git:PATH or an address of {known}; found {text!r}")
    is_repository = text.startswith(GIT)
    path = os.path.abspath(text.removeprefix(GIT))
    spec = SourceSpec.model_validate({"place": f"{GIT * is_repository}{path}", **options})
    _check_options(spec)
    return spec


def admit_over_http(spec: SourceSpec, prefixes: Sequence[str]) -> SourceSpec:
    """Return a source that is added over HTTP; raises `SourceError` if it is not allowed.

    `prefixes` contains the allowed prefixes. A website whose host is not in any of them must have a
    public address, because the key does not grant access to this network.
    """
    folder = os.path.realpath(spec.repository) if spec.is_local else ""
    place = f"{GIT * spec.is_repository}{folder}" if folder else spec.place
    is_inside = ".." not in unquote(place).split("/")
    named = [prefix for prefix in prefixes if is_inside and _begins_with(place, prefix)]
    if not named:
        shown = ", ".join(prefixes) or "nothing"
        raise SourceError(
            f"{spec.root} cannot be added over HTTP. Allowed prefixes: {shown}. An operator can "
            "add it with refdesk sources add, or extend SOURCES_OVER_HTTP"
        )
    is_public = spec.is_website and all(place in WEB for place in named)
    return spec.model_copy(update={"is_public": is_public})


async def check_website(spec: SourceSpec, resolve: Resolve = resolve_by_system) -> None:
    """Raise `SourceError` for a website at an address that cannot be crawled.

    A host that cannot be resolved now may be resolved later, in which case its crawl reports the
    problem.
    """
    if not spec.is_website:
        return
    parts, resolver = urlsplit(spec.place), GuardedResolver(resolve)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        if not spec.is_public:
            await resolver.start_at(host, port)
        await resolver.choose(host, port)
    except AddressRefusedError:
        whose = "of this network" if spec.is_public else "where machines keep credentials"
        advice = (
            "add the host to SOURCES_OVER_HTTP, or add the source with refdesk sources add"
            if spec.is_public
            else "sources at such addresses are not allowed"
        )
        raise SourceError(
            f"{host} has an address {whose}, not a public address; {advice}"
        ) from None
    except FetchError:
        return


def check_schedule(text: str) -> str:
    """Return the cron expression; raises `SourceError` if it cannot be used.

    Its five fields allow at most one date per minute, and it must have a next date.
    """
    if not text:
        return text
    fields = text.lower().split()
    is_known = len(fields) == _CRON_FIELDS or text.startswith("@")
    # The library would choose another random date (r, h) each time.
    is_random = any(field.startswith(("r", "h")) for field in fields)
    if not is_known or is_random or not croniter.is_valid(text):
        raise SourceError(
            "expected a schedule in the format of cron with five fields, such as '0 6 * * *' for "
            f"every day at 6:00 UTC, found {text!r}"
        )
    if find_next_date(text, time.time()) is None:
        raise SourceError(f"the schedule {text!r} has no date within the next {_MOST_YEARS} years")
    return text


def find_next_date(schedule: str, since: float) -> float | None:
    """Return the next date of a schedule in Unix seconds, or None if there is none or it is
    invalid.
    """
    try:
        dates = croniter(schedule, since, max_years_between_matches=_MOST_YEARS)
        return float(dates.get_next(float))
    except (CroniterError, ValueError, OverflowError):
        return None


def spec_of(source: "Path | SourceSpec") -> SourceSpec:
    """Return the source for a path."""
    return source if isinstance(source, SourceSpec) else SourceSpec(place=str(source.absolute()))


def _read_entry(entry: object) -> RegisteredSource:
    """Return the source in an entry of the list, with a fault if it cannot be used."""
    if isinstance(entry, RegisteredSource):
        return entry
    try:
        source = RegisteredSource.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        named = ".".join(map(str, first["loc"])) or "entry"
        fault = f"the entry in the list of sources cannot be read: {named}: {first['msg']}"
        return _salvage(entry).model_copy(update={"fault": fault, "entry": entry})
    try:
        check_schedule(source.schedule)
    except SourceError as error:
        return source.model_copy(update={"fault": f"the schedule is invalid: {error}"})
    return source


def _salvage(entry: object) -> RegisteredSource:
    """Return the owner and location stated in an unreadable entry, so that it can be listed and
    removed.
    """
    fields = entry if isinstance(entry, dict) else {}
    spec = fields.get("spec")
    place = spec.get("place") if isinstance(spec, dict) else None
    return RegisteredSource(
        tenant=str(fields.get("tenant") or ""),
        assistant=str(fields.get("assistant") or ""),
        spec=SourceSpec(place=str(place or json.dumps(entry, default=str)[:_LONGEST_PLACE])),
        read_at=0,
    )


class SourceRegistry:
    """The list of sources in a data folder; changes by several processes are serialized."""

    def __init__(self, folder: Path, tenant: str, assistant: str) -> None:
        self._folder = folder
        self._owner = (tenant, assistant)

    def read(self) -> SourceListFile:
        """Return the list; raises `SourceError` if it is damaged."""
        path = self._folder / _FILE
        try:
            return SourceListFile.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return SourceListFile()
        except (OSError, ValidationError) as error:
            raise SourceError(
                f"the list of sources in {path} is damaged; remove the file and ingest the "
                "sources again"
            ) from error

    def record(self, specs: Sequence[SourceSpec], result: IngestionResult) -> None:
        """Record that sources were just ingested, with their combined result."""
        reasons = tuple(f"{place}: {reason}" for place, reason in result.failed[:_MOST_REASONS])
        is_whole = not result.unchanged
        self._record(specs, len(result.failed), reasons, result.sum_left_out(), is_whole=is_whole)

    def record_error(self, spec: SourceSpec, error: Exception) -> None:
        """Record that a source could not be ingested at all."""
        self._record([spec], 1, (str(error),))

    def add(self, spec: SourceSpec, schedule: str) -> None:
        """Add a source that will be ingested later, or change the schedule of a known one.

        A known source keeps its crawl limits.
        """
        check_schedule(schedule)
        with self._changing() as listed:
            known = next(
                (source for source in listed.sources if self._is_own(source, spec.root)), None
            )
            tenant, assistant = self._owner
            added = RegisteredSource(tenant=tenant, assistant=assistant, spec=spec, read_at=0)
            if known is not None:
                listed.sources.remove(known)
                limits = known.spec.model_dump(include={"pages", "depth", "seconds"})
                added = known.model_copy(update={"spec": spec.model_copy(update=limits)})
            new = {"schedule": schedule, "fault": "", "entry": None}
            listed.sources.append(added.model_copy(update=new))

    def list_own(self, *, with_ownerless: bool = False) -> list[RegisteredSource]:
        """Return the sources of this assistant; raises `SourceError` if the list is damaged.

        If `with_ownerless` is true, unreadable entries that state no assistant are included.
        """
        owners = (self._owner, _NOBODY) if with_ownerless else (self._owner,)
        return [
            source for source in self.read().sources if (source.tenant, source.assistant) in owners
        ]

    def forget(self, root: str, *, with_ownerless: bool = False) -> bool:
        """Remove a source from the list, together with its copy; return whether it was in the
        list.
        """
        for kind in (WEBSITES, STORES):
            copy = locate_copy(self._folder, *self._owner, kind, root)
            shutil.rmtree(copy, ignore_errors=True)
        if not (self._folder / _FILE).exists():
            return False
        with self._changing() as listed:
            known = self.list_own(with_ownerless=with_ownerless)
            removed = [source for source in known if source.spec.root == root]
            listed.sources = [source for source in listed.sources if source not in removed]
        return bool(removed)

    def list_specs(self) -> list[SourceSpec]:
        """Return the readable sources of this assistant; raises `SourceError` if the list is
        damaged.
        """
        return [source.spec for source in self.list_own() if source.entry is None]

    def _record(
        self,
        specs: Sequence[SourceSpec],
        failed: int,
        reasons: tuple[str, ...],
        left_out: Sequence[LeftOut] = (),
        *,
        is_whole: bool = False,
    ) -> None:
        tenant, assistant = self._owner
        with self._changing() as listed:
            for spec in specs:
                known = [source for source in listed.sources if self._is_own(source, spec.root)]
                before = () if is_whole else [part for source in known for part in source.left_out]
                recorded = RegisteredSource(
                    tenant=tenant,
                    assistant=assistant,
                    spec=spec,
                    read_at=time.time(),
                    failed=failed,
                    reasons=reasons,
                    left_out=_merge(before, left_out),
                    schedule=known[0].schedule if known else "",
                )
                others = [source for source in listed.sources if source not in known]
                listed.sources = [*others, recorded]

    def _is_own(self, source: RegisteredSource, root: str) -> bool:
        return (source.tenant, source.assistant) == self._owner and source.spec.root == root

    @contextmanager
    def _changing(self) -> Iterator[SourceListFile]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._folder / f"{_FILE}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            listed = self.read()
            yield listed
            _replace(self._folder / _FILE, listed.model_dump_json(indent=1))


def _replace(path: Path, text: str) -> None:
    waiting = path.with_name(f"{path.name}.new")
    waiting.write_text(text, "utf-8")
    waiting.replace(path)


def _normalise_store(text: str) -> str:
    """Return the URL of a store or a service; raises `SourceError` if it contains a password."""
    scheme, _, rest = text.partition("://")
    host, _, path = rest.partition("/")
    user, at, _ = host.rpartition("@")
    if at and ":" in user:
        raise SourceError(
            "the address must not contain a password, because addresses are stored and shown; "
            "set the password in the environment, see docs/sources.md"
        )
    if scheme.lower() in SERVICES and (at or not host or "?" in path or "#" in path):
        raise SourceError(f"expected {scheme.lower()}://HOST/NAME, found {text!r}")
    host = host.lower() if scheme.lower() in SERVICES else host
    return f"{scheme.lower()}://{host}/{path}".rstrip("/")


def _check_options(spec: SourceSpec) -> None:
    if not spec.is_repository and (spec.revision or spec.folder):
        raise SourceError("--revision and --folder are for repositories: refdesk ingest git:PATH")
    folder = PurePosixPath(spec.folder)
    if folder.is_absolute() or ".." in folder.parts:
        raise SourceError(f"{spec.folder!r} is not a folder of the repository")
    if spec.web_address and not spec.web_address.startswith(WEB):
        raise SourceError(
            "expected a web address such as https://github.com/acme/docs/blob/{revision}/{path}, "
            f"found {spec.web_address!r}"
        )


def _begins_with(place: str, prefix: str) -> bool:
    """Return whether a URL is equal to a prefix or below it; a name that merely starts with it does
    not match.
    """
    if prefix.endswith("://"):
        return place.startswith(prefix)
    scheme, mark, path = prefix.partition(":") if prefix.startswith(GIT) else ("", "", prefix)
    if path.startswith("/"):
        path = os.path.realpath(path)
    whole = f"{scheme}{mark}{path}".rstrip("/")
    return bool(whole) and (place.rstrip("/") == whole or place.startswith(f"{whole}/"))


def _merge(before: Sequence[LeftOut], now: Sequence[LeftOut]) -> tuple[LeftOut, ...]:
    """Return the omitted content after an ingestion that did not read unchanged documents."""
    counts = {(left_out.what, left_out.reason): left_out for left_out in before}
    for left_out in now:
        known = counts.get((left_out.what, left_out.reason), left_out)
        counts[left_out.what, left_out.reason] = max(known, left_out, key=lambda part: part.count)
    return tuple(counts.values())
