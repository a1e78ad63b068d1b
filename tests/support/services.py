"""Plays Confluence Cloud and the help center of Zendesk on a local socket.

A request that the published description of the interface does not allow is answered with 400, and
listed in `refused`. `CONFLUENCE` and `ZENDESK` have what those descriptions say of what is used
here: Confluence Cloud REST API v2 (OpenAPI, 2.0.0) and v1, and the reference of the Help Center
API.
"""

import base64
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

EMAIL, TOKEN = "reader@acme.example", "correct-horse"
CURSOR = "after "

Check = Callable[[str], bool]


def at_most(most: int, least: int = 0) -> Check:
    """Return what checks a whole number within bounds."""
    return lambda value: value.isdigit() and least <= int(value) <= most


def one_of(*values: str) -> Check:
    """Return what checks a list of known values, separated by commas."""
    return lambda value: set(value.split(",")) <= set(values)


def any_text(value: str) -> bool:
    """Check a text that the interface made itself, or that it compares."""
    return bool(value)


def make_cursor(begin: int) -> str:
    """Return the cursor of the page that begins with an entry."""
    return base64.urlsafe_b64encode(f"{CURSOR}{begin}".encode()).decode()


def read_cursor(cursor: str) -> int:
    """Return where a page begins; raise `ValueError` for a cursor that nobody made."""
    text = base64.urlsafe_b64decode(cursor).decode()
    if not text.startswith(CURSOR):
        raise ValueError(cursor)
    return int(text.removeprefix(CURSOR))


def is_cursor(value: str) -> bool:
    """Check that the interface made a cursor: it may not be invented."""
    try:
        read_cursor(value)
    except ValueError:
        return False
    return True


_PAGED = {"cursor": is_cursor, "limit": at_most(250, 1)}
_STARTED = {"start": at_most(10**6)}
CONFLUENCE: Mapping[str, Mapping[str, Check]] = {
    r"/wiki/api/v2/spaces": {
        "keys": any_text,
        "status": one_of("current", "archived"),
        **_PAGED,
    },
    r"/wiki/api/v2/spaces/\d+/(pages|blogposts)": {
        "status": one_of("current", "archived", "deleted", "trashed"),
        **_PAGED,
    },
    r"/wiki/api/v2/spaces/\d+/permissions": _PAGED,
    r"/wiki/api/v2/(pages|blogposts)/\d+": {
        "body-format": one_of("storage", "atlas_doc_format", "view", "export_view"),
    },
    r"/wiki/api/v2/(pages|blogposts)/\d+/attachments": {
        "status": one_of("current", "archived", "trashed"),
        **_PAGED,
    },
    r"/wiki/api/v2/(folders|whiteboards|databases|embeds)/\d+": {},
    r"/wiki/rest/api/content/\d+/restriction/byOperation/(read|update)": {
        "expand": one_of("restrictions.user", "restrictions.group", "content"),
        "limit": at_most(100),
        **_STARTED,
    },
    r"/wiki/rest/api/group/by-id": {"id": any_text},
    r"/wiki/rest/api/group/[^/]+/membersByGroupId": {"limit": at_most(200), **_STARTED},
    r"/wiki/rest/api/content/\d+/child/attachment/att\d+/download": {"version": at_most(10**6)},
}
"""Paths, each with its parameters; the description states the greatest limits."""
_LIST = {"page[size]": at_most(100, 1), "page[after]": is_cursor}
ZENDESK: Mapping[str, Mapping[str, Check]] = {
    r"/api/v2/help_center(/[a-z-]+)?/(articles|sections|categories)": _LIST,
    r"/api/v2/help_center/articles/\d+/attachments": _LIST,
    r"/hc/article_attachments/\d+/[^/]+": {},
    r"/api/v2/help_center/user_segments": _LIST,
}


@dataclass
class PlayedService:
    """A service; `answers` are by path below `base`, a list is sent in pages of `page_size`.

    `faults` are by path: a status, headers and a body, sent instead of the answer, `times` often.
    `in_a_window` requests are allowed in each window of `window_seconds`. `most_members` is the
    limit of the system for a page of the members of a group, whatever is requested.
    """

    described: Mapping[str, Mapping[str, Check]]
    credentials: str
    port: int = 0
    base: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    faults: dict[str, tuple[int, dict[str, str], bytes, int]] = field(default_factory=dict)
    page_size: int = 2
    most_members: int = 200
    in_a_window: int = 10**9
    window_seconds: float = 60.0
    clock: Callable[[], float] = time.monotonic
    endless: bool = False
    is_open: bool = False
    requests: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    _window: tuple[float, int] = (0.0, 0)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def fail(
        self,
        path: str,
        status: int,
        headers: Mapping[str, str] | None = None,
        *,
        body: bytes = b"{}",
        times: int = 99,
    ) -> None:
        """Answer a path with a fault, some times."""
        self.faults[path] = (status, {} if headers is None else dict(headers), body, times)

    def limit_rate(self) -> dict[str, str]:
        """Count a request; return the headers of its refusal, which are empty if it is allowed."""
        with self._lock:
            now = self.clock()
            begin, count = self._window
            if now >= begin + self.window_seconds:
                begin, count = now, 0
            self._window = (begin, count + 1)
            if count < self.in_a_window:
                return {}
            wait = math.ceil(begin + self.window_seconds - now)
            return {"Retry-After": str(wait), "X-Rate-Limit": str(self.in_a_window)}

    def take_requests(self) -> list[str]:
        """Return the paths that were asked for since the last time."""
        taken, self.requests = self.requests, []
        return taken


def serve_confluence() -> AbstractContextManager[PlayedService]:
    """Serve Confluence."""
    return _serve(PlayedService(CONFLUENCE, f"{EMAIL}:{TOKEN}"))


@contextmanager
def _serve(service: PlayedService) -> Iterator[PlayedService]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(service, self)

        def log_message(self, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert service.refused == []


def _answer(service: PlayedService, request: BaseHTTPRequestHandler) -> None:
    parts = urlsplit(request.path)
    if not parts.path.startswith(service.base):
        _send(request, 404, b"{}", {})
        return
    parts = parts._replace(path=parts.path.removeprefix(service.base))
    service.requests.append(parts.path)
    service.authorizations.append(request.headers.get("Authorization", ""))
    query = {name: ",".join(values) for name, values in parse_qs(parts.query).items()}
    fault = service.faults.get(parts.path)
    if fault is not None and fault[3] > 0:
        status, headers, body, times = fault
        service.faults[parts.path] = (status, headers, body, times - 1)
        _send(request, status, body, headers)
        return
    wanted = f"Basic {base64.b64encode(service.credentials.encode()).decode()}"
    if not service.is_open and request.headers.get("Authorization") != wanted:
        _send(request, 401, b"{}", {})
        return
    limited = service.limit_rate()
    if limited:
        _send(request, 429, b"Number of allowed API requests per minute exceeded", limited)
        return
    if not _is_described(service, parts.path, query):
        service.refused.append(request.path)
        _send(request, 400, b"{}", {})
        return
    result = service.answers.get(parts.path)
    if result is None:
        _send(request, 404, b"{}", {})
        return
    if isinstance(result, bytes):
        _send(request, 200, result, {"Content-Type": "application/octet-stream"})
        return
    shown = _page(service, parts.path, query, result) if isinstance(result, list) else result
    shown = shown(query) if callable(shown) else shown
    _send(request, 200, json.dumps(shown).encode(), {"Content-Type": "application/json"})


def _is_described(service: PlayedService, path: str, query: Mapping[str, str]) -> bool:
    return any(
        re.fullmatch(pattern, path)
        and all(name in known and known[name](value) for name, value in query.items())
        for pattern, known in service.described.items()
    )


def _page(
    service: PlayedService, path: str, query: Mapping[str, str], found: list[Any]
) -> dict[str, Any]:
    if service.described is ZENDESK:
        name = "article_attachments" if path.endswith("/attachments") else path.rpartition("/")[2]
        if "page[size]" not in query:
            # Pages by number, which later end with 400: no cursor leads on.
            return {name: found[: service.page_size], "next_page": f"{path}?page=2"}
        begin = read_cursor(query.get("page[after]", make_cursor(0)))
        end = begin + min(service.page_size, int(query["page[size]"]))
        has_more = service.endless or end < len(found)
        after = make_cursor(0 if service.endless else end)
        meta = {"has_more": has_more, "after_cursor": after}
        return {name: found[begin:end], "meta": meta}
    begin = read_cursor(query.get("cursor", make_cursor(0)))
    end = begin + min(service.page_size, int(query.get("limit", "25")))
    links = {}
    if service.endless or end < len(found):
        following = {**query, "cursor": make_cursor(0 if service.endless else end)}
        # The client may use nothing of this address but the cursor.
        links = {"next": f"//elsewhere.example{path}?{urlencode(following)}"}
    return {"results": found[begin:end], "_links": links}


def _send(
    request: BaseHTTPRequestHandler, status: int, body: bytes, headers: Mapping[str, str]
) -> None:
    request.send_response(status)
    length = headers.get("Content-Length", str(len(body)))
    for name, value in {**headers, "Content-Length": length}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)
    request.close_connection = True


def serve_zendesk() -> AbstractContextManager[PlayedService]:
    """Serve a help center."""
    return _serve(PlayedService(ZENDESK, f"{EMAIL}/token:{TOKEN}"))


class Wiki:
    """Writes spaces, pages, folders, groups and restrictions into a played Confluence."""

    def __init__(self, service: PlayedService) -> None:
        self.service = service
        service.answers["/wiki/api/v2/spaces"] = lambda query: {
            "results": [
                space for space in self._spaces if query.get("keys", space["key"]) == space["key"]
            ]
        }
        self._spaces: list[dict[str, Any]] = []

    def add_space(self, identity: str, key: str, name: str, *groups: str) -> None:
        """Add a space that groups may read."""
        space = {"id": identity, "key": key, "name": name, "type": "global", "status": "current"}
        self._spaces.append(space)
        for kind in ("pages", "blogposts"):
            self.service.answers[f"/wiki/api/v2/spaces/{identity}/{kind}"] = []
        self.allow(identity, *groups)

    def allow(self, space: str, *groups: str) -> None:
        """Let groups read a space, and one person write there."""
        permissions = [
            {
                "id": str(number),
                "principal": {"type": "group", "id": f"{group}-id"},
                "operation": {"key": key, "targetType": target},
            }
            for number, (group, key, target) in enumerate(
                (group, *operation)
                for group in groups
                for operation in (("read", "space"), ("create", "page"))
            )
        ]
        person = {"type": "user", "id": "5b10"}
        permissions.append(
            {"id": "99", "principal": person, "operation": {"key": "read", "targetType": "space"}}
        )
        self.service.answers[f"/wiki/api/v2/spaces/{space}/permissions"] = permissions

    def add_group(self, name: str, *people: str) -> None:
        """Add a group with its members."""
        members = [{"type": "known", "accountId": person} for person in people]
        path = f"/wiki/rest/api/group/{name}-id/membersByGroupId"
        self.service.answers[path] = lambda query: self._page(path, members, query)
        self._groups = {**getattr(self, "_groups", {}), f"{name}-id": name}
        self.service.answers["/wiki/rest/api/group/by-id"] = lambda query: {
            "id": query["id"],
            "name": self._groups[query["id"]],
            "type": "group",
        }

    def _page(self, path: str, entries: list[Any], query: Mapping[str, str]) -> dict[str, Any]:
        begin = int(query.get("start", "0"))
        limit = min(int(query.get("limit", "200")), self.service.most_members)
        shown = entries[begin : begin + limit]
        links = {"next": f"{path}?{urlencode({'start': begin + limit, 'limit': limit})}"}
        return {
            "results": shown,
            "start": begin,
            "limit": limit,
            "size": len(shown),
            "_links": links if begin + limit < len(entries) else {},
        }

    def add_page(
        self,
        identity: str,
        title: str,
        body: str,
        *,
        space: str = "1",
        above: str | None = None,
        kind: str = "page",
        version: int = 1,
    ) -> None:
        """Add a page, or its next version."""
        page = {
            "id": identity,
            "title": title,
            "status": "current",
            "spaceId": space,
            "parentId": above,
            "parentType": None if above is None else kind,
            "version": {"number": version},
            "_links": {"webui": "//elsewhere.example/x"},
        }
        path = f"/wiki/api/v2/spaces/{space}/pages"
        pages = [answer for answer in self.service.answers[path] if answer["id"] != identity]
        self.service.answers[path] = [*pages, page]
        text = {"storage": {"value": body, "representation": "storage"}}
        self.service.answers[f"/wiki/api/v2/pages/{identity}"] = {**page, "body": text}
        self.service.answers.setdefault(f"/wiki/api/v2/pages/{identity}/attachments", [])
        self.restrict(identity)

    def add_post(self, identity: str, title: str, body: str, day: str) -> None:
        """Add a blog post of a day to the first space."""
        post = {
            "id": identity,
            "title": title,
            "status": "current",
            "spaceId": "1",
            "createdAt": f"{day}T10:00:00.000Z",
            "version": {"number": 1},
        }
        self.service.answers["/wiki/api/v2/spaces/1/blogposts"] = [post]
        text = {"storage": {"value": body, "representation": "storage"}}
        self.service.answers[f"/wiki/api/v2/blogposts/{identity}"] = {**post, "body": text}
        self.service.answers[f"/wiki/api/v2/blogposts/{identity}/attachments"] = []
        self.restrict(identity)

    def remove_page(self, identity: str, space: str = "1") -> None:
        """Delete a page."""
        path = f"/wiki/api/v2/spaces/{space}/pages"
        pages = self.service.answers[path]
        self.service.answers[path] = [page for page in pages if page["id"] != identity]
        del self.service.answers[f"/wiki/api/v2/pages/{identity}"]

    def restrict(self, identity: str, *groups: str, people: int = 0) -> None:
        """Let only groups and some people read a page, and those below it."""
        path = f"/wiki/rest/api/content/{identity}/restriction/byOperation/read"
        named = [{"type": "group", "name": group, "id": f"{group}-id"} for group in groups]
        users = [{"type": "known", "accountId": f"p{number}"} for number in range(people)]
        self.service.answers[path] = {
            "operation": "read",
            "restrictions": {"user": {"results": users}, "group": {"results": named}},
        }

    def attach(self, page: str, identity: str, name: str, data: bytes, version: int = 1) -> None:
        """Attach a file to a page."""
        path = f"/wiki/api/v2/pages/{page}/attachments"
        one = {"id": identity, "title": name, "fileSize": len(data), "version": {"number": version}}
        self.service.answers[path] = [*self.service.answers[path], one]
        place = f"/wiki/rest/api/content/{page}/child/attachment/{identity}/download"
        self.service.answers[place] = data
