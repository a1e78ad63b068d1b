"""Finds replies to messages of other files by the ids that their headers state."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

SUFFIX = ".eml"
_MOST_BYTES = 64 * 1024
_MOST_IDS = 100
_FIELD = re.compile(
    rb"^(message-id|in-reply-to|references)[ \t]{0,3}:"
    rb"([^\n]{0,8000}(?:\n[ \t][^\n]{0,8000}){0,100})",
    re.IGNORECASE | re.MULTILINE,
)
_ID = re.compile(rb"<([^<>\s]{1,250})>")


def find_replies(messages: Iterable[tuple[PurePosixPath, bytes]]) -> frozenset[PurePosixPath]:
    """Return the files of messages that answer a message of another of these files."""
    own: dict[bytes, PurePosixPath] = {}
    answered: dict[PurePosixPath, set[bytes]] = {}
    for path, data in messages:
        for name, value in _FIELD.findall(_take_header(data[:_MOST_BYTES])):
            ids = _ID.findall(value)[:_MOST_IDS]
            if name.lower() == b"message-id":
                own.update((one, path) for one in ids[:1])
            else:
                answered.setdefault(path, set()).update(ids)
    return frozenset(
        path for path, ids in answered.items() if any(own.get(one, path) != path for one in ids)
    )


def _take_header(data: bytes) -> bytes:
    plain = data.replace(b"\r\n", b"\n")
    return plain.partition(b"\n\n")[0]
