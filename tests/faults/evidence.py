"""Reads what Redis still knows when a run is over, for the oracle."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from broker.entry_codec import Entry, fields_of, journal_entries_of
from broker.keys import (
    GROUP,
    question_keys,
    question_of,
    results_key,
    shard_for,
    shard_keys,
    stream_key,
)
from broker.values import JournalEntry
from envelope.question import Question
from memory.key_names import conversation_keys
from tests.faults.ledger import Evidence, Noted, read_notes
from tests.faults.worker_main import ALL_ROLES

AT_ONCE = 500
FIRST = 3
SWEPT = ("order:", "conversation:")
"""Keys of a conversation that nothing may need any more."""


async def gather_evidence(
    client: Any,
    ledger: Path,
    *,
    faulty: Iterable[int] = (),
    after: int = 0,
    shards: int = 1,
) -> Evidence:
    """Return the evidence of the ledger from byte `after` on."""
    lines = list(read_notes(ledger, after=after))
    asked = {line["name"]: _question(line) for line in lines if line.kind == "accepted"}
    reader = _Reader(client, shards)
    conversations = list({each.conversation_id: each for each in asked.values()}.values())
    return Evidence(
        ledger=lines,
        journals=await reader.journals(list(asked.values())),
        results=await reader.results(),
        histories=await reader.histories(conversations),
        statistics=await reader.statistics(conversations),
        leftovers=await reader.leftovers(),
        waiting=await reader.waiting(),
        faulty=frozenset(faulty),
    )


async def leftovers(client: Any, shards: int = 1) -> dict[str, int]:
    """Return what should be empty when nothing is asked any more, and is not."""
    return await _Reader(client, shards).leftovers()


def _question(line: Noted) -> Question:
    return Question(
        tenant="acme",
        assistant="desk",
        conversation_id=line["conversation"],
        message_id=line["name"],
    )


class _Reader:
    def __init__(self, client: Any, shards: int) -> None:
        self._client = client
        self._shards = shards

    async def journals(self, asked: Sequence[Question]) -> dict[str, Sequence[JournalEntry]]:
        keys = [question_keys(each, self._shard(each)).journal for each in asked]
        result = await self._each("xrange", keys)
        return {
            question.message_id: journal_entries_of(entries)
            for question, entries in zip(asked, result, strict=True)
        }

    async def results(self, name: str = "reported") -> Counter[str]:
        counts: Counter[str] = Counter()
        for shard in range(self._shards):
            entries: list[Entry] = await self._client.xrange(results_key(name, shard))
            names = (fields_of(raw)[b"q"].decode() for _, raw in entries)
            counts.update(question_of(each).message_id for each in names)
        return counts

    async def histories(
        self, conversations: Sequence[Question]
    ) -> dict[str, Sequence[tuple[str, str]]]:
        keys = [conversation_keys(each, self._shards).history for each in conversations]
        result = await self._each("lrange", keys, 0, -1)
        return {
            question.conversation_id: [
                (turn["speaker"], turn["text"]) for turn in map(from_json, turns)
            ]
            for question, turns in zip(conversations, result, strict=True)
        }

    async def statistics(self, conversations: Sequence[Question]) -> dict[str, int]:
        keys = [conversation_keys(each, self._shards).statistics for each in conversations]
        result = await self._each("hget", keys, "questions")
        return {
            question.conversation_id: int(float(value or 0))
            for question, value in zip(conversations, result, strict=True)
        }

    async def leftovers(self) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for shard in range(self._shards):
            names = shard_keys(shard)
            counts[names.deadlines] = await self._client.zcard(names.deadlines)
            # The deadline of a join stays after its question has ended, until it is due.
            seconds, microseconds = await self._client.time()
            now = seconds * 1000 + microseconds // 1000
            counts[names.delayed] = await self._client.zcount(names.delayed, "-inf", now)
            counts[names.parked] = await self._client.hlen(names.parked)
            counts[names.open] = await self._client.hlen(names.open)
            for role in ALL_ROLES:
                stream = stream_key(role.value, shard)
                counts[stream] = await self._client.xlen(stream)
                pending = await self._client.xpending(stream, GROUP)
                counts[f"{stream} pending"] = pending["pending"]
        async for key in self._client.scan_iter(match="rd:*", count=AT_ONCE):
            kind = key.decode().split("}:", 1)[-1]
            if kind.startswith(SWEPT):
                counts[key.decode()] = 1
        return {key: count for key, count in counts.items() if count}

    async def waiting(self) -> dict[str, str]:
        """Return, for each stream of a role that is not empty, its first entry."""
        states: dict[str, str] = {}
        for shard in range(self._shards):
            for role in ALL_ROLES:
                stream = stream_key(role.value, shard)
                entries: list[Entry] = await self._client.xrange(stream, count=FIRST)
                lines = [await self._describe(stream, entry) for entry in entries]
                if lines:
                    states[stream] = states[f"{stream} pending"] = "; ".join(lines)
        return states

    async def _describe(self, stream: str, entry: Entry) -> str:
        entry_id, fields = entry[0].decode(), fields_of(entry[1])
        question = question_of(fields[b"q"].decode())
        record = question_keys(question, self._shard(question)).record
        outcome = await self._client.hget(record, "o")
        held = await self._client.xpending_range(stream, GROUP, entry_id, entry_id, 1)
        state = "open" if outcome is None else f"ended as {outcome.decode()}"
        holder = (
            "nobody"
            if not held
            else "{}, silent for {} ms in delivery {}".format(
                held[0]["consumer"].decode(),
                held[0]["time_since_delivered"],
                held[0]["times_delivered"],
            )
        )
        starts = fields.get(b"c", b"0").decode()
        return (
            f"{entry_id} of {question.message_id} ({state}), held by {holder}, "
            f"{starts} starts before"
        )

    async def _each(self, command: str, keys: Sequence[str], *args: object) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(keys), AT_ONCE):
            pipeline = self._client.pipeline(transaction=False)
            for key in keys[start : start + AT_ONCE]:
                getattr(pipeline, command)(key, *args)
            found += await pipeline.execute()
        return found

    def _shard(self, question: Question) -> int:
        return shard_for(question, self._shards)
