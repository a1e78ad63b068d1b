"""Reads the articles of a Zendesk help center through its API.

| request                                       | purpose                                        |
|-----------------------------------------------|------------------------------------------------|
| /api/v2/help_center/{locale}/articles         | the articles in one language, with their text  |
| /api/v2/help_center/{locale}/sections         | the sections above them                        |
| /api/v2/help_center/{locale}/categories       | the categories above these                     |
| /api/v2/help_center/articles/{id}/attachments | the files of a changed article                 |
| /api/v2/help_center/user_segments             | the names of the user segments of articles     |

Without credentials, it reads what everybody may see. With the credentials of a help center manager,
an article that is shown to user segments is visible to the groups with the names of these segments.
The two built-in segments have different names in each language, and are called `signed_in_users`
and `staff` here.
"""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, Field

from envelope.question import parse_groups
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

_PER_PAGE = 100
_DEEPEST = 10
_HELP = "/api/v2/help_center"
_FILES = "/hc/"
_ATTACHED = "att"


class Zendesk:
    """A `Connector` of the help center in one language.

    `is_anonymous` is true if there are no credentials, so that everything visible is for everybody.
    `everybody` contains the names of groups that include everybody who may use the desk.
    """

    def __init__(
        self,
        client: ServiceClient,
        locale: str,
        everybody: Sequence[str] = (),
        *,
        is_anonymous: bool = False,
    ) -> None:
        self._client = client
        self._base = f"{_HELP}/{locale}" if locale else _HELP
        self._everybody = frozenset(everybody)
        self._is_anonymous = is_anonymous
        self._articles: dict[str, _Article] = {}
        self._segments: dict[int, str] | None = None

    async def list_items(self) -> Sequence[Listed]:
        articles = await self._list_all(_Article, f"{self._base}/articles", "articles")
        self._articles = {
            str(article.id): article for article in articles if not article.draft and article.body
        }
        sections = {
            section.id: section
            for section in await self._list_all(_Section, f"{self._base}/sections", "sections")
        }
        categories = {
            category.id: category.name
            for category in await self._list_all(
                _Category, f"{self._base}/categories", "categories"
            )
        }
        if not self._is_anonymous:
            await self._read_segments()
        return [
            Listed(
                id=identity,
                version=f"{article.updated_at} {article.edited_at}",
                title=article.title,
                address=f"{self._client.address}/hc/{article.locale.lower()}/articles/{identity}",
                folders=_list_folders(article, sections, categories),
                language=article.locale.lower(),
            )
            for identity, article in self._articles.items()
        ]

    async def find_readers(self, item: Listed) -> Readers:
        article = self._articles[item.id]
        named = article.user_segment_ids
        wanted = [article.user_segment_id] if named is None else named
        ids = [group for group in wanted if group is not None]
        if self._is_anonymous or not ids:
            return Readers(is_everybody=True)
        known = self._segments
        if known is None or any(identifier not in known for identifier in ids):
            raise ItemError(
                item.address,
                "the readers of this article are unknown, because the account is not allowed "
                "to list user segments; use the account of a help center manager",
            )
        names = [known[identifier] for identifier in ids]
        if not self._everybody.isdisjoint(names):
            return Readers(is_everybody=True)
        try:
            return Readers(groups=parse_groups(names))
        except ValueError as error:
            raise ItemError(item.address, f"its user segments cannot be used: {error}") from error

    async def fetch(self, item: Listed) -> Fetched:
        if item.id.startswith(_ATTACHED):
            path = item.address.removeprefix(self._client.address)
            return Fetched(await self._client.download(path))
        article = self._articles[item.id]
        title = escape(article.title)
        head = f"<!doctype html><html><head><title>{title}</title></head>"
        page = f"{head}<body><h1>{title}</h1>{article.body}</body></html>"
        return Fetched(page.encode("utf-8", "replace"), await self._list_attached(item))

    async def _list_attached(self, item: Listed) -> tuple[Listed, ...]:
        path = f"{_HELP}/articles/{item.id}/attachments"
        attachments = await self._list_all(_Attachment, path, "article_attachments")
        # Of the address of a file only its path is used: credentials go to no other host.
        places = [(attachment, urlsplit(attachment.content_url).path) for attachment in attachments]
        return tuple(
            Listed(
                id=f"{_ATTACHED}{attachment.id}",
                version=f"{attachment.updated_at} {attachment.size}",
                title=attachment.file_name,
                address=f"{self._client.address}{path}",
                folders=(*item.folders, item.title),
                suffix=PurePosixPath(attachment.file_name).suffix.lower(),
                language=item.language,
            )
            for attachment, path in places
            if path.startswith(_FILES)
            and attachment.size <= MAX_BYTES
            and PurePosixPath(attachment.file_name).suffix.lower() in FOREIGN_SUFFIXES
        )

    async def _read_segments(self) -> None:
        try:
            segments = await self._list_all(_Segment, f"{_HELP}/user_segments", "user_segments")
        except ItemForbiddenError:
            # Public articles are read nevertheless; for others, the missing permission is reported.
            return
        self._segments = {
            segment.id: segment.user_type if segment.built_in else segment.name
            for segment in segments
        }

    async def _list_all(self, kind: type[Answer], path: str, name: str) -> list[Answer]:
        return await self._client.list_all(kind, path, name, _follow, **{"page[size]": _PER_PAGE})


class _Category(BaseModel):
    id: int
    name: str = ""


class _Section(BaseModel):
    id: int
    name: str = ""
    category_id: int | None = None
    parent_section_id: int | None = None


class _Article(BaseModel):
    id: int = Field(ge=0)
    title: str = ""
    body: str | None = None
    draft: bool = False
    locale: str = Field(pattern=r"^[A-Za-z0-9-]{1,30}$")
    updated_at: str = ""
    edited_at: str = ""
    section_id: int | None = None
    user_segment_id: int | None = None
    user_segment_ids: list[int] | None = None


class _Attachment(BaseModel):
    id: int = Field(ge=0)
    file_name: str = ""
    content_url: str = ""
    size: int = 0
    updated_at: str = ""


class _Segment(BaseModel):
    id: int
    name: str = ""
    user_type: str = ""
    built_in: bool = False


def _list_folders(
    article: _Article, sections: Mapping[int, _Section], categories: Mapping[int, str]
) -> tuple[str, ...]:
    folders: list[str] = []
    section = sections.get(article.section_id or 0)
    for _ in range(_DEEPEST):
        if section is None:
            break
        folders.insert(0, section.name)
        if section.parent_section_id is None:
            folders.insert(0, categories.get(section.category_id or 0, ""))
        section = sections.get(section.parent_section_id or 0)
    return tuple(name for name in folders if name)


def _follow(page: Mapping[str, Any]) -> dict[str, str]:
    """Return the cursor of the next page; no other part of its URL is used."""
    meta = page.get("meta")
    if not isinstance(meta, dict) or not meta.get("has_more"):
        return {}
    return {"page[after]": str(meta.get("after_cursor") or "")}
