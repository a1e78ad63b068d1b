"""Names one question, and the shard its conversation lives in."""

import hashlib
import re
from urllib.parse import quote

from pydantic import BaseModel, Field

_UNRESERVED = re.compile(r"[A-Za-z0-9_.~-]*")
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
HTTP = "http"
"""The channel whose conversation ids stand alone; clients choose them, always without a slash."""
CHANNEL_MARK = "/"
"""Ends the channel in the conversation ids of every other channel; no channel's name has one."""


class Question(BaseModel, frozen=True, extra="forbid"):
    """The full name of one message: unique over all tenants and assistants."""

    tenant: str = Field(pattern=NAME)
    assistant: str = Field(pattern=NAME)
    conversation_id: str = Field(min_length=1, max_length=128)
    message_id: str = Field(min_length=1, max_length=128)

    # Names are looked up in caches at every hop: these two cost a fifth of what pydantic makes.
    def __hash__(self) -> int:
        return hash((self.conversation_id, self.message_id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Question) and self.__dict__ == other.__dict__

    @property
    def conversation(self) -> tuple[str, str, str]:
        """Tenant, assistant and conversation: what order and memory are kept for."""
        return (self.tenant, self.assistant, self.conversation_id)


def qualify_conversation(channel: str, conversation_id: str) -> str:
    """Return the conversation id under which a channel's own id is stored: `slack/T1:C1:17.1`.

    A qualified id of this channel stays as it is. So do ids of `http`, which no other channel can
    spell; raises ValueError for one of `http` with a slash: it would be another channel's.
    """
    if channel == HTTP:
        if CHANNEL_MARK in conversation_id:
            raise ValueError(f"expected a conversation id without {CHANNEL_MARK!r}")
        return conversation_id
    prefix = f"{channel}{CHANNEL_MARK}"
    return conversation_id if conversation_id.startswith(prefix) else prefix + conversation_id


def names_conversation(told: str, conversation_id: str) -> bool:
    """Whether `told` names a stored conversation id: in full, or as its channel calls it."""
    _, mark, own = conversation_id.partition(CHANNEL_MARK)
    return told == conversation_id or (bool(mark) and told == own)


def shard_of(conversation: tuple[str, str, str], shards: int) -> int:
    """Return the shard, 0 to `shards - 1`, that every key of the conversation lives in."""
    digest = hashlib.blake2b("\x1f".join(conversation).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shards


def shard_tag(shard: int) -> str:
    """Return the Redis Cluster hash tag of a shard, braces included."""
    return f"{{{shard}}}"


def in_key(part: str) -> str:
    """Return a part of a name as it stands in a key: percent-encoded (RFC 3986), also slashes."""
    # Most names are nothing but unreserved characters, which can be told without encoding them.
    return part if _UNRESERVED.fullmatch(part) else quote(part, safe="")
