"""Converts a Slack export to documents: one for each thread, one for the other posts of a day.

The export contains `users.json`, `channels.json` and a folder for each channel with a file for each
day.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from knowledge.documents.errors import ReadingError, explain_failure
from knowledge.documents.folder import FolderListing, FoundFile

_DAY = re.compile(r"\A\d{4}-\d{2}-\d{2}\.json\Z")
_USER = re.compile(r"<@([A-Z0-9]{1,20})(?:\|[^<>|]{0,100})?>")
_CHANNEL = re.compile(r"<#([A-Z0-9]{1,20})(?:\|([^<>|]{0,100}))?>")
_LINK = re.compile(r"<((?:https?|mailto):[^<>|]{1,2000})\|([^<>|]{1,500})>")
_ADDRESS = re.compile(r"<((?:https?|mailto):[^<>|]{1,2000})\|?>")
_STRUCK_OUT = re.compile(r"(?<![\w~])~([^\s~](?:[^~\n]{0,500}[^\s~])?)~(?![\w~])")
_NOISE = frozenset({"channel_join", "channel_leave", "channel_topic", "channel_purpose", "bot_add"})
_LISTS = ("channels.json", "users.json")
_NAMES = "refdesk names"
"""The key under which the names of the original file of a post are kept."""
_NOT_EXPORTED = "a file of a post; the export contains only its URL"
_MOST_POSTS = 200_000
_LONGEST_TITLE = 80
_EPOCH = 10_000_000_000

Post = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedFile(FoundFile):
    """A document created from other files; `title` and `folders` are its location."""

    data: bytes
    title: str
    folders: tuple[str, ...] = ()

    def read(self) -> bytes:
        """Return its bytes."""
        return self.data


@dataclass(frozen=True, slots=True)
class _Workspace:
    """The names of people and channels by id, and the ids of channels by name."""

    people: Mapping[str, str]
    channels: Mapping[str, str]

    def write_text(self, text: str, *, is_title: bool = False) -> str:
        """Return a post with names instead of ids, and links as Markdown; a title has no links."""
        names = {channel: name for name, channel in self.channels.items()}
        text = _USER.sub(lambda found: f"@{self.people.get(found[1], found[1])}", text)
        text = _CHANNEL.sub(lambda found: f"#{found[2] or names.get(found[1], found[1])}", text)
        text = _LINK.sub(r"\2" if is_title else r"[\2](\1)", text)
        text = _ADDRESS.sub(r"\1", text)
        text = _STRUCK_OUT.sub(r"~~\1~~", text)
        return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")

    def name_author(self, post: Post) -> str:
        """Return the name of the author of a post."""
        stated = post.get("username") or post.get("bot_id") or "somebody"
        return self.people.get(str(post.get("user")), str(stated))


def restore_conversations(
    listing: FolderListing, workspace_url: str = ""
) -> dict[PurePosixPath, str]:
    """Replace the files of Slack exports with their conversations; return the URLs of these.

    `workspace_url` is the URL of the workspace, such as `https://acme.slack.com`; without it, posts
    have no URL. An unreadable day is a failure of the listing.
    """
    addresses: dict[PurePosixPath, str] = {}
    by_path = {file.path: file for file in listing.files}
    roots = [
        path.parent
        for path in sorted(by_path)
        if path.name == _LISTS[0] and path.with_name(_LISTS[1]) in by_path
    ]
    for root in roots:
        inside = [file for file in listing.files if file.path.is_relative_to(root)]
        workspace = _read_workspace(root, by_path, listing)
        files = [by_path[root / name] for name in _LISTS]
        lists = [name for file in files for name in (file.path, *file.origins)]
        channels: dict[str, list[FoundFile]] = defaultdict(list)
        for file in inside:
            if _DAY.match(file.path.name) and file.path.parent.parent == root:
                channels[file.path.parent.name].append(file)
        used = {file.path for days in channels.values() for file in days}
        used |= {path for path in by_path if path.parent == root and path.suffix == ".json"}
        listing.files[:] = [file for file in listing.files if file.path not in used]
        for name, days in sorted(channels.items()):
            posts = [post for day in days for post in _read_posts(day, listing)]
            if len(posts) > _MOST_POSTS:
                reason = f"only the first {_MOST_POSTS} of {len(posts)} posts were read"
                listing.skipped.append((root / name, reason))
            for file, moment in _write_documents(root, name, posts[:_MOST_POSTS], workspace):
                listing.files.append(replace(file, origins=(*file.origins, *lists)))
                identity = workspace.channels.get(name)
                if workspace_url and identity:
                    place = f"{workspace_url.rstrip('/')}/archives/{identity}"
                    addresses[file.path] = f"{place}/p{moment.replace('.', '')}"
    listing.files.sort(key=lambda file: file.path)
    return addresses


def _read_workspace(
    root: PurePosixPath, files: Mapping[PurePosixPath, FoundFile], listing: FolderListing
) -> _Workspace:
    people: dict[str, str] = {}
    for person in _read_list(files[root / "users.json"], listing):
        profile = person.get("profile")
        shown = profile if isinstance(profile, dict) else {}
        name = shown.get("real_name") or person.get("real_name") or person.get("name")
        people[str(person.get("id"))] = str(name)
    channels = _read_list(files[root / "channels.json"], listing)
    return _Workspace(people, {str(each.get("name")): str(each.get("id")) for each in channels})


def _read_posts(day: FoundFile, listing: FolderListing) -> list[Post]:
    names = (day.path, *day.origins)
    stated = (
        {**post, "text": "\n".join(_list_texts(post)), _NAMES: names}
        for post in _read_list(day, listing)
        if post.get("type") == "message"
        and post.get("subtype") not in _NOISE
        and 0 < _seconds(post.get("ts")) < _EPOCH
    )
    posts: list[Post] = []
    for post in stated:
        files = [_name_file(file) for file in _list_entries(post, "files")]
        listing.skipped += ((f"{day.path}/{name}", _NOT_EXPORTED) for name in files)
        if post["text"].strip():
            posts.append(post)
        else:
            listing.skipped.append((f"{day.path}/{post['ts']}", "a post without text"))
    return sorted(posts, key=lambda post: _seconds(post["ts"]))


def _list_texts(post: Post) -> Iterator[str]:
    """Yield the text of a post, of its attachments such as previews, and the names of its files."""
    yield from _take_texts(post, "text")
    for attachment in _list_entries(post, "attachments"):
        shown = list(_take_texts(attachment, "pretext", "title", "text"))
        yield from shown or _take_texts(attachment, "fallback")
        for stated in _list_entries(attachment, "fields"):
            yield ": ".join(_take_texts(stated, "title", "value"))
    yield from (f"[{_name_file(file)}]" for file in _list_entries(post, "files"))


def _take_texts(holder: Post, *keys: str) -> Iterator[str]:
    return (text for key in keys if isinstance(text := holder.get(key), str) and text.strip())


def _list_entries(post: Post, key: str) -> list[Post]:
    entries = post.get(key)
    return [entry for entry in entries if isinstance(entry, dict)] if type(entries) is list else []


def _name_file(file: Post) -> str:
    return next(_take_texts(file, "title", "name"), "file")


def _read_list(file: FoundFile, listing: FolderListing) -> list[Post]:
    try:
        data = orjson.loads(file.read())
        if isinstance(data, list):
            return [entry for entry in data if isinstance(entry, dict)]
        reason = "expected a file of a Slack export: expected a list"
    except orjson.JSONDecodeError as error:
        reason = f"expected a file of a Slack export: {error}"
    except (OSError, ReadingError) as error:
        reason = explain_failure(error)
    listing.failures.append((file.path, reason))
    return []


def _write_documents(
    root: PurePosixPath, channel: str, posts: Sequence[Post], workspace: _Workspace
) -> Iterator[tuple[DerivedFile, str]]:
    """Yield the documents of a channel, each with the time stamp of its first post."""
    answered = {
        str(post["thread_ts"]) for post in posts if post.get("thread_ts") not in (None, post["ts"])
    }
    documents: dict[tuple[str, str], list[Post]] = defaultdict(list)
    for post in posts:
        thread = str(post.get("thread_ts") or post["ts"])
        day = f"{_moment(post):%Y-%m-%d}"
        documents[("thread", thread) if thread in answered else ("day", day)].append(post)
    for (kind, name), chosen in documents.items():
        is_thread = kind == "thread"
        title = f"#{channel}, {name}"
        if is_thread:
            first = workspace.write_text(str(chosen[0]["text"]), is_title=True).split("\n")[0]
            is_short = len(first) <= _LONGEST_TITLE
            title = first if is_short else f"{first[:_LONGEST_TITLE].rstrip()}…"
        path = root / channel / (f"thread-{name}.md" if is_thread else f"{name}.md")
        written = (
            f"**{workspace.name_author(post)}, {_moment(post):%Y-%m-%d %H:%M}**\n\n"
            f"{workspace.write_text(str(post['text']))}"
            for post in chosen
        )
        file = DerivedFile(
            path,
            Path(path),
            origins=tuple(dict.fromkeys(name for post in chosen for name in post[_NAMES])),
            data="\n\n".join(written).encode("utf-8", "replace"),
            title=title,
            folders=(f"#{channel}",),
        )
        yield file, name if is_thread else str(chosen[0]["ts"])


def _moment(post: Post) -> datetime:
    return datetime.fromtimestamp(_seconds(post["ts"]), UTC)


def _seconds(stamp: object) -> float:
    try:
        return float(str(stamp))
    except ValueError:
        return 0.0
