"""Generates the access control list for Redis: `python -m deploy.generate.redis_users`.

Each part of the product gets a user that can run only the commands that the product sends, on the
keys that the part needs. The list requires Redis 7, which separates read and write permissions.
Only the user for backups can list and copy keys (SCAN, DUMP, RESTORE). No user can empty,
reconfigure, or stop a server with CONFIG, FLUSHALL, FLUSHDB, KEYS, DEBUG, MODULE, SCRIPT, SHUTDOWN,
REPLICAOF, MIGRATE, MONITOR, ACL, and similar commands.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent.parent / "redis_users.acl"
COMMANDS = (
    # The connection.
    "auth", "hello", "ping", "select", "info", "time", "cluster|slots",
    # Streams.
    "xack", "xadd", "xautoclaim", "xclaim", "xdel", "xgroup", "xinfo", "xlen", "xpending", "xrange",
    "xread", "xreadgroup", "xrevrange",
    # All other stored data.
    "blpop", "del", "exists", "expire", "get", "getex", "hdel", "hexists", "hget", "hgetall",
    "hincrby", "hincrbyfloat", "hkeys", "hlen", "hmget", "hset", "hsetnx", "hstrlen", "hvals",
    "lindex", "llen", "lrange", "lrem", "lset", "ltrim", "pexpire", "pexpireat", "pttl", "rpush",
    "sadd", "set", "smembers", "srem", "ttl", "zadd", "zcard", "zrange", "zrangebyscore", "zrem",
    "zremrangebyrank", "zremrangebyscore", "zrevrange", "zscore",
    # Scripts and transactions.
    "eval", "evalsha", "multi", "exec", "discard",
    # Removes forgotten text from the append-only file.
    "bgrewriteaof",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RedisUser:
    """A Redis user, with the key patterns and commands that it can use."""

    name: str
    keys: tuple[str, ...]
    commands: tuple[str, ...] = COMMANDS
    selectors: tuple[str, ...] = ()
    """Additional keys, each group with the only commands that may be used on its keys."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that follow the password in an access control list."""
        keys = (key if key.startswith("%") else f"~{key}" for key in self.keys)
        commands = (f"+{name}" for name in self.commands)
        return ("resetchannels", *keys, "-@all", *commands, *self.selectors)

    def draw(self, password: str) -> str:
        """Return the line for the user in an access control list."""
        return " ".join(("user", self.name, "on", f">{password}", *self.rules))


_QUESTIONS = tuple(
    f"rd:{{*}}:{kind}"
    for kind in (
        "stream:*", "deadlines", "open", "pace", "delayed", "parked", "notices", "alarms", "duty",
        "pulse", "dead", "letters", "files", "record:*", "journal:*", "frames:*", "order:*",
        "conversation:*", "asked:*", "tombstone:*", "named:*", "results:*",
    )
)  # fmt: skip
"""The keys in `broker.keys`. Every part submits, follows, and ends questions, and processes due
questions, so that questions end whichever process dies.
"""
_READS_SHARDS = ("%R~rd:shards",)
_CONVERSATIONS = tuple(
    f"rd:{{*}}:mem:*:{kind}"
    for kind in (
        "history", "summary", "preferences", "pause", "kept", "statistics", "calls", "receipts",
        "feedback", "threads", "shared", "attachments", "work",
    )
)  # fmt: skip
"""The keys in `memory.key_names` that an erasure deletes."""
_PROCESS = ("rd:{0}:workers", "rd:{0}:jobs", "%R~rd:{0}:controls")
"""The keys for the presence of worker processes, and for the instructions of operators to them."""
WORKER = RedisUser(
    "refdesk-worker",
    (
        *_QUESTIONS, *_CONVERSATIONS, *_PROCESS, "rd:{*}:budget:*", "rd:{*}:outcomes:*",
        "rd:parcel:*", "%R~rd:verified:*", "rd:{webhooks}:*", "rd:budget:*", "rd:cache:*",
        "rd:languages:*",
        "rd:limit:*", "rd:person:*", "rd:push:ingestion:*",
    ),
    selectors=("(+get +set ~rd:shards)",),
)  # fmt: skip
"""Initializes a new Redis, and ingests sources on schedule. It has no access to HTTP API keys,
visitor sessions, rate limits, and chat posts.
"""
READER = RedisUser("refdesk-reader", (*_QUESTIONS, *_READS_SHARDS, *_PROCESS, "rd:parcel:*"))
"""Reads documents for an ingestion. It has no access to the memory of conversations, or to the
budgets, limits, and paid answers of models.
"""
WRITER = RedisUser(
    "refdesk-writer",
    (
        *_QUESTIONS, *_READS_SHARDS, *_PROCESS, "rd:parcel:*", "rd:paid:*", "rd:limit:*",
        "rd:languages:*",
    ),
)  # fmt: skip
"""Embeds and writes documents for an ingestion. It has no access to the memory of conversations."""
GATEWAY = RedisUser(
    "refdesk-gateway",
    (
        *_QUESTIONS, *_READS_SHARDS, *_CONVERSATIONS, "rd:{*}:mem:*:visit", "rd:{*}:outcomes:*",
        "%R~rd:keys", "rd:keys:links", "rd:keys:uses", "rd:keys:handover", "rd:handover:*",
        "rd:rate:*",
        "rd:thread:*", "rd:push:*", "rd:{0}:jobs",
        "rd:{console}:*", "rd:{webhooks}:*", "rd:verified:*", "rd:person:*",
    ),
    selectors=("(+hset ~rd:keys)",),
)  # fmt: skip
"""Reads HTTP API keys, and writes those that owners create in the console, but cannot delete any.
It has no access to the budgets, limits, and answers of models, or to instructions for workers.
"""
CHAT = RedisUser(
    "refdesk-chat",
    (
        *_QUESTIONS, *_READS_SHARDS, "rd:{*}:mem:*:feedback", "rd:{*}:outcomes:*", "rd:push:*",
        "rd:rate:*", "rd:keys:handover", "rd:handover:*", "rd:{0}:jobs",
    ),
)  # fmt: skip
"""Records ratings together with the answers. It has no access to the rest of the memory of
conversations, or to documents attached to them.
"""
OPERATOR = RedisUser("refdesk-operator", ("rd:*",))
"""Runs `refdesk keys`, `status`, `trace`, `dead` and `ingest`."""
SCALER = RedisUser("refdesk-keda", ("rd:{*}:stream:*",), ("auth", "hello", "ping", "info", "xlen"))
BACKUP = RedisUser(
    "refdesk-backup",
    ("rd:*",),
    (*COMMANDS, "scan", "dump", "restore", "client|pause", "client|unpause"),
)
"""Runs `refdesk backup` and `restore`; the only user that may list and copy keys."""
USERS = (WORKER, READER, WRITER, GATEWAY, CHAT, OPERATOR, BACKUP, SCALER)


def draw_users() -> str:
    """Return the list; access requires a user name and a password.

    Redis does not allow comments in this file, which is passed as `--aclfile`.
    """
    lines = [user.draw(f"PASSWORD-OF-{user.name}") for user in USERS]
    return "\n".join(("user default off", *lines)) + "\n"


def main() -> int:
    """Write redis_users.acl."""
    FILE.write_text(draw_users(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
