"""Limits how often one visitor may use an invalid key or token.

The count is shared over Redis. A visitor above the limit is rejected in this process without a call
to Redis, except with credentials that were valid here recently: a neighbour at the same address who
guesses keys locks nobody out.
"""

import time
from collections import OrderedDict

from gateway.limits.visitors import Visitor, Visitors
from gateway.port import Rates, Shortage

MOST_REMEMBERED = 4_096
"""The number of blocked visitors, and of valid credentials, that one process remembers."""


class FailureLimiter:
    """Counts failures by visitor, and by the site: the larger IPv6 network of the visitor."""

    def __init__(self, rates: Rates, visitors: Visitors, *, kept: int = MOST_REMEMBERED) -> None:
        self._rates = rates
        self._visitors = visitors
        self._kept = kept
        self._blocked: OrderedDict[str, tuple[float, Shortage]] = OrderedDict()
        self._valid: OrderedDict[str, None] = OrderedDict()

    def find_block(self, visitor: Visitor, credential: str) -> Shortage | None:
        """Return the limit that blocks this credential unchecked, or None."""
        if credential in self._valid:
            return None
        for name in filter(None, (visitor.id, visitor.site)):
            until, shortage = self._blocked.get(name, (0.0, None))
            seconds = until - time.monotonic()
            if shortage is not None and seconds > 0:
                return Shortage(shortage.demand, shortage.period, seconds)
        return None

    async def count_failure(self, visitor: Visitor, credential: str) -> Shortage | None:
        """Count one failure; return the limit that it exhausts, or None."""
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
