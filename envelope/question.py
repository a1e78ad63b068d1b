"""The identity of a message, its representation in Redis keys, the shard of its conversation, and
groups.

Users belong to groups. A document without groups is readable by all users of its assistant; any
other requires one of its groups.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import quote

from pydantic import BaseModel, Field

_UNRESERVED = re.compile(r"[A-Za-z0-9_.~-]*")
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
HTTP = "http"
"""The channel whose conversation ids have no prefix. Clients choose these ids, which cannot contain
a slash.
"""
CONSOLE = "console"
"""The channel of questions that the owner repeats, outside of the user's conversation."""
REPLAY = "replay"
"""The channel of `refdesk replay`, which runs ended questions again."""
COPYING = (CONSOLE, REPLAY)
"""The channels whose conversations contain text of other conversations.

Their conversation ids are created by `copy_question`, so that erasing the original also finds every
copy.
"""
LONGEST_ID = 128
CHANNEL_MARK = "/"
"""Separates the channel from the rest of a conversation id; no channel name contains it."""

_HASH_LENGTH = 32

LONGEST_GROUP = 64
MOST_GROUPS = 64
_GROUP_SEPARATOR = ","


class Question(BaseModel, frozen=True, extra="ignore"):
    """The full identity of one message, unique over all tenants and assistants."""

    tenant: str = Field(pattern=NAME)
    assistant: str = Field(pattern=NAME)
    conversation_id: str = Field(min_length=1, max_length=LONGEST_ID)
    message_id: str = Field(min_length=1, max_length=LONGEST_ID)

    # Every hop uses questions as cache keys; these two methods take a fifth of pydantic's time.
    def __hash__(self) -> int:
        return hash((self.conversation_id, self.message_id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Question) and self.__dict__ == other.__dict__

    @property
    def conversation(self) -> tuple[str, str, str]:
        """Tenant, assistant and conversation: the scope of message order and memory."""
        return (self.tenant, self.assistant, self.conversation_id)


def qualify_conversation(channel: str, conversation_id: str) -> str:
    """Return the stored conversation id for an id in a channel, such as `slack/T1:C1:17.1`.

    An id that already has the channel's prefix is returned unchanged, and so is an id of `http`.
    Raises `ValueError` for an id of `http` with a slash, which would refer to another channel.
    """
    if channel == HTTP:
        if CHANNEL_MARK in conversation_id:
            raise ValueError(f"expected a conversation id without {CHANNEL_MARK!r}")
        return conversation_id
    prefix = f"{channel}{CHANNEL_MARK}"
    return conversation_id if conversation_id.startswith(prefix) else prefix + conversation_id


def copy_question(question: Question, channel: str) -> Question:
    """Return the question as it is repeated in a copying channel.

    A copy of a copy gets the same conversation as a copy of the original. A conversation id that
    would be too long is shortened with a hash.
    """
    named = question.conversation_id
    if named.startswith(f"{channel}{CHANNEL_MARK}"):
        return question
    for copying in COPYING:
        named = named.removeprefix(f"{copying}{CHANNEL_MARK}")
    copied = qualify_conversation(channel, named)
    if len(copied) > LONGEST_ID:
        digest = hashlib.sha256(named.encode()).hexdigest()[:_HASH_LENGTH]
        copied = f"{copied[: LONGEST_ID - _HASH_LENGTH - 1]}.{digest}"
    return question.model_copy(update={"conversation_id": copied})


def list_copies(question: Question) -> tuple[Question, ...]:
    """Return the question in every conversation that may contain copies of its text."""
    copies = (copy_question(question, channel) for channel in COPYING)
    return tuple(copy for copy in copies if copy.conversation_id != question.conversation_id)


def names_conversation(given_id: str, conversation_id: str) -> bool:
    """Return whether `given_id` is the stored conversation id, with or without its prefix."""
    _, mark, own = conversation_id.partition(CHANNEL_MARK)
    return given_id == conversation_id or (bool(mark) and given_id == own)


def shard_of(conversation: tuple[str, str, str], shards: int) -> int:
    """Return the shard, 0 to `shards - 1`, of all keys of the conversation."""
    digest = hashlib.blake2b("\x1f".join(conversation).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shards


def shard_tag(shard: int) -> str:
    """Return the Redis Cluster hash tag of a shard, including braces."""
    return f"{{{shard}}}"


def in_key(part: str) -> str:
    """Percent-encode a part of a key (RFC 3986), including slashes."""
    # Most parts have only unreserved characters; the check is faster than the encoding.
    return part if _UNRESERVED.fullmatch(part) else quote(part, safe="")


def parse_groups(names: Iterable[object]) -> tuple[str, ...]:
    """Return the distinct group names, sorted; raises `ValueError` for an invalid name.

    Names are case-sensitive. Surrounding white space is removed.
    """
    groups = {_parse_group(name) for name in names}
    if len(groups) > MOST_GROUPS:
        raise ValueError(f"expected at most {MOST_GROUPS} groups, found {len(groups)}")
    return tuple(sorted(groups))


def may_read(required: Iterable[str], groups: Iterable[str]) -> bool:
    """Return whether a user in `groups` may read a document that is restricted to `required`."""
    needed = frozenset(required)
    return not needed or not needed.isdisjoint(groups)


def has_all(recorded: Iterable[str], groups: Iterable[str]) -> bool:
    """Return whether a user in `groups` may read an answer given to a user in `recorded`."""
    return frozenset(recorded).issubset(groups)


def _parse_group(name: object) -> str:
    text = unicodedata.normalize("NFC", name).strip() if isinstance(name, str) else ""
    is_usable = (
        0 < len(text) <= LONGEST_GROUP and text.isprintable() and _GROUP_SEPARATOR not in text
    )
    if not is_usable:
        raise ValueError(
            f"expected the name of a group, 1 to {LONGEST_GROUP} printable characters without a "
            f"comma, found {name!r:.80}"
        )
    return text
