"""Every key of the memory: all of one conversation stand in its shard's slot.

| key                                        | type | written | read    | dies     |
|--------------------------------------------|------|---------|---------|----------|
| rd:{shard}:mem:<conversation>:history      | list | finish  | manager | ttl      |
| rd:{shard}:mem:<conversation>:summary      | hash | finish  | manager | ttl      |
| rd:{shard}:mem:<conversation>:preferences  | hash | finish  | manager | ttl      |
| rd:{shard}:mem:<conversation>:pause        | hash | finish  | manager | ttl, end |
| rd:{shard}:mem:<conversation>:statistics   | hash | finish  | manager | ttl      |
| rd:{shard}:mem:<conversation>:calls        | hash | agents  | agents  | ttl, end |
| rd:{shard}:mem:<conversation>:feedback     | hash | doors   | doors   | ttl      |
| rd:{shard}:mem:<conversation>:threads      | set  | doors   | forget  | a day    |
| rd:{shard}:mem:<conversation>:shared       | hash | agents  | agents  | ttl      |
| rd:{shard}:mem:<conversation>:visit        | str  | doors   | doors   | ttl (1)  |
| rd:{0}:workers                             | zset | workers | status  | silence  |
| rd:thread:<tenant>/<assistant>:<hash>      | str  | doors   | doors   | ttl      |
| rd:keys                                    | hash | keys    | doors   | never    |
| rd:keys:links                              | str  | doors   | doors   | never    |
| rd:rate:{owner}:<limit>                    | hash | doors   | doors   | when full|
| rd:rate:{owner}:once/<hash>                | str  | doors   | doors   | minutes  |
| rd:push:{channel/<conversation>}:about     | hash | doors   | doors   | ttl      |
| rd:push:{channel/<conversation>}:open      | zset | doors   | doors   | ttl      |
| rd:push:{channel/<conversation>}:post:<id> | hash | doors   | doors   | ttl      |
| rd:push:{channel/<conversation>}:words     | set  | doors   | doors   | ttl      |
| rd:push:<channel>:token:<token>            | str  | doors   | doors   | ttl      |
| rd:push:<channel>:claim:<hash>             | str  | doors   | doors   | a day    |
| rd:push:<channel>:pace:<call>              | str  | doors   | doors   | its wait |
| rd:push:<channel>:duty:<what>              | str  | doors   | doors   | seconds  |
| rd:cache:<tenant>/<assistant>:<hash>       | str  | agents  | agents  | ttl      |
| rd:limit:<model>                           | hash | agents  | agents  | ttl      |

(1) Minutes, as long as nothing was asked in the conversation.

`calls` holds the paid model calls of the question that runs, so that a redelivered envelope finds
them; the question's end deletes it. `shared` holds answers of models that other conversations may
use, who find it by `rd:cache`, which holds no word; it is forgotten with the conversation that paid
them. `threads` names the keys `rd:thread` of the conversation. `visit` outlives `clear_all`: the
visitor goes on with the conversation. `workers` holds the processes that live, by when they were
last seen (ms), and is gone when none does; it stands in the first shard.
"""

from functools import lru_cache
from typing import NamedTuple

from envelope.question import Question, in_key, shard_of, shard_tag

CACHED = 4096


class ConversationKeys(NamedTuple):
    """The keys of one conversation."""

    history: str
    summary: str
    preferences: str
    pause: str
    statistics: str
    calls: str
    feedback: str
    threads: str
    shared: str
    visit: str

    @property
    def all(self) -> tuple[str, ...]:
        """Every key, for forgetting."""
        return (
            self.history,
            self.summary,
            self.preferences,
            self.pause,
            self.statistics,
            self.calls,
            self.feedback,
            self.threads,
            self.shared,
        )


def conversation_keys(question: Question, shards: int) -> ConversationKeys:
    """Return the keys of the question's conversation."""
    return _keys(question.conversation, shards)


@lru_cache(CACHED)
def _keys(conversation: tuple[str, str, str], shards: int) -> ConversationKeys:
    tag = shard_tag(shard_of(conversation, shards))
    stem = f"rd:{tag}:mem:" + "/".join(in_key(part) for part in conversation)
    return ConversationKeys(
        history=f"{stem}:history",
        summary=f"{stem}:summary",
        preferences=f"{stem}:preferences",
        pause=f"{stem}:pause",
        statistics=f"{stem}:statistics",
        calls=f"{stem}:calls",
        feedback=f"{stem}:feedback",
        threads=f"{stem}:threads",
        shared=f"{stem}:shared",
        visit=f"{stem}:visit",
    )


def workers_key() -> str:
    """Return the key of the worker processes that live: they may write to their shards alone."""
    return f"rd:{shard_tag(0)}:workers"


def cache_key(tenant: str, assistant: str, content_hash: str) -> str:
    """Return the key that leads to a shared answer."""
    return f"rd:cache:{in_key(tenant)}/{in_key(assistant)}:{in_key(content_hash)}"


def thread_key(tenant: str, assistant: str, digest: str) -> str:
    """Return the key that leads from what a client was shown to its conversation."""
    return f"rd:thread:{in_key(tenant)}/{in_key(assistant)}:{in_key(digest)}"


def door_keys_key() -> str:
    """Return the key of the HTTP door's keys."""
    return "rd:keys"


def link_secret_key() -> str:
    """Return the key of the secret that signs the doors' links."""
    return "rd:keys:links"


def rate_key(owner: str, name: str) -> str:
    """Return the key of what an owner has used of one limit; all of one owner share a slot."""
    return f"rd:rate:{{{in_key(owner)}}}:{in_key(name)}"


def push_key(channel: str, *parts: str) -> str:
    """Return a key that a push channel has once."""
    return ":".join(("rd:push", *(in_key(part) for part in (channel, *parts))))


def push_conversation_key(channel: str, question: Question, *parts: str) -> str:
    """Return a key of a conversation of a push channel; all of one conversation share a slot."""
    named = "/".join(in_key(part) for part in (channel, *question.conversation))
    return ":".join((f"rd:push:{{{named}}}", *(in_key(part) for part in parts)))


def limit_key(model: str) -> str:
    """Return the key of a model's limits."""
    return f"rd:limit:{in_key(model)}"
