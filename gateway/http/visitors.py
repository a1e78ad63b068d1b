"""Identifies visitors by their network, and defines their share of a key's limits.

A visitor is identified by an IPv4 address (also in IPv6-mapped form) or by the /64 prefix of an
IPv6 address, which is normally assigned to one subscriber. A customer with several /64 prefixes
usually gets them from one /48, the visitor's site, which has its own limits. Only a keyed hash of a
network is stored.

The count is shared through Redis. A visitor above the limit is rejected in this process without a
call to Redis, unless their credentials were recently valid in this process, so that somebody who
guesses keys cannot lock out others behind the same address.
"""

import hashlib
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gateway.api_keys import Key
from memory.http_state import Demand, RedisRates, Shortage

VISITOR_BITS = 64
SITE_BITS = 48
SITE_FACTOR = 4
"""The limits of a site are this many times the limits of a visitor."""
SITE_SHARE_FACTOR = 2
"""A site's share of a key is this many times a visitor's share."""
UNKNOWN = "unknown"
"""All callers with an unreadable address count as a single visitor."""
DIGEST_BYTES = 12
KEY_BYTES = 64
PERSON = b"refdesk-visitor"
"""Distinguishes these hashes from other hashes with the same secret."""
MOST_REMEMBERED = 4_096
"""The number of blocked visitors, and of valid credentials, that a process remembers."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """A visitor: the hashes of the network and, if it is part of a site, of the site."""

    id: str
    site: str = ""

    @property
    def owner(self) -> str:
        """The owner of those limits on this visitor that do not depend on a key."""
        return f"visitor/{self.site or self.id}"


@dataclass(frozen=True, slots=True)
class VisitorLimits:
    """The limits on one visitor of a public key, which are at most a `share` of the key's own
    limits.
    """

    requests_per_minute: int = 120
    questions_per_minute: int = 30
    questions_per_day: int = 500
    failures_per_minute: int = 30
    share: float = 0.25


class Visitors:
    """Identifies visitors; `secret` is the key of the hashes, which is the same in all
    processes.
    """

    def __init__(self, secret: bytes, limits: VisitorLimits | None = None) -> None:
        self._secret = hashlib.sha256(secret).digest()[:KEY_BYTES]
        self.limits = VisitorLimits() if limits is None else limits

    def of(self, address: str) -> Visitor:
        """Return the visitor with this address."""
        network, site = networks_of(address)
        return Visitor(self._digest(network), self._digest(site) if site else "")

    def requests(self, visitor: Visitor, key: Key) -> list[Demand]:
        """Return the demands of a request."""
        most = self._at_most(self.limits.requests_per_minute, key.requests_per_minute)
        site = self._site(most, key.requests_per_minute)
        return _demands("requests", visitor, (most, None), (site, None))

    def openings(self, visitor: Visitor) -> list[Demand]:
        """Return the demands of opening a conversation, which has the same limits as a question."""
        most = (self.limits.questions_per_minute, self.limits.questions_per_day)
        site = (most[0] * SITE_FACTOR, most[1] * SITE_FACTOR)
        return _demands("openings", visitor, most, site)

    def questions(self, visitor: Visitor, key: Key) -> list[Demand]:
        """Return the demands of a question, with the key's own limit per visitor first."""
        day = key.visitor_questions_per_day
        if day is None:
            day = self._at_most(self.limits.questions_per_day, key.questions_per_day)
        minute = self.limits.questions_per_minute
        site = (minute * SITE_FACTOR, self._site(day, key.questions_per_day))
        return _demands("questions", visitor, (minute, day), site)

    def failures(self, visitor: Visitor) -> list[Demand]:
        """Return the demands of a request with an invalid key or token."""
        most = self.limits.failures_per_minute
        return _demands("failures", visitor, (most, None), (most * SITE_FACTOR, None))

    def _at_most(self, limit: int, of_key: int | None) -> int:
        return limit if of_key is None else min(limit, max(1, int(of_key * self.limits.share)))

    def _site(self, limit: int, of_key: int | None) -> int:
        """Return the limit of a site, which is never below that of one of its visitors."""
        if of_key is None:
            return limit * SITE_FACTOR
        share = int(of_key * self.limits.share * SITE_SHARE_FACTOR)
        return max(limit, min(limit * SITE_FACTOR, share))

    def _digest(self, network: str) -> str:
        made = hashlib.blake2b(
            network.encode(), key=self._secret, digest_size=DIGEST_BYTES, person=PERSON
        )
        return made.hexdigest()


class FailureLimiter:
    """Counts failures by visitor and by site, which is the larger IPv6 network of the visitor."""

    def __init__(
        self, rates: RedisRates, visitors: Visitors, *, kept: int = MOST_REMEMBERED
    ) -> None:
        self._rates = rates
        self._visitors = visitors
        self._kept = kept
        self._blocked: OrderedDict[str, tuple[float, Shortage]] = OrderedDict()
        self._valid: OrderedDict[str, None] = OrderedDict()

    def find_block(self, visitor: Visitor, credential: str) -> Shortage | None:
        """Return the limit that blocks this credential without checking it, or None."""
        if credential in self._valid:
            return None
        for name in filter(None, (visitor.id, visitor.site)):
            until, shortage = self._blocked.get(name, (0.0, None))
            seconds = until - time.monotonic()
            if shortage is not None and seconds > 0:
                return Shortage(shortage.demand, shortage.period, seconds)
        return None

    async def count_failure(self, visitor: Visitor, credential: str) -> Shortage | None:
        """Count a failure; return the limit that it exhausts, or None."""
        self._valid.pop(credential, None)
        shortage = await self._rates.admit(visitor.owner, self._visitors.failures(visitor))
        if shortage is not None:
            name = visitor.site if shortage.demand.of == "site" else visitor.id
            self._blocked[name] = (time.monotonic() + shortage.seconds, shortage)
            self._blocked.move_to_end(name)
            if len(self._blocked) > self._kept:
                self._blocked.popitem(last=False)
        return shortage

    def trust(self, credential: str) -> None:
        """Remember that a credential was valid."""
        self._valid[credential] = None
        self._valid.move_to_end(credential)
        if len(self._valid) > self._kept:
            self._valid.popitem(last=False)


def networks_of(address: str) -> tuple[str, str]:
    """Return the network of a visitor, and the site that it belongs to, if any."""
    try:
        ipv4_address = ipaddress.ip_address(address)
    except ValueError:
        return UNKNOWN, ""
    if isinstance(ipv4_address, ipaddress.IPv6Address):
        mapped = ipv4_address.ipv4_mapped
        if mapped is None:
            return _network(ipv4_address, VISITOR_BITS), _network(ipv4_address, SITE_BITS)
        ipv4_address = mapped
    return str(ipv4_address), ""


def _network(address: ipaddress.IPv6Address, bits: int) -> str:
    return str(ipaddress.IPv6Network((int(address), bits), strict=False))


def _demands(
    what: str,
    visitor: Visitor,
    most: tuple[int | None, int | None],
    site: tuple[int | None, int | None],
) -> list[Demand]:
    """Return the demands on the limits of a visitor and its site, per minute and per day."""
    owners: Sequence[tuple[Literal["visitor", "site"], str, tuple[int | None, int | None]]]
    owners = [("visitor", visitor.id, most), ("site", visitor.site, site)]
    return [
        Demand(f"{what}/{name}", minute, day, of=of) for of, name, (minute, day) in owners if name
    ]
