"""Resolves hosts to IP addresses that a crawl may open.

Pages of the public web must not lead into the network of this process. Every connection goes to a
checked IP address, which also prevents DNS rebinding.
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
"""Deprecated IPv4-compatible IPv6 addresses, which systems still connect to."""
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        ("168.63.129.16", "169.254.169.254", "192.0.0.192", "100.100.100.200", "fd00:ec2::254"),
    )
)
"""Metadata services with credentials: Azure, AWS and most others, Oracle, Alibaba."""


async def resolve_by_system(host: str, port: int) -> list[str]:
    """Resolve a host with the system resolver; raises `OSError`."""
    results = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
    )
    return [str(socket_address[0]) for *_, socket_address in results]


class GuardedResolver:
    """Resolves the hosts in a crawl; private addresses are allowed only if the crawl starts at a
    private address.
    """

    def __init__(self, resolve: Resolve = resolve_by_system) -> None:
        self._resolve = resolve
        self._private_host: str | None = None

    async def start_at(self, host: str, port: int) -> None:
        """Allow private addresses for this start host if all its addresses are private."""
        addresses = await self._find(host, port)
        if not any(is_public(address) for address in addresses):
            self._private_host = host

    async def choose(self, host: str, port: int) -> str:
        """Return an allowed address of a host; raises `AddressRefusedError` or `FetchError`."""
        addresses = await self._find(host, port)
        for address in addresses:
            if is_public(address) or (host == self._private_host and is_ordinary(address)):
                return address
        raise AddressRefusedError(
            f"{host} has the private address {addresses[0]}; a crawl opens private addresses "
            "only if it starts at a private address"
        )

    async def _find(self, host: str, port: int) -> list[str]:
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:
            raise FetchError(f"the host {host} cannot be resolved: {error.strerror}") from error
        if not addresses:
            raise FetchError(f"the host {host} has no address")
        return addresses


def is_public(address: str) -> bool:
    """Return whether an address is public; unwraps IPv4 addresses inside IPv6."""
    inner = _unwrap(ipaddress.ip_address(address.partition("%")[0]))
    if isinstance(inner, ipaddress.IPv4Address):
        is_local = inner in _PROTOCOLS
    else:
        is_local = inner.is_site_local
    return inner.is_global and not (inner.is_multicast or is_local or inner in _METADATA)


def is_ordinary(address: str) -> bool:
    """Return whether an address is a normal host address in a private network.

    Link-local, multicast, unspecified, and metadata addresses are not; metadata services return
    credentials.
    """
    inner = _unwrap(ipaddress.ip_address(address.partition("%")[0]))
    is_elsewhere = inner.is_link_local or inner.is_multicast or inner.is_unspecified
    return not is_elsewhere and inner not in _METADATA


def _unwrap(address: Address) -> Address:
    """Return the IPv4 address inside an IPv6 address, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64 or address in _COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
