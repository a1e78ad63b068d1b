"""Names visitors by the network they come from, and knows what one of them may use of a key.

A visitor is an address: IPv4 as it is, also where it is written as IPv6, and IPv6 by its /64, which
one line has to itself. Whoever has many /64 has them in one /48: that is the visitor's site, which
has limits of its own. What is stored of a network is a keyed hash.
"""

import hashlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gateway.api_keys import Key
from gateway.port import Demand

VISITOR_BITS = 64
SITE_BITS = 48
SITE_FACTOR = 4
"""A site may use four times what a visitor may."""
SITE_SHARE_FACTOR = 2
"""The share of a key that a site may use is twice a visitor's."""
UNKNOWN = "unknown"
"""All whose address cannot be read are one visitor."""
DIGEST_BYTES = 12
KEY_BYTES = 64
PERSON = b"refdesk-visitor"
"""Keeps these hashes apart from others under the same secret."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who comes: hashes of the network, and of the site where it is a part of one."""

    id: str
    site: str = ""

    @property
    def owner(self) -> str:
        """What the limits of this visitor that concern no key are kept under."""
        return f"visitor/{self.site or self.id}"


@dataclass(frozen=True, slots=True)
class VisitorLimits:
    """What one visitor may use of a public key; a `share` of the key's own limits at most."""

    requests_per_minute: int = 120
    questions_per_minute: int = 30
    questions_per_day: int = 500
    openings_per_minute: int = 30
    openings_per_day: int = 500
    failures_per_minute: int = 30
    share: float = 0.25


class Visitors:
    """Knows visitors again; `secret` keys the hashes, the same for all processes."""

    def __init__(self, secret: bytes, limits: VisitorLimits | None = None) -> None:
        self._secret = hashlib.sha256(secret).digest()[:KEY_BYTES]
        self.limits = VisitorLimits() if limits is None else limits

    def of(self, address: str) -> Visitor:
        """Return the visitor at an address."""
        network, site = networks_of(address)
        return Visitor(self._digest(network), self._digest(site) if site else "")

    def requests(self, visitor: Visitor, key: Key) -> list[Demand]:
        """Return the demands of one request."""
        most = self._at_most(self.limits.requests_per_minute, key.requests_per_minute)
        site = self._site(most, key.requests_per_minute)
        return _demands("requests", visitor, (most, None), (site, None))

    def openings(self, visitor: Visitor) -> list[Demand]:
        """Return the demands of one conversation that is opened."""
        most = (self.limits.openings_per_minute, self.limits.openings_per_day)
        site = (most[0] * SITE_FACTOR, most[1] * SITE_FACTOR)
        return _demands("openings", visitor, most, site)

    def questions(self, visitor: Visitor, key: Key) -> list[Demand]:
        """Return the demands of one question; the key's own limit of a visitor goes first."""
        day = key.visitor_questions_per_day
        if day is None:
            day = self._at_most(self.limits.questions_per_day, key.questions_per_day)
        minute = self.limits.questions_per_minute
        site = (minute * SITE_FACTOR, self._site(day, key.questions_per_day))
        return _demands("questions", visitor, (minute, day), site)

    def failures(self, visitor: Visitor) -> list[Demand]:
        """Return the demands of one request with a key or a token that is not good."""
        most = self.limits.failures_per_minute
        return _demands("failures", visitor, (most, None), (most * SITE_FACTOR, None))

    def _at_most(self, limit: int, of_key: int | None) -> int:
        return limit if of_key is None else min(limit, max(1, int(of_key * self.limits.share)))

    def _site(self, limit: int, of_key: int | None) -> int:
        """Return the limit of a site, which is never below that of one visitor in it."""
        if of_key is None:
            return limit * SITE_FACTOR
        share = int(of_key * self.limits.share * SITE_SHARE_FACTOR)
        return max(limit, min(limit * SITE_FACTOR, share))

    def _digest(self, network: str) -> str:
        made = hashlib.blake2b(
            network.encode(), key=self._secret, digest_size=DIGEST_BYTES, person=PERSON
        )
        return made.hexdigest()


def networks_of(address: str) -> tuple[str, str]:
    """Return the network of a visitor, and the site that it is a part of, if any."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return UNKNOWN, ""
    if isinstance(found, ipaddress.IPv6Address):
        mapped = found.ipv4_mapped
        if mapped is None:
            return _network(found, VISITOR_BITS), _network(found, SITE_BITS)
        found = mapped
    return str(found), ""


def _network(address: ipaddress.IPv6Address, bits: int) -> str:
    return str(ipaddress.IPv6Network((int(address), bits), strict=False))


def _demands(
    what: str,
    visitor: Visitor,
    most: tuple[int | None, int | None],
    site: tuple[int | None, int | None],
) -> list[Demand]:
    """Return the demands on a visitor's limit and on its site's: of a minute, and of a day."""
    told: Sequence[tuple[Literal["visitor", "site"], str, tuple[int | None, int | None]]]
    told = [("visitor", visitor.id, most), ("site", visitor.site, site)]
    return [
        Demand(f"{what}/{name}", minute, day, of=of) for of, name, (minute, day) in told if name
    ]
