"""Counts open connections, in total and per address, and decides which ones to admit.

When a limit is reached, the connection that has waited longest without a complete request is
closed: half-open and idle connections are closed before any connection with a request in progress.
A new connection is rejected only if all connections are busy. Even then, a few more are admitted
for health probes.
"""

import ipaddress
import sys
import time
from collections import OrderedDict
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

import structlog

from gateway.connections.limits import PROBE_CONNECTIONS, ConnectionLimits

IPV6_PREFIX = 64
"""The length of the prefix that identifies an IPv6 client. Providers assign no smaller network to a
customer, who can use every address in it.
"""

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
LOG_SECONDS = 60.0

log = structlog.get_logger("gateway")


class TrustedNetworks:
    """The addresses of proxies, which forward the requests of many people."""

    def __init__(self, networks: Sequence[str] = ()) -> None:
        self._networks: list[_Network] = [ipaddress.ip_network(network) for network in networks]

    def __contains__(self, host: str) -> bool:
        if not self._networks:
            return False
        address = _parse(host)
        return address is not None and any(address in network for network in self._networks)


class RareLog:
    """Logs one warning per minute for each reason, with the number of cases since the last one."""

    def __init__(self, event: str) -> None:
        self._event = event
        self._counts: dict[str, int] = {}
        self._written_at: dict[str, float] = {}

    def count(self, reason: str, **fields: object) -> None:
        """Count a case of a reason, which is a slug from a small set; log each reason at most once
        a minute.
        """
        self._counts[reason] = self._counts.get(reason, 0) + 1
        now = time.monotonic()
        if now - self._written_at.get(reason, -LOG_SECONDS) < LOG_SECONDS:
            return
        self._written_at[reason] = now
        log.warning(self._event, reason=reason, times=self._counts.pop(reason), **fields)


class Admission(StrEnum):
    """The decision about a new connection."""

    ADMITTED = "admitted"
    PROBES_ONLY = "probes_only"
    REFUSED = "refused"


class Connection(Protocol):
    """An open connection."""

    def evict(self) -> None:
        """Close immediately; `ConnectionRegistry.release` is called afterwards."""
        ...


class _Pool:
    """Connections that share a limit; idle ones are in the order in which they became idle."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._idle: OrderedDict[Connection, None] = OrderedDict()
        self.members: set[Connection] = set()

    @property
    def has_room(self) -> bool:
        return len(self.members) < self._most

    @property
    def longest_idle(self) -> Connection | None:
        return next(iter(self._idle), None)

    def mark_busy(self, connection: Connection) -> None:
        self._idle.pop(connection, None)

    def mark_idle(self, connection: Connection) -> None:
        self._idle[connection] = None
        self._idle.move_to_end(connection)

    def remove(self, connection: Connection) -> None:
        self.members.discard(connection)
        self._idle.pop(connection, None)


class ConnectionRegistry:
    """Lists the open connections of a server. Trusted proxies have no limit per address."""

    def __init__(self, limits: ConnectionLimits, *, trusted_proxies: Sequence[str] = ()) -> None:
        self.limits = limits
        self._trusted = TrustedNetworks(trusted_proxies)
        self._admitted = _Pool(limits.connections)
        self._probing = _Pool(PROBE_CONNECTIONS)
        self._groups: dict[str, _Pool] = {}
        self._places: dict[Connection, tuple[str, _Pool, _Pool]] = {}
        self._refusals = RareLog("connections_refused")
        self._evictions = RareLog("connections_evicted")

    def __len__(self) -> int:
        return len(self._places)

    def admit(self, connection: Connection, host: str) -> Admission:
        """Count a new connection, unless it is rejected. It is idle until `mark_busy` is called."""
        name = group_address(host)
        limited = host not in self._trusted
        most = self.limits.connections_per_address if limited else sys.maxsize
        group = self._groups.get(name, _Pool(most))
        if not self._make_room(group, "per_address"):
            self._refusals.count("per_address", setting="HTTP_CONNECTIONS_PER_ADDRESS")
            return Admission.REFUSED
        if self._make_room(self._admitted, "total"):
            self._add(connection, name, group, self._admitted)
            return Admission.ADMITTED
        if self._make_room(self._probing, "probes"):
            self._add(connection, name, group, self._probing)
            return Admission.PROBES_ONLY
        self._refusals.count("total", setting="HTTP_CONNECTIONS")
        return Admission.REFUSED

    def mark_busy(self, connection: Connection) -> None:
        """Record that a request of the connection is being processed."""
        for pool in self._pools(connection):
            pool.mark_busy(connection)

    def mark_idle(self, connection: Connection) -> None:
        """Record that the connection is now waiting for a request."""
        for pool in self._pools(connection):
            pool.mark_idle(connection)

    def release(self, connection: Connection) -> None:
        """Remove a connection; do nothing if it is unknown."""
        for pool in self._pools(connection):
            pool.remove(connection)
        name, group, _ = self._places.pop(connection, ("", None, None))
        if group is not None and not group.members:
            self._groups.pop(name, None)

    def _pools(self, connection: Connection) -> Sequence[_Pool]:
        place = self._places.get(connection)
        return () if place is None else place[1:]

    def _make_room(self, pool: _Pool, reason: str) -> bool:
        """Return whether another connection fits, possibly after closing the longest idle one."""
        oldest = pool.longest_idle
        if pool.has_room or oldest is None:
            return pool.has_room
        self.release(oldest)
        self._evictions.count(reason)
        oldest.evict()
        return True

    def _add(self, connection: Connection, name: str, group: _Pool, pool: _Pool) -> None:
        self._groups[name] = group
        self._places[connection] = (name, group, pool)
        for tracked in (group, pool):
            tracked.members.add(connection)
            tracked.mark_idle(connection)


@lru_cache(maxsize=8192)
def group_address(host: str) -> str:
    """Return the group of a host: an IPv4 address (also if mapped to IPv6), or the /64 of an IPv6
    address.

    Any other text, such as a name, is a separate group.
    """
    address = _parse(host)
    if address is None:
        return host[:64]
    if address.version == 6:
        return str(ipaddress.ip_network((int(address), IPV6_PREFIX), strict=False))
    return str(address)


def _parse(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        # The scope of a link-local address, as in fe80::1%eth0, does not identify its owner.
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped
