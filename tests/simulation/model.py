"""Says in plain Python what the broker owes: every answer, and everything that stands after it.

Written from the port and the design, not from the scripts; times are milliseconds of the clock of
Redis. What happens in one round trip is one method here.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain

from broker.encodable import LONG_FRAME
from broker.keys import name_of
from broker.values import (
    Accepted,
    Bury,
    Busy,
    Delivery,
    Duplicate,
    Fields,
    Finish,
    Forward,
    Retry,
    Settlement,
    Submission,
)
from envelope.memory_write import Append
from envelope.question import Question
from tests.simulation.expected_state import (
    ROLES,
    STARTS,
    Entry,
    Letter,
    Message,
    Rules,
    Waiting,
    conversation_of,
    make_superseded,
)


@dataclass(slots=True)
class Model:
    """Everything that one shard should hold."""

    rules: Rules
    now: int
    streams: dict[str, list[Entry]] = field(default_factory=lambda: {role: [] for role in ROLES})
    messages: dict[str, Message] = field(default_factory=dict)
    order: dict[str, list[str]] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    delayed: dict[str, int] = field(default_factory=dict)
    parked: dict[str, bytes] = field(default_factory=dict)
    dead: list[Letter] = field(default_factory=list)
    buried: int = 0
    results: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    memory: dict[str, list[str]] = field(default_factory=dict)
    tombstones: dict[str, tuple[int, int]] = field(default_factory=dict)
    sweeper: str = ""
    on_duty_until: int = 0

    def submit(self, submission: Submission) -> Accepted | Duplicate | Busy:
        """Let a message in, once, in order, within the quota."""
        question = submission.question
        name = name_of(question)
        known = self.messages.get(name)
        if known is not None:
            return Duplicate(None if known.forgotten else known.reply)
        before = self.order.get(conversation_of(name), [])
        busy = self._busy(question.tenant, len(before))
        if busy is not None:
            return busy
        self.messages[name] = Message(
            question=question,
            at_us=self.now * 1000 + 250,
            deadline=self.now + int(submission.deadline_seconds * 1000),
            result_list=submission.result_list,
            resort=submission.last_resort,
            journal=["accepted"],
        )
        at = int(submission.not_before_seconds * 1000) and self.now + int(
            submission.not_before_seconds * 1000
        )
        joined = self.waiting.get(before[-1]) if before and at else None
        if joined is not None and joined.at:
            return self._merge(name, submission.frame, before[-1], joined, at)
        self.order[conversation_of(name)] = [*before, name]
        self.waiting[name] = Waiting(submission.role, submission.frame, at)
        if not before:
            self._start(name)
        return Accepted(waiting=len(before))

    def take(self, role: str, consumer: str, places: int) -> list[Entry]:
        """Deliver new entries, oldest first."""
        fresh = [entry for entry in self.streams[role] if not entry.delivered][:places]
        for entry in fresh:
            entry.owner, entry.since = consumer, self.now
        # What a part is based on went with its question: nobody can be handed it any more.
        stale = [entry for entry in fresh if entry.part and not self.messages[entry.name].is_open]
        for entry in stale:
            self._remove(role, entry)
        return [entry for entry in fresh if entry not in stale]

    def keep_submitted(self, submission: Submission, taken: Sequence[Entry]) -> None:
        """Keep a long frame that its own submission took."""
        name, is_long = name_of(submission.question), len(submission.frame) >= LONG_FRAME
        for entry in taken:
            if entry.name == name and submission.decoded is not None and is_long:
                entry.part = self.messages[name].keeps_a_frame = True

    def settle(self, delivery: Delivery, settlement: Settlement, wanted: str = "") -> bool:
        """Carry out a settlement when the entry is still held and its question open."""
        entry = self.held(delivery)
        if entry is None:
            return False
        self._remove(delivery.role, entry)
        message = self.messages[entry.name]
        if not message.is_open:
            return False
        message.journal += [note.kind for note in settlement.journal]
        match settlement:
            case Forward():
                self._forward(entry, message, settlement, wanted)
            case Finish():
                self._finish(entry.name, message, settlement)
            case Retry() if settlement.seconds is None and self._spent(entry):
                self._bury(delivery, entry, Bury("attempts_exhausted", settlement.reason))
            case Retry():
                message.journal.append("retried")
                self._park(delivery, entry, settlement)
            case Bury():
                self._bury(delivery, entry, settlement)
        return True

    def renew(self, held: Sequence[Delivery]) -> list[str]:
        """Start leases again; return the entries that were lost."""
        lost = []
        for delivery in held:
            entry = self.held(delivery)
            if entry is None:
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
            entry = self.held(delivery)
            if entry is not None:
                self._hand_back(delivery.role, entry, entry.deaths)

    def leave(self, role: str, consumer: str) -> None:
        """Hand back whatever a consumer owns."""
        for entry in [entry for entry in self.streams[role] if entry.owner == consumer]:
            self._hand_back(role, entry, entry.deaths)

    def look(self) -> tuple[list[str], list[str]]:
        """Return what is due: delayed, and open questions past their deadline; earliest first."""
        delayed = sorted((due, token) for token, due in self.delayed.items() if due <= self.now)
        overdue = sorted(
            (message.deadline, name)
            for name, message in self.messages.items()
            if message.is_open and message.deadline <= self.now
        )
        return [token for _, token in delayed], [name for _, name in overdue]

    def send_due(self, delayed: Sequence[str], overdue: Sequence[str]) -> None:
        """End what is overdue, then send what was delayed; what has changed since is left alone."""
        for name in overdue:
            message = self.messages[name]
            if message.is_open and message.deadline <= self.now:
                self._close(name, message.resort)
        for token in delayed:
            if self.delayed.get(token, self.now + 1) > self.now:
                continue
            del self.delayed[token]
            parts = token.split(" ")
            if parts[0] == "s":
                self._start(parts[1])
            else:
                self._unpark(token, role=parts[2], failures=int(parts[3]), name=parts[4])

    def cancel(self, question: Question, *, forget: bool) -> bool:
        """End a message as superseded; forget it if asked."""
        name = name_of(question)
        message = self.messages.get(name)
        if message is None:
            return False
        was_open = message.is_open
        if was_open:
            self._close(name, make_superseded(question))
        if forget:
            self._forget(name)
            self.take_off([name])
        return was_open

    def take_off(self, names: Collection[str]) -> None:
        """Delete what travels, or waits for a retry, of ended questions that were forgotten."""
        gone = {
            name
            for name in names
            if name in self.messages and self.messages[name].outcome in ("superseded", "failed")
        }
        for role, entries in self.streams.items():
            self.streams[role] = [entry for entry in entries if entry.name not in gone]
        for token in [token for token in self.parked if token.rpartition(" ")[2] in gone]:
            del self.parked[token], self.delayed[token]

    def of_conversation(self, name: str) -> list[str]:
        """Return the messages of the conversation of a message."""
        conversation = conversation_of(name)
        return [other for other in self.messages if conversation_of(other) == conversation]

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

    def held(self, delivery: Delivery) -> Entry | None:
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
        new = Entry(entry.name, entry.frame, entry.failures, entry.merged, deaths, part=entry.part)
        self.streams[role].append(new)
        return new

    def _busy(self, tenant: str, before: int) -> Busy | None:
        opened = [self.messages[name].question.tenant for name in self.open_names()]
        share = max(1, self.rules.quota // len({*opened, tenant}))
        if len(opened) >= self.rules.quota:
            return Busy(self.rules.retry_after_seconds, "shard_full")
        if len(opened) * 2 >= self.rules.quota and opened.count(tenant) >= share:
            return Busy(self.rules.retry_after_seconds, "tenant_share")
        if before > self.rules.longest_queue:
            return Busy(self.rules.retry_after_seconds, "conversation_full")
        return None

    def _merge(self, name: str, frame: bytes, target: str, joined: Waiting, at: int) -> Accepted:
        joined.merged.append(frame)
        joined.at = min(at, self.messages[target].deadline)
        if f"s {target}" in self.delayed:
            self.delayed[f"s {target}"] = joined.at
        message = self.messages[name]
        message.outcome = "superseded"
        into = self.messages[target].question.message_id
        message.reply = {**make_superseded(message.question), "merged_into": into}
        message.journal.append("finished")
        if message.result_list:
            self.results.setdefault(message.result_list, []).append((name, "superseded"))
        return Accepted(merged_into=into)

    def _start(self, name: str) -> None:
        waiting = self.waiting[name]
        if waiting.at > self.now:
            self.delayed[f"s {name}"] = waiting.at
            return
        del self.waiting[name]
        self.streams[waiting.role].append(Entry(name, waiting.frame, merged=tuple(waiting.merged)))

    def _forward(self, entry: Entry, message: Message, forward: Forward, wanted: str) -> None:
        if forward.last_resort is not None:
            message.resort = forward.last_resort
        for send in forward.sends:
            part = send.decoded is not None and send.role == wanted
            message.keeps_a_frame |= part
            self.streams[send.role].append(Entry(entry.name, send.whole(), part=part))

    def _spent(self, entry: Entry) -> bool:
        return entry.failures + 1 >= self.rules.attempts

    def _park(self, delivery: Delivery, entry: Entry, retry: Retry) -> None:
        failures = entry.failures + (retry.seconds is None)
        token = f"r {entry.id} {delivery.role} {failures} {entry.name}"
        delay = 0 if retry.seconds is None else int(retry.seconds * 1000)
        self.parked[token] = retry.frame
        self.delayed[token] = min(self.now + delay, self.messages[entry.name].deadline)

    def _unpark(self, token: str, *, role: str, failures: int, name: str) -> None:
        frame = self.parked.pop(token)
        if self.messages[name].is_open:
            self.streams[role].append(Entry(name, frame, failures))

    def _bury(self, delivery: Delivery, entry: Entry, bury: Bury) -> None:
        message = self.messages[entry.name]
        message.journal.append("dead_lettered")
        self.buried += 1
        letter = Letter(self.buried, entry.name, entry.frame, delivery.role, bury.reason)
        self.dead.append(letter)
        if bury.poison_notice is not None:
            self._forward(entry, message, Forward((bury.poison_notice,)), "")
        else:
            self._close(entry.name, message.resort)

    def _finish(self, name: str, message: Message, finish: Finish) -> None:
        conversation = conversation_of(name)
        forgotten_us, until = self.tombstones.get(conversation, (0, 0))
        if not (forgotten_us and until > self.now) or message.at_us > forgotten_us:
            for write in finish.remember:
                assert isinstance(write, Append)
                kept = [*self.memory.get(write.key, []), *write.values]
                self.memory[write.key] = kept[-write.keep :]
        if finish.forget:
            gone = self.of_conversation(name)
            self.dead = [letter for letter in self.dead if letter.name not in gone]
            last = max(self.messages[other].deadline for other in self.open_names())
            self.tombstones[conversation] = (self.now * 1000 + 250, last + self.rules.tombstone_ms)
            for other, known in self.messages.items():
                if conversation_of(other) == conversation and not known.is_open:
                    self._forget(other)
        self._close(name, finish.reply)

    def _close(self, name: str, reply: Fields) -> None:
        message = self.messages[name]
        message.outcome, message.reply = str(reply["outcome"]), reply
        message.journal.append("finished")
        if message.result_list:
            replies = self.results.setdefault(message.result_list, [])
            replies.append((name, message.outcome))
        self.waiting.pop(name, None)
        self.delayed.pop(f"s {name}", None)
        order = self.order[conversation_of(name)]
        was_first = order[0] == name
        order.remove(name)
        if not order:
            del self.order[conversation_of(name)]
        elif was_first:
            self._start(order[0])

    def _forget(self, name: str) -> None:
        message = self.messages[name]
        message.forgotten, message.journal = True, []
        if message.result_list:
            replies = self.results.get(message.result_list, [])
            replies[:] = [row for row in replies if row[0] != name]
        self.dead = [letter for letter in self.dead if letter.name != name]
