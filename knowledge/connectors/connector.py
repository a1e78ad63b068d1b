"""Keeps a copy of the documents in a service such as Confluence, and surveys it. A connector is one
file with one protocol: it lists items with their versions, and reads the text and the readers of an
item. None of these services reports deletions or restrictions in a feed of changes, so all items
are listed each time, and only changed ones are fetched. The permissions of every item are read each
time. An item whose permissions cannot be read is left out.
"""

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode, urlsplit

import orjson
from pydantic import BaseModel, TypeAdapter, ValidationError

from knowledge.connectors.store_values import StoreOutcome
from knowledge.documents.decoding import MAX_BYTES
from knowledge.documents.folder import FolderListing, FoundFile, display_name
from knowledge.documents.location import Location
from knowledge.documents.survey import Survey
from knowledge.errors import ConnectorError
from outbound.addresses import normalise
from outbound.errors import OutboundError
from outbound.fetcher import MOST_REDIRECTS, REDIRECTS, Fetcher, FetchLimits, WebResponse
from outbound.resolution import GuardedResolver, Resolve, resolve_by_system

MOST_ITEMS = 100_000
MOST_PAGES = 10_000
MOST_BYTES = 8_000_000_000
LARGEST_ANSWER = 20_000_000
_STATE = "service.json"
_AT_ONCE = 4
_MOST_FAILURES_IN_A_ROW = 5
_FETCHED_PER_SAVE = 500
_LONGEST_WAIT = 120.0
_ATTEMPTS = 5
_REFUSED, _FORBIDDEN, _BUSY = 401, 403, frozenset({429, 503})
_GONE = frozenset({404, 410})
_FOUND = 200
_LONGEST_NAME = 150
Answer = TypeVar("Answer", bound=BaseModel)
_ENTRIES = TypeAdapter(list[Any])
Follow = Callable[[Mapping[str, Any]], Mapping[str, str]]
"""Returns the request for the next page of a list, given a page, or None after the last one."""


class ItemError(ConnectorError):
    """An item cannot be fetched, or its permissions cannot be read; the last copied version is
    kept.
    """


class ItemGoneError(ItemError):
    """An item that was listed no longer exists, or is not visible to this account."""


class ItemForbiddenError(ItemError):
    """The account is not allowed to make this request."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A document in a service; `id` is its id there, and `version` changes with its text.

    `address` is the URL at which people open it; `folders` contains the titles above it. `suffix`
    determines the reader.
    """

    id: str
    version: str
    title: str
    address: str
    folders: tuple[str, ...] = ()
    suffix: str = ".html"
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The text of an item, and the files attached to it, which have the same readers."""

    data: bytes
    attached: tuple[Listed, ...] = ()


@dataclass(frozen=True, slots=True)
class Readers:
    """The readers of an item: `groups`, or everybody; `reason` states why nobody may read it."""

    groups: tuple[str, ...] = ()
    is_everybody: bool = False
    reason: str = ""


class Connector(Protocol):
    """Accesses a service. Each method raises `ConnectorError` if the service is unavailable."""

    async def list_items(self) -> Sequence[Listed]:
        """Return all items that are visible to this account."""
        ...

    async def find_readers(self, item: Listed) -> Readers:
        """Return the readers of an item; raises `ItemError` if they cannot be determined."""
        ...

    async def fetch(self, item: Listed) -> Fetched:
        """Return the text of an item; raises `ItemError`."""
        ...


@dataclass(frozen=True, slots=True)
class Service:
    """A service: `host` is the host of its pages, and `url` is the URL of its API.

    `headers` contains the credentials, and `secret_names` the names of their settings, for
    messages.
    """

    host: str
    url: str
    headers: Mapping[str, str] = field(repr=False, default_factory=dict)
    secret_names: str = ""


class ServiceClient:
    """Calls the API of a service. Credentials are sent only to its own host."""

    def __init__(self, service: Service, own: Fetcher, other: Fetcher) -> None:
        self.address = f"https://{service.host}"
        self._base = service.url.rstrip("/")
        self._own = own
        self._other = other
        self._secret_names = service.secret_names

    async def get(self, kind: type[Answer], path: str, **query: str | int) -> Answer:
        """Return a JSON response; raises `ItemError`, or `ConnectorError` if all requests would
        fail.
        """
        url = f"{self._base}{path}{'?' if query else ''}{urlencode(query)}"
        answer = await self._ask(self._own, url, LARGEST_ANSWER)
        self._refuse_failure(answer)
        try:
            return kind.model_validate(orjson.loads(answer.body))
        except (ValueError, RecursionError) as error:
            raise _describe_answer(url, path, error) from error

    async def list_all(
        self, kind: type[Answer], path: str, name: str, follow: Follow, **query: str | int
    ) -> list[Answer]:
        """Return all entries `name` of a paginated list; raises the same errors as `get`."""
        answers: list[Answer] = []
        seen: set[tuple[tuple[str, str], ...]] = set()
        following: Mapping[str, str] = {}
        while True:
            page = await self.get(_AnyAnswer, path, **{**query, **following})
            entries = (page.model_extra or {}).get(name)
            try:
                answers += [
                    kind.model_validate(entry) for entry in _ENTRIES.validate_python(entries)
                ]
            except ValidationError as error:
                raise _describe_answer(f"{self._base}{path}", path, error) from error
            following = follow(page.model_extra or {})
            mark = tuple(sorted(following.items()))
            if not following:
                return answers
            if mark in seen or len(seen) >= MOST_PAGES or len(answers) > MOST_ITEMS:
                raise ConnectorError(
                    self.address,
                    f"the list {path} of {self.address} has no end: it has more than {MOST_ITEMS} "
                    "entries, or repeats itself",
                )
            seen.add(mark)

    async def download(self, path: str) -> bytes:
        """Return a file; its server may redirect the request to another host."""
        url = f"{self._base}{path}"
        for _ in range(MOST_REDIRECTS + 1):
            is_own = _origin(url) == _origin(self._base)
            answer = await self._ask(self._own if is_own else self._other, url, MAX_BYTES)
            if answer.status not in REDIRECTS:
                self._refuse_failure(answer)
                return answer.body
            target = normalise(answer.header("location"), url)
            if target is None or (urlsplit(target).scheme != "https" and not is_own):
                raise ItemError(url, "it redirects to an address without https")
            url = target
        raise ItemError(url, f"it redirects more than {MOST_REDIRECTS} times")

    async def _ask(self, fetcher: Fetcher, url: str, most_bytes: int) -> WebResponse:
        try:
            return await fetcher.get(url, most_bytes=most_bytes)
        except OutboundError as error:
            raise ItemError(self.address, str(error)) from error

    def _refuse_failure(self, answer: WebResponse) -> None:
        status, place = answer.status, self.address
        if status == _FOUND:
            return
        if status == _REFUSED:
            raise ConnectorError(
                place,
                f"{place} rejects the credentials (401), which may have expired: create "
                f"new ones and set {self._secret_names}; earlier documents are kept",
            )
        if status in _BUSY:
            raise ConnectorError(
                place,
                f"{place} is busy or limits its requests ({status}): it will be retried later",
            )
        if status in _GONE:
            raise ItemGoneError(
                place, f"the page does not exist or is not visible to this account ({status})"
            )
        if status == _FORBIDDEN:
            raise ItemForbiddenError(
                place,
                "the account is not allowed to make this request (403): check its permissions",
            )
        if status in REDIRECTS:
            raise ConnectorError(
                place,
                f"{place} redirects to another address, and credentials are not sent to redirect "
                "targets: check the configured address",
            )
        raise ItemError(place, f"the server responded with status {status}")


class _AnyAnswer(BaseModel, extra="allow"):
    """A response of which all fields are kept."""


class _Kept(BaseModel, frozen=True, extra="forbid"):
    """An item in the copy; `parent` is the item to which it is attached, and whose readers it
    has.
    """

    version: str
    title: str
    address: str
    folders: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    suffix: str
    language: str | None = None
    parent: str = ""
    is_fetched: bool = True


class _State(BaseModel, extra="forbid"):
    """The items in the copy, by id."""

    items: dict[str, _Kept] = {}


@dataclass
class _Copy:
    """Copies items, a few of them in parallel."""

    connector: Connector
    place: str
    folder: Path
    fetched: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    failed_in_a_row: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.state = _read_state(self.folder)
        self._attached: dict[str, set[str]] = {}
        for identity, kept in self.state.items.items():
            self._attached.setdefault(kept.parent, set()).add(identity)

    async def take_all(self, listed: Sequence[Listed]) -> None:
        waiting = iter(listed)

        async def work() -> None:
            for item in waiting:
                await self._take(item)

        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(_AT_ONCE):
                    tasks.create_task(work())
        except* ConnectorError as group:
            raise group.exceptions[0] from None

    async def _take(self, item: Listed) -> None:
        try:
            readers = await self.connector.find_readers(item)
            if not readers.groups and not readers.is_everybody:
                self._drop(item.id)
                self.skipped.append((item.address, readers.reason))
                return
            await self._update(item, readers.groups)
            self.failed_in_a_row = 0
        except ItemGoneError:
            # Deleted since it was listed, or hidden from the account.
            self._drop(item.id)
        except ItemError as error:
            self._fail(item.address, error)

    async def _update(self, item: Listed, groups: tuple[str, ...]) -> None:
        """Fetch an item if its version has changed; its permissions are always updated."""
        known = self.state.items.get(item.id)
        if known is not None:
            self._restrict(item.id, groups)
        if known is not None and known.version == item.version and known.is_fetched:
            # Its title and its place may have changed without a new version.
            self.state.items[item.id] = _keep(item, groups)
        else:
            fetched = await self.connector.fetch(item)
            await asyncio.to_thread(_replace, self.folder / _name_file(item.id), fetched.data)
            self.state.items[item.id] = _keep(item, groups)
            self.fetched += 1
            self._attach(item, fetched.attached, groups)
            if self.fetched % _FETCHED_PER_SAVE == 0:
                await asyncio.to_thread(self.save)
        for identity, kept in self._list_attached(item.id):
            if not kept.is_fetched:
                await self._fetch_attached(identity, kept)

    def _attach(self, item: Listed, attached: Sequence[Listed], groups: tuple[str, ...]) -> None:
        named = {listed.id for listed in attached}
        for identity, _ in self._list_attached(item.id):
            if identity not in named:
                self._drop(identity)
        for listed in attached:
            known = self.state.items.get(listed.id)
            is_same = known is not None and known.version == listed.version and known.is_fetched
            kept = _keep(listed, groups)
            self.state.items[listed.id] = kept.model_copy(
                update={"parent": item.id, "is_fetched": is_same}
            )
            self._attached.setdefault(item.id, set()).add(listed.id)

    async def _fetch_attached(self, identity: str, kept: _Kept) -> None:
        listed = Listed(identity, kept.version, kept.title, kept.address, suffix=kept.suffix)
        try:
            fetched = await self.connector.fetch(listed)
        except ItemGoneError:
            self._drop(identity)
            return
        except ItemError as error:
            self._fail(kept.address, error)
            return
        await asyncio.to_thread(_replace, self.folder / _name_file(identity), fetched.data)
        self.state.items[identity] = kept.model_copy(update={"is_fetched": True})
        self.fetched += 1

    def _fail(self, address: str, error: ItemError) -> None:
        self.failures.append((address, str(error)))
        self.failed_in_a_row += 1
        if self.failed_in_a_row >= _MOST_FAILURES_IN_A_ROW:
            raise ConnectorError(
                self.place,
                f"{self.place}: {self.failed_in_a_row} requests failed one after the other, the "
                f"last one because {error}; earlier documents are kept",
            ) from error

    def _restrict(self, identity: str, groups: tuple[str, ...]) -> None:
        for item_id, kept in [
            (identity, self.state.items[identity]),
            *self._list_attached(identity),
        ]:
            self.state.items[item_id] = kept.model_copy(update={"groups": groups})

    def _list_attached(self, parent: str) -> list[tuple[str, _Kept]]:
        attached = sorted(self._attached.get(parent, ()))
        return [
            (item_id, self.state.items[item_id])
            for item_id in attached
            if item_id in self.state.items
        ]

    def _drop(self, identity: str) -> None:
        for item_id in (identity, *(attached for attached, _ in self._list_attached(identity))):
            if self.state.items.pop(item_id, None) is not None:
                (self.folder / _name_file(item_id)).unlink(missing_ok=True)

    def remove_gone(self, listed: Sequence[Listed]) -> None:
        """Remove items that no longer exist in the service."""
        present = {item.id for item in listed}
        for identity, kept in list(self.state.items.items()):
            if (kept.parent or identity) not in present:
                self._drop(identity)

    def save(self) -> None:
        _replace(self.folder / _STATE, self.state.model_dump_json().encode())


@asynccontextmanager
async def open_client(
    service: Service, user_agent: str, resolve: Resolve = resolve_by_system
) -> AsyncIterator[ServiceClient]:
    """Provide a client; raises `ConnectorError` if the host is unknown.

    Only a service with a private address may lead to private addresses, and only on its own host.
    """
    limits = FetchLimits(
        bytes_per_page=MAX_BYTES,
        bytes_in_all=MOST_BYTES,
        delay=0.0,
        longest_wait=_LONGEST_WAIT,
        attempts=_ATTEMPTS,
    )
    parts = urlsplit(service.url)
    resolver = GuardedResolver(resolve)
    try:
        default = 443 if parts.scheme == "https" else 80
        await resolver.start_at(parts.hostname or "", parts.port or default)
    except OutboundError as error:
        raise ConnectorError(service.host, f"{service.host} cannot be reached: {error}") from error
    sent = {"Accept": "application/json", **service.headers}
    async with (
        Fetcher(limits, resolver, user_agent, sent) as own,
        Fetcher(limits, resolver, user_agent, {"Accept": "*/*"}) as other,
    ):
        yield ServiceClient(service, own, other)


async def copy_service(connector: Connector, place: str, folder: Path) -> StoreOutcome:
    """Update the copy of a service; raises `ConnectorError` if it is unavailable.

    Everything that was copied until then is kept, and nothing is removed.
    """
    copy = _Copy(connector, place, folder)
    try:
        listed = await connector.list_items()
    except ItemError as error:
        reason = f"{place} cannot be read: {error}; the documents of the last sync are kept"
        raise ConnectorError(place, reason) from error
    if not listed and copy.state.items:
        raise ConnectorError(
            place,
            f"{place} contains nothing that the account can read, but had "
            f"{len(copy.state.items)} documents before: check the permissions of the account; to "
            f"remove them: refdesk documents remove {place}",
        )
    try:
        await copy.take_all(listed)
        copy.remove_gone(listed)
    finally:
        await asyncio.to_thread(copy.save)
    return StoreOutcome(
        fetched=copy.fetched, failures=tuple(copy.failures), skipped=tuple(copy.skipped)
    )


def survey_service(place: str, folder: Path, outcome: StoreOutcome, *_: Any) -> Survey:
    """Return the items in a copy, each identified by its URL, to which citations lead."""
    state = _read_state(folder)
    kept = {
        item_id: item
        for item_id, item in state.items.items()
        if (folder / _name_file(item_id)).exists()
    }
    files, places = [], {}
    for path, identity in _name_items(kept):
        item = kept[identity]
        files.append(FoundFile(path, folder / _name_file(identity)))
        places[path] = Location(
            name=item.address,
            folders=item.folders,
            file_title=item.title,
            is_index=False,
            language=item.language,
            groups=item.groups,
            url=item.address,
            is_foreign=True,
        )
    files.sort(key=lambda file: file.path)
    listing = FolderListing(
        files, skipped=list(outcome.skipped), unreachable=list(outcome.failures)
    )
    return Survey(place, listing, places)


def _describe_answer(url: str, path: str, error: Exception) -> ItemError:
    reason = " ".join(str(error).split())[:200]
    return ItemError(url, f"the response to {path} has an unexpected form: {reason}")


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _keep(item: Listed, groups: tuple[str, ...]) -> _Kept:
    return _Kept(
        version=item.version,
        title=item.title,
        address=item.address,
        folders=item.folders,
        groups=groups,
        suffix=item.suffix,
        language=item.language,
    )


def _name_file(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()


def _replace(path: Path, data: bytes) -> None:
    waiting = path.with_name(f"{path.name}.new")
    waiting.write_bytes(data)
    os.replace(waiting, path)


def _read_state(folder: Path) -> _State:
    try:
        return _State.model_validate_json((folder / _STATE).read_bytes())
    except (OSError, ValidationError):
        # Everything is fetched again: that costs time and loses nothing.
        return _State()


def _name_items(kept: Mapping[str, _Kept]) -> Iterator[tuple[PurePosixPath, str]]:
    """Yield a unique and readable path for each item."""
    counts: Counter[PurePosixPath] = Counter()
    for identity, item in sorted(kept.items()):
        names = [_clean_name(part) for part in (*item.folders, item.title)]
        bare = names[-1].removesuffix(item.suffix)
        path = PurePosixPath(*names[:-1], f"{bare}{item.suffix}")
        counts[path] += 1
        if counts[path] > 1:
            path = path.with_name(f"{bare} ({counts[path]}){item.suffix}")
        yield path, identity


def _clean_name(name: str) -> str:
    return (
        display_name(name.replace("/", "_").replace("\\", "_"))[:_LONGEST_NAME].strip(". ") or "_"
    )
