"""Every key of the memory: all of one conversation stand in its shard's slot.

| key                                       | type | written by | read by | dies    |
|-------------------------------------------|------|----------|---------|---------|
| rd:{shard}:mem:<conversation>:history     | list | finish   | manager | ttl     |
| rd:{shard}:mem:<conversation>:summary     | hash | finish   | manager | ttl     |
| rd:{shard}:mem:<conversation>:preferences | hash | finish   | manager | ttl     |
| rd:{shard}:mem:<conversation>:pause       | hash | finish   | manager | ttl, end |
| rd:{shard}:mem:<conversation>:statistics  | hash | finish   | manager | ttl     |
| rd:{shard}:call:<question>:<hash>         | str  | worker   | worker  | ttl     |
| rd:cache:<space>:<tenant>:<hash>          | str  | worker   | worker  | ttl     |
| rd:cache:hits:<space>                     | hash | worker   | status  | ttl     |
"""

from dataclasses import dataclass
from urllib.parse import quote

from envelope.question import Question, shard_of, shard_tag


def _safe(part: str) -> str:
    return quote(part, safe="")


@dataclass(frozen=True, slots=True)
class ConversationKeys:
    """The keys of one conversation."""

    history: str
    summary: str
    preferences: str
    pause: str
    statistics: str

    @property
    def all(self) -> tuple[str, ...]:
        """Every key, for forgetting."""
        return (self.history, self.summary, self.preferences, self.pause, self.statistics)


def conversation_keys(question: Question, shards: int) -> ConversationKeys:
    """Return the keys of the question's conversation."""
    tag = shard_tag(shard_of(question.conversation, shards))
    stem = f"rd:{tag}:mem:" + "/".join(_safe(part) for part in question.conversation)
    return ConversationKeys(
        history=f"{stem}:history",
        summary=f"{stem}:summary",
        preferences=f"{stem}:preferences",
        pause=f"{stem}:pause",
        statistics=f"{stem}:statistics",
    )


def call_key(question: Question, shards: int, call: str) -> str:
    """Return the key of a stored model call."""
    tag = shard_tag(shard_of(question.conversation, shards))
    name = "/".join(_safe(part) for part in (*question.conversation, question.message_id))
    return f"rd:{tag}:call:{name}:{call}"
