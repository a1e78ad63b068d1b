"""All keys of the broker, and how a question is encoded in a key.

All keys of a shard carry its tag `{n}`, so that they share a slot of Redis Cluster. `<question>` is
`tenant/assistant/conversation/message`, and `<conversation>` consists of its first three parts.
Each part is percent-encoded, so that no ID can produce another key.

| key                      | type   | written by            | read by        | dies               |
|--------------------------|--------|-----------------------|----------------|--------------------|
| rd:shards                | string | prepare               | prepare        | never              |
| rd:{n}:stream:<role>     | stream | submit, settle, due   | take, sweep    | entries: settled   |
| rd:{n}:deadlines         | zset   | submit, close         | due, submit    | members: closed    |
| rd:{n}:open              | hash   | submit, close         | submit         | fields: none open  |
| rd:{n}:pace              | hash   | submit                | submit         | ttl                |
| rd:{n}:delayed           | zset   | submit, settle        | due            | members: due       |
| rd:{n}:parked            | hash   | settle                | due            | fields: due        |
| rd:{n}:notices           | stream | close, announce       | outcome, ended | capped, ttl        |
| rd:{n}:alarms            | stream | submit, settle, close | alarm          | capped, ttl        |
| rd:{n}:duty              | hash   | sweep, due            | sweep, due     | ttl                |
| rd:{n}:pulse             | -      | nobody                | heartbeat, admin | never exists     |
| rd:{n}:dead              | stream | settle, discard       | dead_letters   | capped, ttl        |
| rd:{n}:letters           | hash   | settle, discard       | dead_letters   | capped, ttl        |
| rd:{n}:files             | hash   | forget, sweep         | sweep          | ttl                |
| rd:{n}:record:<question> | hash   | submit, settle, close | submit, settle | ttl                |
| rd:{n}:journal:<question> | stream | submit, settle, close | journal, reply | ttl               |
| rd:{n}:frames:<question> | hash  | settle, due           | take, settle, due | closed, ttl     |
| rd:{n}:order:<conversation> | list | submit, close        | submit, close  | when empty, ttl    |
| rd:{n}:conversation:<conversation> | hash | submit, settle | close, due, submit | fields: begun |
| rd:{n}:asked:<conversation> | zset | submit               | forget         | ttl                |
| rd:{n}:tombstone:<conversation> | string | finish         | finish         | last open deadline |
| rd:{n}:named:<message id> | zset  | submit                | find           | capped, ttl        |
| rd:{n}:results:<list>    | stream | close                 | push channels  | ttl                |

`frames` also contains the branches and joins of a question; `broker/lua/branches.lua` lists its
fields.

"close" stands for the operations that end a question: finish, bury, cancel, forget, and due at its
deadline. Redis deletes a key with a TTL even if no process is running. A key that is deleted with
its last member does not exist while no question is open. Only `rd:shards` and the streams of the
roles remain forever, and they contain no user text.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from envelope.question import Question, in_key, shard_of, shard_tag

GROUP = "workers"
"""The consumer group of every stream."""

SHARDS = "rd:shards"
CACHED = 8192


@dataclass(frozen=True, slots=True)
class ShardKeys:
    """The keys that exist once per shard."""

    deadlines: str
    open: str
    dead: str
    delayed: str
    parked: str
    notices: str
    alarms: str
    letters: str
    duty: str
    files: str

    @property
    def all(self) -> tuple[str, ...]:
        """The keys that every script expects, in this order."""
        return (
            self.deadlines, self.open, self.dead, self.delayed, self.parked, self.notices,
            self.alarms, self.letters,
        )  # fmt: skip


class QuestionKeys(NamedTuple):
    """The keys of one question and of its conversation."""

    name: str
    record: str
    journal: str
    order: str
    conversation: str
    messages: str
    tombstone: str
    frames: str

    @property
    def closing(self) -> tuple[str, ...]:
        """The keys that change when a question is closed, in the order that the scripts expect."""
        return (
            self.record, self.journal, self.order, self.conversation, self.tombstone, self.frames,
        )  # fmt: skip


@lru_cache(CACHED)
def stream_key(role: str, shard: int) -> str:
    """Return the stream on which `role` receives frames in this shard."""
    return f"rd:{shard_tag(shard)}:stream:{in_key(role)}"


def results_key(result_list: str, shard: int) -> str:
    """Return the stream that contains the final replies for a push channel."""
    return f"rd:{shard_tag(shard)}:results:{in_key(result_list)}"


def pace_key(shard: int) -> str:
    """Return the hash with the admission figures of a shard."""
    return f"rd:{shard_tag(shard)}:pace"


def message_id_key(message_id: str, shard: int) -> str:
    """Return the index of the questions with this message id."""
    return f"rd:{shard_tag(shard)}:named:{in_key(message_id)}"


@lru_cache(CACHED)
def name_of(question: Question) -> str:
    """Return the name of a question, as used in keys and entries."""
    return "/".join(in_key(part) for part in (*question.conversation, question.message_id))


@lru_cache(CACHED)
def question_of(name: str) -> Question:
    """Return the question with this name; raises `ValueError` for an invalid name."""
    parts = [unquote(part, errors="strict") for part in name.split("/")]
    if len(parts) != 4:
        raise ValueError(f"expected tenant/assistant/conversation/message, found {name!r}")
    tenant, assistant, conversation, message = parts
    return Question(
        tenant=tenant,
        assistant=assistant,
        conversation_id=conversation,
        message_id=message,
    )


@lru_cache(CACHED)
def shard_for(question: Question, shards: int) -> int:
    """Return the shard that contains every key of the question's conversation."""
    return shard_of(question.conversation, shards)


def record_of(shards: int) -> Callable[[Question], str]:
    """Return a function that maps a question to the key of its record."""
    return lambda question: question_keys(question, shard_for(question, shards)).record


def heartbeat_key(shard: int) -> str:
    """Return the key on which heartbeats block on the shard's server; the key never exists.

    `QueueAdmin.find_write_fault` sets the key only if it already exists, so nothing is written.
    """
    return f"rd:{shard_tag(shard)}:pulse"


@lru_cache(CACHED)
def shard_keys(shard: int) -> ShardKeys:
    """Return the keys of a shard."""
    stem = f"rd:{shard_tag(shard)}:"
    return ShardKeys(
        deadlines=f"{stem}deadlines",
        open=f"{stem}open",
        dead=f"{stem}dead",
        delayed=f"{stem}delayed",
        parked=f"{stem}parked",
        notices=f"{stem}notices",
        alarms=f"{stem}alarms",
        letters=f"{stem}letters",
        duty=f"{stem}duty",
        files=f"{stem}files",
    )


@lru_cache(CACHED)
def question_keys(question: Question, shard: int) -> QuestionKeys:
    """Return the keys of a question that belongs to `shard`."""
    stem = f"rd:{shard_tag(shard)}:"
    name = name_of(question)
    conversation = name.rsplit("/", 1)[0]
    return QuestionKeys(
        name=name,
        record=f"{stem}record:{name}",
        journal=f"{stem}journal:{name}",
        order=f"{stem}order:{conversation}",
        conversation=f"{stem}conversation:{conversation}",
        messages=f"{stem}asked:{conversation}",
        tombstone=f"{stem}tombstone:{conversation}",
        frames=f"{stem}frames:{name}",
    )
