"""Erases conversations by deleting every key and entry that contains their text.

An erasure sets a mark before it deletes anything. The process that sweeps the shard reads the mark.
When the mark is old enough, the process starts one rewrite of the append-only file, which covers
all erasures until then. The mark is removed only when that rewrite has succeeded on the same run of
the server; later erasures set another mark. Without a mark, the file is rewritten periodically to
remove expired data.
"""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import structlog
from redis.exceptions import ResponseError

from broker.context import BrokerContext
from broker.entry_codec import fields_of
from broker.keys import (
    GROUP,
    QuestionKeys,
    question_keys,
    question_of,
    shard_keys,
    stream_key,
)
from broker.maintenance.scheduler import make_superseded_reply
from broker.transport.cluster import ClusterClient
from broker.transport.connect import reachable
from broker.transport.scripts import BEGUN, FORGET, MARK, WRITTEN
from broker.values import Erased
from envelope.encoding import to_json
from envelope.question import Question

if TYPE_CHECKING:
    from redis.asyncio import Redis

Forgotten = tuple[str, str, str]
"""The record, journal, and result list keys of a message. If it has no result list, the record key
is repeated.
"""

AT_ONCE = 250
"""The number of messages that one script call erases. Such a call blocks Redis for one to two ms.
"""
MOST_SETTLED = 1_000
"""The maximum number of messages that a settlement erases; older messages are erased before it."""
ROUNDS = 20
"""How many times to read a conversation again if it receives messages while it is being erased."""
PAGE = 200
FORGOTTEN = "forgotten"
GONE = frozenset((b"superseded", b"failed"))
"""The outcomes of questions that may end while one of their entries is still in a stream."""
log = structlog.get_logger("broker")

KEEP_MS = 90 * 86_400_000
"""How long (ms) a mark is kept if no process sweeps the shard."""
WARN_SECONDS = 3600.0
"""Minimum time between two warnings that a server rejects a rewrite of its file."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """When append-only files are rewritten: after an erasure, and periodically. 0 disables a
    rewrite.
    """

    after_seconds: float = 60.0
    every_seconds: float = 86_400.0


class Files:
    """The append-only files of the servers that store the shards."""

    def __init__(self, context: BrokerContext, rewriting: Rewriting) -> None:
        self._context = context
        self._rewriting = rewriting
        self._warned_at = float("-inf")

    @property
    def patience_seconds(self) -> float:
        """The longest time for which erased text may remain in the file."""
        return self._rewriting.after_seconds or float("inf")

    async def mark(self, shard: int) -> None:
        """Record that text is being erased."""
        await self._context.run(MARK, [self._key(shard)], [KEEP_MS])

    async def look(self, shard: int, *, at_once: bool = False) -> bool:
        """Start a rewrite of the file if one is due; return whether one is running."""
        if shard and not self._context.slots_apart:
            return False  # One server holds all shards; the first shard handles its file.
        key = self._key(shard)
        known, now_ms = await self._read_notes(key)
        if b"began" in known:
            return await self._follow(key, known)
        if not self._is_time(known, now_ms, at_once=at_once):
            if b"written" not in known:
                await self._note_first_look(key, now_ms)
            return False
        return await self._begin(key, known)

    def _is_time(self, known: dict[bytes, bytes], now_ms: float, *, at_once: bool) -> bool:
        rewriting = self._rewriting
        if b"first" in known and rewriting.after_seconds > 0:
            waited_ms = now_ms - float(known[b"first"])
            if at_once or waited_ms >= rewriting.after_seconds * 1000:
                return True
        since_ms = now_ms - float(known.get(b"written", now_ms))
        return rewriting.every_seconds > 0 and since_ms >= rewriting.every_seconds * 1000

    async def _note_first_look(self, key: str, now_ms: float) -> None:
        """Start the interval until the next periodic rewrite."""
        client: Any = self._context.client
        with reachable():
            await client.hsetnx(key, "written", int(now_ms))
            await client.pexpire(key, KEEP_MS)

    async def _begin(self, key: str, known: dict[bytes, bytes]) -> bool:
        """Start a rewrite, or record it as done if the server has no append-only file."""
        state = await self._state(key)
        enabled = bool(state.get("aof_enabled"))
        if enabled and not await self._request_rewrite(key):
            return False
        run = str(state.get("run_id", ""))
        began = await self._context.run(BEGUN, [key], [run, known.get(b"marks", b"")])
        if not enabled:
            await self._context.run(WRITTEN, [key], [began, KEEP_MS])
        return enabled

    async def _request_rewrite(self, key: str) -> bool:
        client = await self._client(key)
        try:
            with reachable():
                await client.execute_command("BGREWRITEAOF")
        except ResponseError as error:
            if "in progress" not in str(error):
                self._log_refusal(error)
            return False
        return True

    async def _state(self, key: str) -> dict[str, Any]:
        client = await self._client(key)
        try:
            with reachable():
                return {**await client.info("server"), **await client.info("persistence")}
        except ResponseError:
            return {}  # fakeredis has no INFO, and no file.

    async def _follow(self, key: str, known: dict[bytes, bytes]) -> bool:
        """Check a running rewrite: remove its mark if it succeeded, or schedule another rewrite if
        it failed.
        """
        state = await self._state(key)
        run = str(state.get("run_id", ""))
        same = run == known.get(b"run", b"").decode()
        going = state.get("aof_rewrite_in_progress") or state.get("aof_rewrite_scheduled")
        if same and going:
            return True
        with reachable():
            if same and state.get("aof_last_bgrewrite_status", "ok") == "ok":
                await self._context.run(WRITTEN, [key], [known[b"began"], KEEP_MS])
            else:
                # The mark remains, so the next check starts another rewrite.
                await self._context.client.hdel(key, "began", "run", "covers")
        return False

    async def _read_notes(self, key: str) -> tuple[dict[bytes, bytes], float]:
        """Return the stored fields of the file, and the server's time (ms)."""
        client: Any = self._context.client
        with reachable():
            fields: dict[bytes, bytes] = await client.hgetall(key)
            seconds, microseconds = await client.time()
        return fields, seconds * 1000 + microseconds / 1000

    async def _client(self, key: str) -> Any:
        client: Redis = self._context.client
        with reachable():
            return (await client.holder(key))[1] if isinstance(client, ClusterClient) else client

    def _log_refusal(self, error: ResponseError) -> None:
        """Log a warning, at most once per `WARN_SECONDS`, because an operator must act."""
        if time.monotonic() - self._warned_at > WARN_SECONDS:
            self._warned_at = time.monotonic()
            log.warning("aof_rewrite_failed", error=str(error))

    def _key(self, shard: int) -> str:
        return shard_keys(shard if self._context.slots_apart else 0).files


class ConversationEraser:
    """Erases conversations and messages."""

    def __init__(self, context: BrokerContext, files: Files) -> None:
        self._context = context
        self._files = files

    async def forget(self, question: Question, memory: Sequence[str] = ()) -> Erased:
        """Erase a conversation, including its `memory` keys; see the port."""
        shard, names = self._context.locate(question)
        # Before anything is deleted: if this process dies now, the file is still rewritten.
        await self._files.mark(shard)
        erased = Erased()
        travelling: dict[str, None] = {}
        since_ms: list[int] = []
        for _ in range(ROUNDS):
            messages = await self._messages(names)
            done, left = await self._erase(shard, names, messages, memory, travelling, since_ms)
            erased += done
            if left == 0:
                break
        if travelling:
            erased += Erased(entries=await self._take_off(shard, travelling, min(since_ms)))
        return erased

    async def rewrite_file(self) -> bool:
        """Start a rewrite of the file if anything was erased; return whether one is running."""
        return await self._files.look(0, at_once=True)

    async def mark(self, question: Question) -> None:
        """Record that text of the question is being erased."""
        shard, _ = self._context.locate(question)
        await self._files.mark(shard)

    async def before(self, question: Question) -> Sequence[Forgotten]:
        """Return the keys of the messages that a settlement has to erase.

        Messages beyond `MOST_SETTLED` are erased before this method returns.
        """
        shard, names = self._context.locate(question)
        await self._files.mark(shard)
        messages = await self._messages(names)
        for chunk in _chunks(messages[MOST_SETTLED:]):
            await self._run(shard, names, chunk, (), ends=False)
        others = [question_keys(question_of(name), shard) for name in messages[:MOST_SETTLED]]
        lists = await self._context.result_lists(shard, [other.record for other in others])
        return [
            (other.record, other.journal, results)
            for other, results in zip(others, lists, strict=True)
        ]

    async def after(self, question: Question, *, alone: bool = False) -> None:
        """Delete the entries of erased questions that are still in streams.

        These are all questions of the conversation or, if `alone` is true, only this one.
        """
        shard, names = self._context.locate(question)
        messages = [names.name] if alone else await self._messages(names)
        records = [question_keys(question_of(name), shard).record for name in messages]
        with reachable():
            pipeline: Any = self._context.client.pipeline(transaction=False)
            for record in records:
                pipeline.execute_command("HMGET", record, "o", "at")
            states = await pipeline.execute() if records else []
        gone = {
            name: int(at) // 1000
            for name, (outcome, at) in zip(messages, states, strict=True)
            if outcome in GONE
        }
        if gone:
            await self._take_off(shard, gone, min(gone.values()))

    async def _messages(self, names: QuestionKeys) -> list[str]:
        """Return the names of a conversation's messages, newest first."""
        with reachable():
            client: Any = self._context.client
            messages: list[bytes] = await client.execute_command("ZREVRANGE", names.messages, 0, -1)
        return [name.decode() for name in messages]

    async def _erase(
        self,
        shard: int,
        names: QuestionKeys,
        messages: Sequence[str],
        memory: Sequence[str],
        travelling: dict[str, None],
        since_ms: list[int],
    ) -> tuple[Erased, int]:
        """Erase messages, then the memory; return the counts, and the number of remaining
        messages.
        """
        erased, left = Erased(), 0
        chunks = _chunks(messages) or [()]
        for index, chunk in enumerate(chunks, 1):
            last = memory if index == len(chunks) else ()
            answer = await self._run(shard, names, chunk, last, ends=True)
            with_text, ended, letters, memories, left, names_left, since = answer
            erased += Erased(with_text, ended, 0, letters, memories)
            travelling.update((name.decode(), None) for name in names_left)
            since_ms += [int(since)] if since else []
        return erased, left

    async def _run(
        self,
        shard: int,
        names: QuestionKeys,
        messages: Iterable[str],
        memory: Sequence[str],
        *,
        ends: bool,
    ) -> Any:
        questions = [question_of(name) for name in messages]
        every = [question_keys(question, shard) for question in questions]
        lists = await self._context.result_lists(shard, [keys.record for keys in every])
        call = self._context.call(shard)
        call.keys.extend((names.order, names.conversation, names.tombstone, names.messages))
        call.args.extend((names.name.rpartition("/")[0], "1" if ends else "", len(every)))
        for question, keys, results in zip(questions, every, lists, strict=True):
            reply = {**make_superseded_reply(question), "termination_reason": FORGOTTEN}
            call.keys.extend((keys.record, keys.journal, keys.frames, results))
            call.args.extend((keys.name, to_json(reply)))
        call.keys.extend(memory)
        return await self._context.run(FORGET, call.keys, call.args)

    async def _take_off(self, shard: int, names: Collection[str], since_ms: int) -> int:
        """Delete the entries of ended questions from the streams, and return their number.

        An entry that moves during the scan moves to the end of a stream, where the scan still sees
        it.
        """
        wanted = {name.encode() for name in names}
        taken = await self._unpark(shard, names)
        for role in tuple(self._context.roles):
            stream, after = stream_key(role, shard), str(since_ms)
            while entries := await self._page(stream, after):
                ids = [entry_id for entry_id, raw in entries if fields_of(raw).get(b"q") in wanted]
                if ids:
                    await self._delete(stream, ids)
                    taken += len(ids)
                if len(entries) < PAGE:
                    break
                after = f"({entries[-1][0].decode()}"
        return taken

    async def _page(self, stream: str, after: str) -> list[Any]:
        client: Any = self._context.client
        with reachable():
            entries: list[Any] = await client.execute_command(
                "XRANGE", stream, after, "+", "COUNT", PAGE
            )
        return entries

    async def _delete(self, stream: str, ids: Sequence[bytes]) -> None:
        pipeline: Any = self._context.client.pipeline(transaction=False)
        with reachable():
            pipeline.execute_command("XACK", stream, GROUP, *ids)
            pipeline.execute_command("XDEL", stream, *ids)
            await pipeline.execute()

    async def _unpark(self, shard: int, names: Collection[str]) -> int:
        """Delete the frames that wait for a retry, and return their number."""
        keys, client = shard_keys(shard), cast("Any", self._context.client)
        with reachable():
            tokens = await client.execute_command("ZRANGE", keys.delayed, 0, -1)
            parked = [token for token in tokens if token.decode().rpartition(" ")[2] in names]
            if parked:
                pipeline = client.pipeline(transaction=False)
                pipeline.execute_command("HDEL", keys.parked, *parked)
                pipeline.execute_command("ZREM", keys.delayed, *parked)
                await pipeline.execute()
        return len(parked)


def _chunks(messages: Sequence[str]) -> list[Sequence[str]]:
    return [messages[first : first + AT_ONCE] for first in range(0, len(messages), AT_ONCE)]
