"""Says in plain Python what the broker owes: every answer, and everything that stands after it.

Written from the port and the design, not from the scripts; times are milliseconds of the clock of
Redis. What happens in one round trip is one method here.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from broker.keys import name_of
from broker.values import (
    LONG_FRAME,
    WATCH,
    Accepted,
    Bury,
    Busy,
    Delivery,
    Duplicate,
    Fields,
    Finish,
    Forward,
    Retry,
    ReturnResult,
    ScatterBranches,
    Settlement,
    Submission,
)
from envelope.memory_access import Append, MemoryWrite, SetFields
from envelope.question import Question
from tests.simulation.expected_state import (
    BranchState,
    Entry,
    KeptPause,
    Letter,
    Message,
    Waiting,
    above,
    conversation_of,
    make_superseded,
)
from tests.simulation.stream_model import StreamModel


@dataclass(slots=True)
class Model(StreamModel):
    """Everything that one shard should hold."""

    order: dict[str, list[str]] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    delayed: dict[str, int] = field(default_factory=dict)
    parked: dict[str, bytes] = field(default_factory=dict)
    dead: list[Letter] = field(default_factory=list)
    buried: int = 0
    results: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    memory: dict[str, list[str]] = field(default_factory=dict)
    kept: dict[str, KeptPause] = field(default_factory=dict)
    tombstones: dict[str, tuple[int, int]] = field(default_factory=dict)

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
        if before:
            self._show(before[0], submission.frame, submission.role)
        else:
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
        entry = self.find_held(delivery)
        if entry is None:
            return False
        self._remove(delivery.role, entry)
        message = self.messages[entry.name]
        if not message.is_open or not message.branches.is_alive(delivery.branch):
            return False
        entry.path = delivery.branch
        message.journal += [note.kind for note in settlement.journal]
        self._carry_out(delivery, entry, settlement, wanted)
        return True

    def _carry_out(
        self, delivery: Delivery, entry: Entry, settlement: Settlement, wanted: str
    ) -> None:
        message = self.messages[entry.name]
        match settlement:
            case Forward():
                self._forward(entry, message, settlement, wanted)
            case ScatterBranches():
                self._scatter(entry, message, settlement)
            case ReturnResult():
                self._give(entry, settlement.result, is_good=settlement.is_good)
            case Finish():
                self._finish(entry.name, message, settlement)
            case Retry() if settlement.seconds is None and self._spent(entry):
                self._bury(delivery, entry, Bury("attempts_exhausted", settlement.reason))
            case Retry():
                message.journal.append("retried")
                self._park(delivery, entry, settlement)
            case Bury():
                self._bury(delivery, entry, settlement)

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
            elif parts[0] == "j":
                self._end_join(parts[3], parts[1])
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
        for token in [token for token in self.delayed if token.rpartition(" ")[2] in gone]:
            del self.delayed[token]

    def of_conversation(self, name: str) -> list[str]:
        """Return the messages of the conversation of a message."""
        conversation = conversation_of(name)
        return [other for other in self.messages if conversation_of(other) == conversation]

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
            due = message.branches.due_of(entry.path, 0)
            sent = Entry(entry.name, send.whole(), part=part, path=entry.path, due=due)
            self.streams[send.role].append(sent)

    def _scatter(self, entry: Entry, message: Message, scatter: ScatterBranches) -> None:
        deadline = message.branches.due_of(entry.path, message.deadline)
        begun = message.branches.scatter(scatter, self.now, deadline)
        due = message.branches.joins[scatter.join].due
        for path, role, frame in begun:
            self.streams[role].append(Entry(entry.name, frame, path=path, due=due))
        self.delayed[f"j {scatter.join} {scatter.gather.role} {entry.name}"] = due
        if scatter.watch is not None:
            message.watch = (due, scatter.watch.whole())
            for name in self.order[conversation_of(entry.name)][1:]:
                self._show(entry.name, self.waiting[name].frame, scatter.gather.role)

    def _show(self, running: str, frame: bytes, role: str) -> None:
        """Show a message that waits to the one that runs, if it watches."""
        message = self.messages[running]
        if message.watch is not None:
            due, looks = message.watch
            shown = Entry(running, looks, merged=(frame,), path=WATCH, due=due)
            self.streams[role].append(shown)

    def _give(self, entry: Entry, result: Fields, *, is_good: bool) -> None:
        branches = self.messages[entry.name].branches
        name, following = branches.give(entry.path, result, is_good=is_good)
        join = branches.joins[name]
        if join.is_met:
            self._go_on(entry.name, name)
        elif following is not None:
            path, role, frame = following
            self.streams[role].append(Entry(entry.name, frame, path=path, due=join.due))

    def _go_on(self, name: str, join: str) -> None:
        branches, path = self.messages[name].branches, above(join)
        due = branches.due_of(path, 0)
        taken = branches.take(join)
        self.delayed.pop(f"j {join} {taken.role} {name}", None)
        goes_on = Entry(name, taken.frame, path=path, due=due, gathered=taken.results)
        self.streams[taken.role].append(goes_on)

    def _end_join(self, name: str, join: str) -> None:
        """Go on at the deadline of a join with what is there."""
        branches = self.messages[name].branches
        if join not in branches.joins:
            return
        if branches.is_alive(above(join)):
            self._go_on(name, join)
        else:
            branches.take(join)

    def _spent(self, entry: Entry) -> bool:
        return entry.failures + 1 >= self.rules.attempts

    def _park(self, delivery: Delivery, entry: Entry, retry: Retry) -> None:
        failures = entry.failures + (retry.seconds is None)
        token = f"r {entry.id} {delivery.role} {failures} {entry.name}"
        delay = 0 if retry.seconds is None else int(retry.seconds * 1000)
        self.parked[token] = retry.frame
        message = self.messages[entry.name]
        due = message.branches.due_of(delivery.branch, message.deadline)
        self.delayed[token] = min(self.now + delay, due)

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
        elif entry.path:
            self._give(entry, {"status": "failed", "reason": bury.reason}, is_good=False)
        else:
            self._close(entry.name, message.resort)

    def _finish(self, name: str, message: Message, finish: Finish) -> None:
        conversation = conversation_of(name)
        forgotten_us, until = self.tombstones.get(conversation, (0, 0))
        if not (forgotten_us and until > self.now) or message.at_us > forgotten_us:
            for write in finish.remember:
                self._remember(write)
        if finish.forget:
            gone = self.of_conversation(name)
            self.dead = [letter for letter in self.dead if letter.name not in gone]
            last = max(self.messages[other].deadline for other in self.open_names())
            self.tombstones[conversation] = (self.now * 1000 + 250, last + self.rules.tombstone_ms)
            for other, known in self.messages.items():
                if conversation_of(other) == conversation and not known.is_open:
                    self._forget(other)
        self._close(name, finish.reply)

    def claim(self, key: str, pause: str, name: str) -> bool:
        """Claim a kept payload for a message; return whether it got it."""
        result = self.kept.get(key)
        if result is None or result.until < self.now or result.pause != pause:
            return False
        if result.by not in ("", name):
            return False
        self.kept[key] = replace(result, by=name)
        return True

    def _remember(self, write: MemoryWrite) -> None:
        match write:
            case Append():
                kept = [*self.memory.get(write.key, []), *write.values]
                self.memory[write.key] = kept[-write.keep :]
            case SetFields():
                until = self.now + write.ttl_seconds * 1000
                self.kept[write.key] = KeptPause(write.fields["id"], write.fields["by"], until)
            case _:
                self.kept.pop(write.key, None)

    def _close(self, name: str, reply: Fields) -> None:
        message = self.messages[name]
        message.outcome, message.reply = str(reply["outcome"]), reply
        message.branches, message.watch = BranchState(), None
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
