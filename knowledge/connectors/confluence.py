"""Reads the pages and blog posts of Confluence Cloud, with their attachments, through its API.

| request                                            | purpose                                   |
|----------------------------------------------------|-------------------------------------------|
| /wiki/api/v2/spaces                                | the spaces, or the one of the source      |
| /wiki/api/v2/spaces/{id}/pages, .../blogposts      | the pages and posts, with their versions  |
| /wiki/api/v2/pages/{id}, .../attachments           | the text of a changed page, and its files |
| /wiki/api/v2/blogposts/{id}, .../attachments       | the same for a post                       |
| /wiki/api/v2/folders/{id} and similar              | ancestors of a page that are not pages    |
| /wiki/api/v2/spaces/{id}/permissions               | the groups that may read a space          |
| /wiki/rest/api/content/{id}/restriction/...        | the groups to which a page is restricted  |
| /wiki/rest/api/group/by-id, .../membersByGroupId   | names of groups, and their members        |

A page is visible to everybody who may read its space and is not excluded by a restriction on the
page or its ancestors. A document is assigned individual groups, so a group is included only if all
of its members may read the page.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from envelope.question import parse_groups
from knowledge.connectors.confluence_storage import write_html
from knowledge.connectors.connector import (
    Answer,
    Fetched,
    ItemError,
    ItemForbiddenError,
    Listed,
    Readers,
    ServiceClient,
)
from knowledge.crawling.crawler import FOREIGN_SUFFIXES
from knowledge.documents.decoding import MAX_BYTES
from knowledge.documents.errors import ReadingError
from knowledge.errors import ConnectorError

_PER_PAGE = 250
_MEMBERS_PER_PAGE = 200
_RESTRICTIONS_PER_PAGE = 100
_MOST_MEMBERS = 20_000
_DEEPEST = 100
_PLACES = {
    "folder": "folders",
    "whiteboard": "whiteboards",
    "database": "databases",
    "embed": "embeds",
}
_V2, _V1 = "/wiki/api/v2", "/wiki/rest/api"
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})T")
_Id = Field(pattern=r"^(att)?[0-9]{1,20}$")
_GroupId = Field(pattern=r"^[A-Za-z0-9_:.-]{1,100}$")


class _Answer(BaseModel):
    """The required fields of a response; all others are ignored."""

    model_config = ConfigDict(alias_generator=to_camel)


class _Space(_Answer):
    id: str = _Id
    key: str = Field(min_length=1, max_length=255)
    name: str = ""
    type: str = ""


class _Version(_Answer):
    number: int


class _Page(_Answer):
    """A page, or a blog post, which has no ancestors except its space."""

    id: str = _Id
    title: str = ""
    created_at: str = ""
    parent_id: str | None = Field(None, pattern=r"^[0-9]{1,20}$")
    parent_type: str | None = None
    version: _Version


class _Place(_Answer):
    title: str = ""
    parent_id: str | None = Field(None, pattern=r"^[0-9]{1,20}$")
    parent_type: str | None = None


class _Storage(_Answer):
    value: str


class _Body(_Answer):
    storage: _Storage


class _PageText(_Page):
    body: _Body


class _Attachment(_Answer):
    id: str = _Id
    title: str = ""
    file_size: int = 0
    version: _Version


class _Principal(_Answer):
    type: str
    id: str = _GroupId


class _Operation(_Answer):
    key: str
    target_type: str


class _Permission(_Answer):
    principal: _Principal
    operation: _Operation


class _Group(_Answer):
    id: str = _GroupId
    name: str


class _Groups(_Answer):
    results: list[_Group] = []


class _User(_Answer):
    account_id: str


class _Users(_Answer):
    results: list[_User] = []


class _Restricted(_Answer):
    user: _Users = _Users()
    group: _Groups = _Groups()


class _Restriction(_Answer):
    restrictions: _Restricted


@dataclass(frozen=True, slots=True)
class _Level:
    """The groups that have access at one level: their ids, by name. Individual people are
    ignored.
    """

    what: str
    groups: Mapping[str, str] = field(default_factory=dict)


class Confluence:
    """A `Connector` of one space, or of all spaces of the account except personal ones.

    `everybody` contains the names of groups that include everybody who may use the desk.
    """

    def __init__(self, client: ServiceClient, space: str, everybody: Sequence[str] = ()) -> None:
        self._client = client
        self._key = space
        self._everybody = frozenset(everybody)
        self._space_of: dict[str, _Space] = {}
        self._posts: set[str] = set()
        self._nodes: dict[str, _Page | _Place] = {}
        self._levels: dict[str, _Level | None] = {}
        self._titles: dict[tuple[str, str], str] = {}
        self._names: dict[str, str] = {}
        self._members: dict[str, frozenset[str] | None] = {}

    async def list_items(self) -> Sequence[Listed]:
        items: list[tuple[_Page, _Space]] = []
        for space in await self._list_spaces():
            path = f"{_V2}/spaces/{space.id}"
            pages = await self._list_all(_Page, f"{path}/pages", status="current")
            posts = await self._list_all(_Page, f"{path}/blogposts", status="current")
            self._posts |= {post.id for post in posts}
            self._titles |= {(space.key, page.title): page.id for page in pages}
            items += [(item, space) for item in (*pages, *posts)]
        for page, space in items:
            self._nodes[page.id] = page
            self._space_of[page.id] = space
        return [await self._list(page, space) for page, space in items]

    async def find_readers(self, item: Listed) -> Readers:
        space = self._space_of[item.id]
        above = await self._list_above(item.id)
        levels = [
            await self._find_space_level(space),
            *[await self._find_restriction(identity) for identity in (item.id, *above)],
        ]
        restricting = [
            level
            for level in levels
            if level is not None and self._everybody.isdisjoint(level.groups)
        ]
        if not restricting:
            return Readers(is_everybody=True)
        names = await self._intersect(restricting)
        if names:
            try:
                return Readers(groups=parse_groups(names))
            except ValueError as error:
                raise ItemError(item.address, f"its groups cannot be used: {error}") from error
        shown = "; ".join(
            f"{restriction.what}: {', '.join(restriction.groups) or 'people only'}"
            for restriction in restricting
        )
        return Readers(reason=f"no group can read this page, so nobody can read it here ({shown})")

    async def fetch(self, item: Listed) -> Fetched:
        if item.id.startswith("att"):
            return Fetched(await self._client.download(_unpack_place(item.id)))
        got = await self._client.get(
            _PageText, self._find_path(item.id), **{"body-format": "storage"}
        )
        try:
            data = await asyncio.to_thread(
                write_html, got.body.storage.value, got.title, item.address, self._find_address
            )
        except ReadingError as error:
            raise ItemError(item.address, str(error)) from error
        return Fetched(data, await self._list_attached(item))

    async def _list_all(self, kind: type[Answer], path: str, **query: str) -> list[Answer]:
        return await self._client.list_all(kind, path, "results", _follow, limit=_PER_PAGE, **query)

    async def _list_spaces(self) -> list[_Space]:
        named = {"keys": self._key} if self._key else {"status": "current"}
        spaces = [
            space
            for space in await self._list_all(_Space, f"{_V2}/spaces", **named)
            if space.key == self._key or not (self._key or space.type == "personal")
        ]
        if not spaces:
            what = f"the space {self._key!r}" if self._key else "a space"
            raise ConnectorError(
                self._client.address,
                f"the account cannot read {what} at {self._client.address}; check the space key "
                "and the permissions of the account",
            )
        return spaces

    async def _list(self, page: _Page, space: _Space) -> Listed:
        try:
            above = [self._nodes[node_id].title for node_id in await self._list_above(page.id)]
        except ItemError:
            # Its permissions will not be found either, which is reported; its place is not needed
            # before.
            above = []
        return Listed(
            id=page.id,
            version=f"{page.version.number} {page.title}",
            title=page.title,
            address=self._make_address(page.id),
            folders=(space.name or space.key, *reversed(above)),
        )

    def _find_path(self, identity: str) -> str:
        return f"{_V2}/{'blogposts' if identity in self._posts else 'pages'}/{identity}"

    def _make_address(self, identity: str) -> str:
        key = quote(self._space_of[identity].key, safe="~")
        space = f"{self._client.address}/wiki/spaces/{key}"
        if identity not in self._posts:
            return f"{space}/pages/{identity}"
        day = _DAY.match(getattr(self._nodes[identity], "created_at", ""))
        # Without its day, the address of a post is that of any content.
        place = "/".join(day.groups()) if day is not None else ""
        any_content = f"{self._client.address}/wiki/pages/viewpage.action?pageId={identity}"
        return f"{space}/blog/{place}/{identity}" if place else any_content

    def _find_address(self, title: str, space: str) -> str:
        keys = [space] if space else sorted({key for key, _ in self._titles})
        address = [self._titles[key, title] for key in keys if (key, title) in self._titles]
        return self._make_address(address[0]) if len(address) == 1 else ""

    async def _list_above(self, identity: str) -> list[str]:
        """Return the ids of the ancestors of a page, with the nearest one first; raises
        `ItemError`.
        """
        above: list[str] = []
        node = self._nodes[identity]
        while node.parent_id is not None:
            parent = node.parent_id
            if parent in above or parent == identity or len(above) >= _DEEPEST:
                raise ItemError(
                    self._client.address, "it has too many ancestor pages, or they form a loop"
                )
            above.append(parent)
            if parent not in self._nodes:
                self._nodes[parent] = await self._fetch_place(parent, node.parent_type)
            node = self._nodes[parent]
        return above

    async def _fetch_place(self, identity: str, kind: str | None) -> _Place:
        """Return an ancestor of a page that is not a page itself; raises `ItemError`."""
        place = _PLACES.get(kind or "", "pages")
        try:
            return await self._client.get(_Place, f"{_V2}/{place}/{identity}")
        except ItemError as error:
            raise ItemError(
                self._client.address,
                "the readers of this page are unknown, because a page above it cannot be read: "
                f"{error}",
            ) from error

    async def _list_attached(self, item: Listed) -> tuple[Listed, ...]:
        path = f"{self._find_path(item.id)}/attachments"
        attachments = await self._list_all(_Attachment, path, status="current")
        return tuple(
            Listed(
                id=f"{attachment.id}@{item.id}",
                version=f"{attachment.version.number}",
                title=attachment.title,
                address=f"{item.address}{'&' if '?' in item.address else '?'}"
                f"preview=/{item.id}/{attachment.id.removeprefix('att')}",
                folders=(*item.folders, item.title),
                suffix=PurePosixPath(attachment.title).suffix.lower(),
            )
            for attachment in attachments
            if attachment.id.startswith("att")
            and attachment.file_size <= MAX_BYTES
            and PurePosixPath(attachment.title).suffix.lower() in FOREIGN_SUFFIXES
        )

    async def _find_space_level(self, space: _Space) -> _Level | None:
        known = f"space {space.id}"
        if known not in self._levels:
            permissions = await self._list_all(_Permission, f"{_V2}/spaces/{space.id}/permissions")
            ids = {
                permission.principal.id
                for permission in permissions
                if permission.principal.type == "group"
                and (permission.operation.key, permission.operation.target_type)
                == ("read", "space")
            }
            named = {await self._name_group(identifier): identifier for identifier in sorted(ids)}
            self._levels[known] = _Level(f"the space {space.key}", named)
        return self._levels[known]

    async def _name_group(self, identity: str) -> str:
        if identity not in self._names:
            got = await self._client.get(_Group, f"{_V1}/group/by-id", id=identity)
            self._names[identity] = got.name
        return self._names[identity]

    async def _find_restriction(self, identity: str) -> _Level | None:
        """Return the readers to which a page or one of its ancestors is restricted, or None if it
        is unrestricted.
        """
        if identity not in self._levels:
            groups: dict[str, str] = {}
            start, is_restricted = 0, False
            path = f"{_V1}/content/{identity}/restriction/byOperation/read"
            while True:
                got = await self._client.get(
                    _Restriction,
                    path,
                    expand="restrictions.user,restrictions.group",
                    start=start,
                    limit=_RESTRICTIONS_PER_PAGE,
                )
                here = got.restrictions
                groups |= {result.name: result.id for result in here.group.results}
                counts = (len(here.group.results), len(here.user.results))
                is_restricted = is_restricted or any(counts)
                start += _RESTRICTIONS_PER_PAGE
                if max(counts) < _RESTRICTIONS_PER_PAGE:
                    break
            what = f"the page {self._nodes[identity].title!r:.80}"
            self._levels[identity] = _Level(what, groups) if is_restricted else None
        return self._levels[identity]

    async def _intersect(self, levels: Sequence[_Level]) -> list[str]:
        """Return the groups whose members all have access at every level."""
        ids = {name: group for level in levels for name, group in level.groups.items()}
        return [
            name
            for name in sorted(ids)
            if all([await self._admits(level, name, ids[name]) for level in levels])
        ]

    async def _admits(self, level: _Level, name: str, identity: str) -> bool:
        if name in level.groups:
            return True
        members = await self._list_members(identity)
        if members is None or not level.groups:
            return False
        admitted = [await self._list_members(group) for group in level.groups.values()]
        return members <= frozenset().union(
            *(members for members in admitted if members is not None)
        )

    async def _list_members(self, identity: str) -> frozenset[str] | None:
        """Return the people in a group, or None if the account may not see them or there are too
        many.
        """
        if identity not in self._members:
            members: set[str] | None = set()
            start = 0
            path = f"{_V1}/group/{quote(identity)}/membersByGroupId"
            while members is not None:
                try:
                    got = await self._client.get(_Users, path, start=start, limit=_MEMBERS_PER_PAGE)
                except ItemForbiddenError:
                    members = None
                    break
                # A page may be shorter than requested, also when it is not the last one.
                if not got.results:
                    break
                members |= {result.account_id for result in got.results}
                start += len(got.results)
                members = members if start < _MOST_MEMBERS else None
            self._members[identity] = None if members is None else frozenset(members)
        return self._members[identity]


def _follow(page: Mapping[str, Any]) -> dict[str, str]:
    """Return the cursor of the next page; no other part of its URL is used."""
    links = page.get("_links")
    following = links.get("next") if isinstance(links, dict) else None
    cursor = parse_qs(urlsplit(str(following or "")).query).get("cursor", [""])[0]
    return {"cursor": cursor} if cursor else {}


def _unpack_place(identity: str) -> str:
    attachment, _, page = identity.partition("@")
    return f"{_V1}/content/{page}/child/attachment/{attachment}/download"
