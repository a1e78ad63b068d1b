"""Generates the access control list of Redis, users.acl: `python -m deploy.redis_access.users`.

Each part of the product gets a user that may run the commands that the product sends and no others,
on the keys that the part needs. No user may empty, reconfigure, stop or copy a server: CONFIG,
FLUSHALL, FLUSHDB, KEYS, SCAN, DEBUG, MODULE, SCRIPT, SHUTDOWN, REPLICAOF, MIGRATE, MONITOR, ACL and
the rest.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("users.acl")
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
    """One user of Redis: the key patterns and commands that it may use."""

    name: str
    keys: tuple[str, ...]
    commands: tuple[str, ...] = COMMANDS

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules after the password in an access control list."""
        keys = (f"~{pattern}" for pattern in self.keys)
        return ("resetchannels", *keys, "-@all", *(f"+{name}" for name in self.commands))

    def draw(self, password: str) -> str:
        """Return the user's line of an access control list."""
        return " ".join(("user", self.name, "on", f">{password}", *self.rules))


_SHARDS = ("rd:{*", "rd:shards")
WORKER = RedisUser("refdesk-worker", (*_SHARDS, "rd:budget:*", "rd:cache:*", "rd:limit:*"))
"""No access to keys of the HTTP channel, rates, and posts of chat channels."""
GATEWAY = RedisUser("refdesk-gateway", ("rd:*",))
CHAT = RedisUser("refdesk-chat", (*_SHARDS, "rd:push:*", "rd:rate:*"))
OPERATOR = RedisUser("refdesk-operator", ("rd:*",))
"""Runs `refdesk keys`, `status`, `trace`, `dead` and `ingest`."""
SCALER = RedisUser("refdesk-keda", ("rd:{*}:stream:*",), ("auth", "hello", "ping", "info", "xlen"))
USERS = (WORKER, GATEWAY, CHAT, OPERATOR, SCALER)


def draw_users() -> str:
    """Return users.acl: nobody is let in without a name and a password.

    Redis allows no comments in it, and takes it with `--aclfile`.
    """
    lines = [user.draw(f"PASSWORD-OF-{user.name}") for user in USERS]
    return "\n".join(("user default off", *lines)) + "\n"


def main() -> int:
    """Write users.acl."""
    FILE.write_text(draw_users(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
