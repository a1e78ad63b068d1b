"""All keys of the memory. The keys of one conversation are in the hash slot of its shard.

| key                                        | type | written | read    | dies     |
|--------------------------------------------|------|---------|---------|----------|
| rd:{shard}:mem:<conversation>:history      | list | finish  | manager | ttl      |
| rd:{shard}:mem:<conversation>:summary      | hash | finish  | manager | ttl      |
| rd:{shard}:mem:<conversation>:preferences  | hash | finish  | manager | ttl      |
| rd:{shard}:mem:<conversation>:pause        | hash | finish  | manager | ttl, end |
| rd:{shard}:mem:<conversation>:kept         | hash | finish  | manager | pause, end |
| rd:{shard}:mem:<conversation>:statistics   | hash | finish  | manager | ttl      |
| rd:{shard}:mem:<conversation>:calls        | hash | agents  | agents  | ttl, end |
| rd:{shard}:mem:<conversation>:receipts     | hash | agents  | agents  | a day    |
| rd:{shard}:mem:<conversation>:feedback     | hash | gateway | gateway | ttl      |
| rd:{shard}:mem:<conversation>:threads      | set  | gateway | forget  | a day    |
| rd:{shard}:mem:<conversation>:shared       | hash | agents  | agents  | ttl      |
| rd:{shard}:mem:<conversation>:attachments  | hash | gateway | agents  | ttl (4)  |
| rd:{shard}:mem:<conversation>:work         | hash | agents  | agents  | a day    |
| rd:{shard}:mem:<conversation>:visit        | str  | gateway | gateway | ttl (1)  |
| rd:{0}:workers                             | zset | workers | status  | silence  |
| rd:{0}:controls                            | hash | operator| workers | never    |
| rd:{0}:jobs                                | zset | all     | operator| silence  |
| rd:person:<tenant>/<assistant>:<digest>    | str  | manager | manager | ttl (5)  |
| rd:person:<tenant>/<assistant>:<digest>:style | str | manager | manager | ttl (5) |
| rd:person:<tenant>/<assistant>:<digest>:pauses | zset | manager | gateway | ttl  |
| rd:thread:<tenant>/<assistant>:<hash>      | str  | gateway | gateway | ttl      |
| rd:keys                                    | hash | keys    | gateway | never    |
| rd:keys:links                              | str  | gateway | gateway | never    |
| rd:keys:handover                           | str  | gateway | gateway | never    |
| rd:handover:<name>                         | str  | gateway | gateway | 7 days   |
| rd:handover:<name>:sent                    | hash | gateway | gateway | 7 days   |
| rd:keys:uses                               | hash | gateway | console | never    |
| rd:verified:<tenant>/<assistant>           | str  | gateway | agents  | never    |
| rd:languages:<tenant>/<assistant>          | str  | search  | agents  | never    |
| rd:{console}:code:<hash>                   | str  | console | gateway | minutes  |
| rd:{console}:session:<hash>                | hash | gateway | gateway | hours    |
| rd:{console}:person:<hash>                 | set  | gateway | gateway | hours    |
| rd:{webhooks}:due                          | zset | gateway | gateway | when sent |
| rd:{webhooks}:deliveries                   | hash | gateway | gateway | when sent |
| rd:{webhooks}:dead                         | hash | gateway | operator| retried  |
| rd:{webhooks}:told:<event>                 | str  | gateway | gateway | 90 days  |
| rd:{visitor_mail}:<as of webhooks>         |      | gateway | gateway |          |
| rd:rate:{owner}:<limit>                    | hash | gateway | gateway | when full|
| rd:rate:{owner}:once/<hash>                | str  | gateway | gateway | minutes  |
| rd:push:{channel/<conversation>}:about     | hash | gateway | gateway | ttl      |
| rd:push:{channel/<conversation>}:open      | zset | gateway | gateway | ttl      |
| rd:push:{channel/<conversation>}:post:<id> | hash | gateway | gateway | ttl      |
| rd:push:{channel/<conversation>}:words     | set  | gateway | gateway | ttl      |
| rd:push:<channel>:token:<token>            | str  | gateway | gateway | ttl      |
| rd:push:<channel>:claim:<hash>             | str  | gateway | gateway | a day    |
| rd:push:<channel>:pace:<call>              | str  | gateway | gateway | its wait |
| rd:push:<channel>:duty:<what>              | str  | gateway | gateway | seconds  |
| rd:cache:<tenant>/<assistant>:<hash>       | str  | agents  | agents  | ttl      |
| rd:limit:<model>                           | hash | agents  | agents  | ttl      |
| rd:speed:<model>:<day>                     | hash | agents  | gateway | 8 days   |
| rd:{shard}:budget:<question>               | hash | agents  | agents  | ttl (2)  |
| rd:budget:<tenant>:<day>                   | hash | agents  | agents  | two days |

(1) Minutes, until the first question of the session. (2) An hour; only numbers. (4) After the last
read: the documents that a user attached to this conversation. (5) After the last use: the language,
or the answer style, that a user chose.

`kept` contains the payload of a message that waits for information or an approval, and the message
that claimed it. `gateway` includes the chat channels. `receipts` contains the tool calls with side
effects (see `memory.receipts`). `calls` contains the paid model calls of the running message, for
redelivered envelopes; it is deleted when the message ends. `shared` contains model answers that
other conversations may reuse. They are found through `rd:cache`, which contains no text. `shared`
is erased with the conversation that paid for the answers. `work` contains interim results and
reports that are too large for envelopes (see `memory.work_store`). `threads` contains the digests
of the `rd:thread` keys of the conversation. `visit` is the session. It survives `clear_all`,
because the visitor continues the conversation. `workers` contains the live processes by the time of
their last announcement (ms), `controls` contains the operators' instructions to them, and `jobs`
contains the failures of background jobs. All three are in the first shard.
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
    receipts: str
    feedback: str
    threads: str
    shared: str
    visit: str
    kept: str
    attachments: str
    work: str

    @property
    def all(self) -> tuple[str, ...]:
        """Every key that an erasure deletes."""
        return (
            self.history,
            self.summary,
            self.preferences,
            self.pause,
            self.statistics,
            self.calls,
            self.receipts,
            self.feedback,
            self.threads,
            self.shared,
            self.kept,
            self.attachments,
            self.work,
        )


def conversation_keys(question: Question, shards: int) -> ConversationKeys:
    """Return the keys of the question's conversation."""
    return _keys(question.conversation, shards)


def workers_key() -> str:
    """Return the key of the live worker processes, which is in the first shard."""
    return f"rd:{shard_tag(0)}:workers"


def job_reports_key() -> str:
    """Return the key of the reports on background jobs, which is in the first shard."""
    return f"rd:{shard_tag(0)}:jobs"


def controls_key() -> str:
    """Return the key of the instructions to worker processes, which is in the first shard."""
    return f"rd:{shard_tag(0)}:controls"


def cache_key(tenant: str, assistant: str, content_hash: str) -> str:
    """Return the key that refers to a shared answer."""
    return f"rd:cache:{in_key(tenant)}/{in_key(assistant)}:{in_key(content_hash)}"


def thread_key(tenant: str, assistant: str, digest: str) -> str:
    """Return the key that maps the digest of a client's history to its conversation."""
    return f"rd:thread:{in_key(tenant)}/{in_key(assistant)}:{in_key(digest)}"


def api_keys_key() -> str:
    """Return the Redis key under which HTTP API keys are stored."""
    return "rd:keys"


def person_key(tenant: str, assistant: str, person: str) -> str:
    """Return the key of a person's language; `person` is a digest of their id in the channel."""
    return f"rd:person:{in_key(tenant)}/{in_key(assistant)}:{in_key(person)}"


def person_style_key(tenant: str, assistant: str, person: str) -> str:
    """Return the key of a person's preferred answer style."""
    return f"{person_key(tenant, assistant, person)}:style"


def person_pauses_key(tenant: str, assistant: str, person: str) -> str:
    """Return the key of the conversations with a pause for a person, by time."""
    return f"{person_key(tenant, assistant, person)}:pauses"


def key_uses_key() -> str:
    """Return the key of the last use times of API keys."""
    return "rd:keys:uses"


def link_secret_key() -> str:
    """Return the Redis key of the secret that signs source links."""
    return "rd:keys:links"


def handover_secret_key() -> str:
    """Return the Redis key of the secret that signs reply addresses."""
    return "rd:keys:handover"


def handed_over_key(name: str) -> str:
    """Return the key that stores what was handed over from a conversation, and the visitor's
    address.
    """
    return f"rd:handover:{name}:sent"


def reply_address_key(name: str) -> str:
    """Return the key of an email reply address."""
    return f"rd:handover:{in_key(name)}"


def rate_key(owner: str, name: str) -> str:
    """Return the key of an owner's token bucket for one limit; all keys of one owner share a
    slot.
    """
    return f"rd:rate:{{{in_key(owner)}}}:{in_key(name)}"


def push_key(channel: str, *parts: str) -> str:
    """Return a key of a chat channel that does not belong to a conversation."""
    return ":".join(("rd:push", *(in_key(part) for part in (channel, *parts))))


def push_conversation_key(channel: str, question: Question, *parts: str) -> str:
    """Return a key of a chat conversation; all keys of one conversation share a slot."""
    named = "/".join(in_key(part) for part in (channel, *question.conversation))
    return ":".join((f"rd:push:{{{named}}}", *(in_key(part) for part in parts)))


def limit_key(model: str) -> str:
    """Return the key of a model's token buckets."""
    return f"rd:limit:{in_key(model)}"


def speed_key(model: str, day: str) -> str:
    """Return the key of a model's output tokens and time on a day."""
    return f"rd:speed:{in_key(model)}:{in_key(day)}"


def question_budget_key(question: Question, shards: int) -> str:
    """Return the key of the amounts that a question has used, in the slot of its conversation."""
    name = "/".join(in_key(part) for part in (*question.conversation, question.message_id))
    return f"rd:{shard_tag(shard_of(question.conversation, shards))}:budget:{name}"


def tenant_budget_key(tenant: str, day: str) -> str:
    """Return the key of the amounts that a tenant has used on a day (ISO date)."""
    return f"rd:budget:{in_key(tenant)}:{in_key(day)}"


def verified_answers_key(tenant: str, assistant: str) -> str:
    """Return the key of the verified answers of an assistant."""
    return f"rd:verified:{in_key(tenant)}/{in_key(assistant)}"


def document_languages_key(tenant: str, assistant: str) -> str:
    """Return the key of the languages of the documents of an assistant."""
    return f"rd:languages:{in_key(tenant)}/{in_key(assistant)}"


def console_key(kind: str, digest: str) -> str:
    """Return the key of a `code` or `session` of the console."""
    return f"rd:{{console}}:{kind}:{digest}"


def delivery_key(queue: str, kind: str) -> str:
    """Return a key of a delivery queue: `due`, `deliveries`, `dead`, or `told:<event>`."""
    return f"rd:{{{queue}}}:{kind}"


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
        receipts=f"{stem}:receipts",
        feedback=f"{stem}:feedback",
        threads=f"{stem}:threads",
        shared=f"{stem}:shared",
        visit=f"{stem}:visit",
        kept=f"{stem}:kept",
        attachments=f"{stem}:attachments",
        work=f"{stem}:work",
    )
