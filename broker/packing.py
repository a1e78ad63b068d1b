"""Writes commands with the C packer: a batch of settlements has thousands of arguments."""

from typing import TYPE_CHECKING, Any

import hiredis
from redis.asyncio import Connection, SSLConnection, UnixDomainSocketConnection

if TYPE_CHECKING:
    from redis.asyncio import ConnectionPool


class _Packing:
    """Overrides how a connection packs; a command of several words is left to redis-py."""

    def pack_command(self, *args: Any) -> list[bytes]:
        name = args[0]
        if (" " if isinstance(name, str) else b" ") in name:
            packed: list[bytes] = super().pack_command(*args)  # type: ignore[misc] # of the connection
            return packed
        return [hiredis.pack_command(args)]


class _PackingConnection(_Packing, Connection):
    """Over TCP."""


class _PackingSSLConnection(_Packing, SSLConnection):
    """Over TLS."""


class _PackingUnixConnection(_Packing, UnixDomainSocketConnection):
    """Over a unix socket."""


_PACKING: dict[type, type] = {
    Connection: _PackingConnection,
    SSLConnection: _PackingSSLConnection,
    UnixDomainSocketConnection: _PackingUnixConnection,
}


def pack_fast(pool: "ConnectionPool") -> None:
    """Let the pool's connections, none of which is open yet, use the C packer."""
    pool.connection_class = _PACKING.get(pool.connection_class, pool.connection_class)
