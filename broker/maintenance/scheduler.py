"""Sends delayed entries when they are due, and ends questions at their deadlines.

Any number of processes sleep until the next item is due. The process that sent the last due item is
the timer of its shard and wakes exactly on time. The others are on standby and check a moment
later. They have nothing to do while the timer is alive, and one of them replaces it if it dies. A
call that adds an item that is due before all others also adds a wakeup to a stream that all these
processes read.
"""

import random
import secrets
from typing import TYPE_CHECKING, Any

from broker.context import BrokerContext
from broker.entry_codec import Entry, fields_of, seconds_of
from broker.group_reader import next_entries
from broker.keys import question_of, shard_keys
from broker.settlement import ScriptCall
from broker.transport.connect import LONGEST_BLOCK_SECONDS, reachable
from broker.transport.scripts import DUE, PEEK
from broker.values import Fields, Submission
from envelope.encoding import to_json
from envelope.question import Question

if TYPE_CHECKING:
    from collections.abc import Sequence

AT_ONCE = 128
LONGEST_WAIT_SECONDS = 30.0
"""The longest sleep of a process, in case a wakeup is lost."""
AWAY_SECONDS = 0.25
STAND_BY_SECONDS = (0.06, 0.14)
"""After an item is overdue by this delay (a random value in the range), a standby process sends it.
"""


class Scheduler:
    """Sends due entries and deadlines of all shards."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._name = secrets.token_hex(6).encode()
        self._random = random.SystemRandom()
        self._alarms: dict[bytes, bytes] = {}
        self._on_standby: set[bytes] = set()

    async def send_due(self) -> float:
        """Send the due items of every shard; return the seconds until the next check."""
        await self._set_cursors()
        looks = await self._context.on_shards(
            [self._send_due_of(shard) for shard in range(self._context.shards)]
        )
        # An unreachable shard is checked again soon.
        return min(look if isinstance(look, float) else AWAY_SECONDS for look in looks)

    async def wait_for_wakeup(self, *, block_seconds: float) -> float | None:
        """Wait for wakeups; return the seconds until the earliest item that they announce, or
        None.
        """
        await self._set_cursors()
        seconds = min(block_seconds, LONGEST_BLOCK_SECONDS)
        read = await next_entries(self._context, self._alarms, seconds=seconds, count=AT_ONCE)
        waits: list[float] = []
        for stream, entries in read:
            self._alarms[stream] = entries[-1][0]
            later = self._standby_delay() if stream in self._on_standby else 0.0
            waits += (max(0.0, _seconds_left(entry)) + later for entry in entries)
        return min(waits) if waits else None

    async def _send_due_of(self, shard: int) -> float:
        keys = shard_keys(shard)
        now, delayed, overdue, nearest, timer = await self._context.run(
            PEEK, [keys.deadlines, keys.delayed, keys.duty], [AT_ONCE]
        )
        if delayed or overdue:
            await self._send(shard, delayed, overdue)
        if len(delayed) == AT_ONCE or len(overdue) == AT_ONCE:
            return 0.0
        alarms = keys.alarms.encode()
        wait = (float(nearest) - float(now)) / 1000 if nearest else LONGEST_WAIT_SECONDS
        self._on_standby.discard(alarms)
        if timer not in (b"", self._name) and not (delayed or overdue):
            self._on_standby.add(alarms)
            wait += self._standby_delay()
        return min(wait, LONGEST_WAIT_SECONDS)

    def _standby_delay(self) -> float:
        return self._random.uniform(*STAND_BY_SECONDS)

    async def _send(
        self, shard: int, delayed: "Sequence[bytes]", overdue: "Sequence[bytes]"
    ) -> None:
        tokens = [token.decode().split(" ") for token in delayed]
        roles = [parts[2] for parts in tokens if parts[0] in {"r", "j"}]
        call = self._context.call(shard, roles)
        names = [self._context.locate(question_of(name.decode()))[1] for name in overdue]
        results = await self._context.result_lists(shard, [keys.record for keys in names])
        call.keys.append(shard_keys(shard).duty)
        call.args.append(self._name)
        for keys, result in zip(names, results, strict=True):
            call.keys.extend([*keys.closing, result])
            call.args.extend(["deadline", keys.name])
        # After the deadlines: a retry whose question has just ended is not sent.
        for parts in tokens:
            self._add_delayed(call, parts)
        await self._context.run(DUE, call.keys, call.args)

    def _add_delayed(self, call: ScriptCall, parts: "Sequence[str]") -> None:
        _, keys = self._context.locate(question_of(parts[-1]))
        if parts[0] == "s":
            call.keys.extend(keys.closing)
            call.args.extend(["start", keys.name])
            return
        if parts[0] == "j":
            _, join, role, _ = parts
            call.keys.extend([keys.record, keys.frames])
            call.args.extend(["join", join, role, keys.name])
            return
        _, _, role, failures, _ = parts
        call.keys.append(keys.record)
        call.args.extend(["retry", " ".join(parts), keys.name, role, failures])

    async def _set_cursors(self) -> None:
        """Start after the last wakeup, because the check that follows finds the items of earlier
        wakeups.
        """
        if self._alarms:
            return
        keys = [shard_keys(shard).alarms.encode() for shard in range(self._context.shards)]
        last_ids = await self._context.on_shards([self._last(key) for key in keys])
        self._alarms = {
            key: last_id if isinstance(last_id, bytes) else b"$"
            for key, last_id in zip(keys, last_ids, strict=True)
        }

    async def _last(self, key: bytes) -> bytes:
        client: Any = self._context.client
        with reachable():
            entries = await client.execute_command("XREVRANGE", key, "+", "-", "COUNT", 1)
        return bytes(entries[0][0]) if entries else b"0-0"


def make_superseded_reply(question: Question) -> Fields:
    """Return the reply to a message that was superseded."""
    return {
        "outcome": "superseded",
        "text": "",
        "conversation_id": question.conversation_id,
        "message_id": question.message_id,
    }


def encode_superseded_reply(submission: Submission) -> bytes | str:
    """Return the reply to a delayed message if a later message supersedes it, or ""."""
    waits = submission.not_before_seconds > 0
    return to_json(make_superseded_reply(submission.question)) if waits else ""


def _seconds_left(alarm: Entry) -> float:
    """Return the seconds from a wakeup until its item is due, both measured by the clock of
    Redis.
    """
    due_ms = float(fields_of(alarm[1])[b"d"])
    return due_ms / 1000 - seconds_of(alarm[0].decode())
