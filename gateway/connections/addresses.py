"""Groups network addresses by their probable owner: one IPv6 network belongs to one customer."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

IPV6_PREFIX = 64
"""The smallest network that providers assign: its owner has every address of it."""

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@lru_cache(maxsize=8192)
def group_address(host: str) -> str:
    """Return the group of a host: an IPv4 address, also when mapped; the /64 of an IPv6 address.

    Any other text, such as a name, is its own group.
    """
    address = _parse(host)
    if address is None:
        return host[:64]
    if address.version == 6:
        return str(ipaddress.ip_network((int(address), IPV6_PREFIX), strict=False))
    return str(address)


class TrustedNetworks:
    """The addresses of proxies, which forward the requests of many people."""

    def __init__(self, networks: Sequence[str] = ()) -> None:
        self._networks: list[_Network] = [ipaddress.ip_network(one) for one in networks]

    def __contains__(self, host: str) -> bool:
        if not self._networks:
            return False
        address = _parse(host)
        return address is not None and any(address in network for network in self._networks)


def _parse(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        # The scope of a link-local address, as in fe80::1%eth0, does not identify its owner.
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped
