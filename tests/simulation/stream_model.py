"""Says what the streams of one shard owe: who holds an entry, since when, and who gets it next.

Times are milliseconds of the clock of Redis.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from broker.values import Delivery
from tests.simulation.expected_state import ROLES, STARTS, Entry, Message, Rules


@dataclass(slots=True)
class StreamModel:
    """The streams of one shard, and the messages whose entries they hold."""

    rules: Rules
    now: int
    streams: dict[str, list[Entry]] = field(default_factory=lambda: {role: [] for role in ROLES})
    messages: dict[str, Message] = field(default_factory=dict)
    sweeper: str = ""
    on_duty_until: int = 0

    def renew(self, held: Sequence[Delivery]) -> list[str]:
        """Start leases again; return the entries that were lost."""
        lost = []
        for delivery in held:
            entry = self.find_held(delivery)
            if entry is None:
                lost.append(delivery.entry_id)
            elif not self.messages[entry.name].branches.is_alive(delivery.branch):
                self._remove(delivery.role, entry)
                lost.append(delivery.entry_id)
            else:
                entry.since = self.now
        return lost

    def may_sweep(self, sweeper: str) -> bool:
        """Return whether no other sweeper is on duty."""
        return self.sweeper in ("", sweeper) or self.on_duty_until <= self.now

    def sweep(self, sweeper: str) -> tuple[list[tuple[str, Entry]], list[tuple[str, Entry]]]:
        """Give back what lost its lease; return that, and what was started too often, by role.

        The latter stays with who held it last, to be buried.
        """
        back, poison = [], []
        for role, entries in self.streams.items():
            for entry in [entry for entry in entries if self._is_late(entry)]:
                deaths = (*entry.deaths, (entry.owner, entry.since))
                if len(deaths) >= STARTS:
                    entry.since = self.now
                    poison.append((role, entry))
                else:
                    back.append((role, self._hand_back(role, entry, deaths)))
        return back, poison

    def lease_end(self) -> int:
        """Return when the next lease ends, at most a lease from now."""
        held = [entry for entries in self.streams.values() for entry in entries if entry.owner]
        return self.rules.lease_ms + min((self.now, *(entry.since for entry in held)))

    def give_back(self, held: Sequence[Delivery]) -> None:
        """Return entries that were not started: they are new again, with the deaths they saw."""
        for delivery in held:
            entry = self.find_held(delivery)
            if entry is not None:
                self._hand_back(delivery.role, entry, entry.deaths)

    def leave(self, role: str, consumer: str) -> None:
        """Hand back whatever a consumer owns."""
        for entry in [entry for entry in self.streams[role] if entry.owner == consumer]:
            self._hand_back(role, entry, entry.deaths)

    def recover(self, role: str, consumer: str, known: Collection[str]) -> bool:
        """Hand back what a consumer owns without knowing; False while some is too new to decide."""
        unknown = self.unknown(role, consumer, known)
        for entry in unknown:
            if self._is_lost(entry):
                self._hand_back(role, entry, entry.deaths)
        return all(map(self._is_lost, unknown))

    def unknown(self, role: str, consumer: str, known: Collection[str]) -> list[Entry]:
        """Return what a consumer owns besides what it knows of."""
        return [
            entry
            for entry in self.streams[role]
            if entry.owner == consumer and entry.id not in known
        ]

    def find_held(self, delivery: Delivery) -> Entry | None:
        """Return the entry of a delivery, when it is this consumer's, in this very delivery."""
        for entry in self.streams[delivery.role]:
            if entry.id == delivery.entry_id:
                mine = entry.owner == delivery.consumer and delivery.count == 1
                return entry if mine else None
        return None

    def has_new(self, role: str) -> bool:
        return any(not entry.delivered for entry in self.streams[role])

    def has_late(self) -> bool:
        return any(map(self._is_late, chain.from_iterable(self.streams.values())))

    def open_names(self) -> list[str]:
        return [name for name, message in self.messages.items() if message.is_open]

    def _is_lost(self, entry: Entry) -> bool:
        return self.now - entry.since >= self.rules.on_the_way_ms

    def _is_late(self, entry: Entry) -> bool:
        return entry.delivered and self.now - entry.since >= self.rules.lease_ms

    def _remove(self, role: str, entry: Entry) -> None:
        self.streams[role] = [other for other in self.streams[role] if other is not entry]

    def _hand_back(self, role: str, entry: Entry, deaths: tuple[tuple[str, int], ...]) -> Entry:
        self._remove(role, entry)
        new = replace(entry, deaths=deaths, id="", owner="", since=0)
        self.streams[role].append(new)
        return new
