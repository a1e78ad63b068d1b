"""Resolves hosts to addresses that a crawl may open.

A page of the public web may not lead into the network in which this process runs: every connection
goes to an address that was checked, so that a name which resolves differently the next time opens
nothing either.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable

from outbound.errors import AddressRefusedError, FetchError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Returns the addresses of a host; raises `OSError`."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
"""IPv4 addresses in a form of IPv6 that is out of use, and that systems still connect to."""
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        ("168.63.129.16", "169.254.169.254", "192.0.0.192", "100.100.100.200", "fd00:ec2::254"),
    )
)
"""Where machines of Azure, of AWS and most others, of Oracle and of Alibaba find credentials."""


async def resolve_by_system(host: str, port: int) -> list[str]:
    """Return the addresses that the system knows for a host; raise `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
    )
    return [str(place[0]) for *_, place in found]


class GuardedResolver:
    """Resolves the hosts of one crawl; private addresses only if its start has one."""

    def __init__(self, resolve: Resolve = resolve_by_system) -> None:
        self._resolve = resolve
        self._private_host: str | None = None

    async def start_at(self, host: str, port: int) -> None:
        """Allow private addresses for this host if all its addresses are private."""
        found = await self._find(host, port)
        if not any(is_public(address) for address in found):
            self._private_host = host

    async def choose(self, host: str, port: int) -> str:
        """Return an address of a host; raise `AddressRefusedError` or `FetchError`."""
        found = await self._find(host, port)
        for address in found:
            if is_public(address) or (host == self._private_host and is_ordinary(address)):
                return address
        raise AddressRefusedError(
            f"expected a public address, found {host} at {found[0]}, which is private; "
            "a crawl opens private addresses only if it starts at one"
        )

    async def _find(self, host: str, port: int) -> list[str]:
        try:
            found = await self._resolve(host, port)
        except OSError as error:
            raise FetchError(f"the host {host} is not known: {error.strerror}") from error
        if not found:
            raise FetchError(f"the host {host} has no address")
        return found


def is_public(address: str) -> bool:
    """Return whether an address is one of the public internet, whichever way it is written."""
    inner = _unwrap(ipaddress.ip_address(address.partition("%")[0]))
    if isinstance(inner, ipaddress.IPv4Address):
        is_local = inner in _PROTOCOLS
    else:
        is_local = inner.is_site_local
    return inner.is_global and not (inner.is_multicast or is_local or inner in _METADATA)


def is_ordinary(address: str) -> bool:
    """Return whether an address may be that of a web server in a private network.

    Link-local addresses and a few others are not: cloud machines find their credentials there.
    """
    inner = _unwrap(ipaddress.ip_address(address.partition("%")[0]))
    is_elsewhere = inner.is_link_local or inner.is_multicast or inner.is_unspecified
    return not is_elsewhere and inner not in _METADATA


def _unwrap(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64 or address in _COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
