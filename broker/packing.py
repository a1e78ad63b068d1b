"""Writes commands with the C packer: a batch of settlements has thousands of arguments."""

from typing import TYPE_CHECKING, Any

import hiredis
from redis.asyncio import Connection, SSLConnection, UnixDomainSocketConnection

if TYPE_CHECKING:
    from redis.asyncio import ConnectionPool


class _Packing:
    """Overrides how a connection packs and sends; what is out of the ordinary is redis-py's."""

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Write at once; only when the socket takes no more is there something to wait for.

        redis-py waits for every write with a time limit, which costs a task each.
        """
        connection: Any = self
        due = check_health and connection.health_check_interval
        if due or not connection.is_connected or isinstance(command, str):
            await super().send_packed_command(command, check_health)  # type: ignore[misc] # of the connection
            return
        parts = [command] if isinstance(command, bytes) else command
        writer = connection._writer  # noqa: SLF001 - this class is mixed into that of redis-py
        writer.write(b"".join(parts))
        if writer.transport.get_write_buffer_size():
            await super().send_packed_command([], check_health=False)  # type: ignore[misc] # of the connection

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


def is_open(connection: Any) -> bool:
    """Return whether a connection is made and was not ended by the server."""
    reader = connection._reader  # noqa: SLF001 - redis-py tells it only by reading, which may wait
    return reader is not None and not reader.at_eof()


def pack_fast(pool: "ConnectionPool") -> None:
    """Let the pool's connections, none of which is open yet, use the C packer."""
    pool.connection_class = _PACKING.get(pool.connection_class, pool.connection_class)
