"""Reports the state of the queues, and manages dead letters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from broker.context import BrokerContext
from broker.entry_codec import dead_letter_of, seconds_of
from broker.keys import (
    GROUP,
    heartbeat_key,
    message_id_key,
    question_of,
    shard_keys,
    stream_key,
)
from broker.transport.cluster import raise_if_error
from broker.transport.connect import reachable
from broker.transport.scripts import DEAD
from broker.values import DeadLetter, RoleStatus
from envelope.question import Question


@dataclass(frozen=True, slots=True)
class _StreamBacklog:
    """The content of one stream of a role."""

    role: str
    depth: int
    oldest_seconds: float
    in_flight: int
    consumers: int


class QueueAdmin:
    """Reads the status of roles, finds questions, and shows dead letters."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context

    async def find_questions(self, message_id: str) -> Sequence[Question]:
        """Return the questions with this message id, newest first."""
        with reachable():
            pipeline = self._context.client.pipeline(transaction=False)
            for shard in range(self._context.shards):
                pipeline.zrevrange(message_id_key(message_id, shard), 0, -1, withscores=True)
            scored_names = [pair for shard in await pipeline.execute() for pair in shard]
        scored_names.sort(key=lambda pair: -float(pair[1]))
        return [question_of(name.decode()) for name, _ in scored_names]

    async def read_status(self, roles: Sequence[str]) -> Sequence[RoleStatus]:
        """Return the depth, age and consumers of each role, read from Redis."""
        dead = await self._dead_by_role()
        backlogs = await self._read_backlogs(roles)
        return [
            _status(
                role, [backlog for backlog in backlogs if backlog.role == role], dead.get(role, 0)
            )
            for role in roles
        ]

    async def find_write_fault(self) -> str:
        """Return why Redis currently rejects writes, or an empty string; see the port."""
        pipeline = self._context.client.pipeline(transaction=False)
        for shard in range(self._context.shards):
            # Changes nothing, because the key never exists, but is rejected like any other write.
            pipeline.set(heartbeat_key(shard), "", xx=True)
        with reachable():
            answers = await pipeline.execute(raise_on_error=False)
            for answer in answers:
                if isinstance(answer, Exception) and not isinstance(answer, ResponseError):
                    raise answer
        return next((str(answer) for answer in answers if isinstance(answer, ResponseError)), "")

    async def list_dead_letters(self, *, limit: int = 100) -> Sequence[DeadLetter]:
        """Return the newest dead letters across all shards."""
        letters: list[DeadLetter] = []
        with reachable():
            for shard in range(self._context.shards):
                dead = shard_keys(shard).dead
                entries: Any = await self._command("XREVRANGE", dead, "+", "-", "COUNT", limit)
                letters += await self._letters(shard, entries)
        letters.sort(key=lambda letter: -letter.at)
        return letters[:limit]

    async def read_dead_letter(self, letter_id: str) -> DeadLetter | None:
        """Return one dead letter."""
        located = parse_letter_id(letter_id)
        if located is None:
            return None
        shard, entry_id = located
        with reachable():
            entries: Any = await self._command("XRANGE", shard_keys(shard).dead, entry_id, entry_id)
            letters = await self._letters(shard, entries)
        return letters[0] if letters else None

    async def drop_dead_letter(self, letter_id: str) -> bool:
        """Delete one dead letter."""
        located = parse_letter_id(letter_id)
        if located is None:
            return False
        keys = shard_keys(located[0])
        with reachable():
            pipeline: Any = self._context.client.pipeline(transaction=False)
            pipeline.hdel(keys.letters, *letter_fields(located[1]))
            pipeline.xdel(keys.dead, located[1])
            _, dropped = await pipeline.execute()
        return bool(dropped)

    async def _letters(self, shard: int, entries: Sequence[Any]) -> list[DeadLetter]:
        """Return the dead letters of these entries, with frame and error from the letters hash."""
        if not entries:
            return []
        fields = [field for entry in entries for field in letter_fields(entry[0].decode())]
        texts: Any = await self._context.client.hmget(shard_keys(shard).letters, fields)
        return [
            dead_letter_of(entry, shard, frame, error)
            for entry, frame, error in zip(entries, texts[::2], texts[1::2], strict=True)
        ]

    async def _command(self, *parts: str | int) -> Any:
        client: Any = self._context.client
        return await client.execute_command(*parts)

    async def _read_backlogs(self, roles: Sequence[str]) -> list[_StreamBacklog]:
        """Return the backlog of each role in each shard, using one round trip."""
        shards = range(self._context.shards)
        pipeline: Any = self._context.client.pipeline(transaction=False)
        for role in roles:
            for shard in shards:
                stream = stream_key(role, shard)
                pipeline.xlen(stream)
                pipeline.execute_command("XRANGE", stream, "-", "+", "COUNT", 1)
                pipeline.xinfo_groups(stream)
        pipeline.time()
        with reachable():
            *answers, clock = await pipeline.execute(raise_on_error=False)
            seconds, microseconds = raise_if_error(clock)
            now = seconds + microseconds / 1e6
            names = [role for role in roles for _ in shards]
            return [
                _parse_backlog(role, now, *answers[3 * index : 3 * index + 3])
                for index, role in enumerate(names)
            ]

    async def _dead_by_role(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for shard in range(self._context.shards):
            roles_and_counts = await self._context.run(DEAD, [shard_keys(shard).dead], [])
            for role, count in zip(roles_and_counts[::2], roles_and_counts[1::2], strict=True):
                counts[role.decode()] = counts.get(role.decode(), 0) + int(count)
        return counts


def letter_fields(entry_id: str) -> tuple[str, str]:
    """Return the two fields of the hash `letters` with the frame and the error of a dead letter."""
    return entry_id, f"{entry_id}:error"


def parse_letter_id(letter_id: str) -> tuple[int, str] | None:
    """Return the shard and the entry id in a dead letter's id, or None if the text is not such an
    id.
    """
    shard, _, entry_id = letter_id.partition("-")
    first, _, second = entry_id.partition("-")
    if not (shard.isdecimal() and first.isdecimal() and second.isdecimal()):
        return None
    return int(shard), entry_id


def _parse_backlog(role: str, now: float, length: Any, first: Any, groups: Any) -> _StreamBacklog:
    """Parse the replies about one stream; raises the reply if it is an error."""
    oldest = now - seconds_of(first[0][0].decode()) if raise_if_error(first) else 0.0
    missing = isinstance(groups, ResponseError) and "no such key" in str(groups)
    all_groups: list[dict[str, Any]] = [] if missing else raise_if_error(groups)
    own = [group for group in all_groups if group["name"] == GROUP.encode()]
    return _StreamBacklog(
        role,
        depth=int(raise_if_error(length)),
        oldest_seconds=max(0.0, oldest),
        in_flight=sum(int(group["pending"]) for group in own),
        consumers=sum(int(group["consumers"]) for group in own),
    )


def _status(role: str, backlogs: Sequence[_StreamBacklog], dead: int) -> RoleStatus:
    return RoleStatus(
        role,
        depth=sum(backlog.depth for backlog in backlogs),
        in_flight=sum(backlog.in_flight for backlog in backlogs),
        oldest_seconds=max(backlog.oldest_seconds for backlog in backlogs),
        dead=dead,
        consumers=max(backlog.consumers for backlog in backlogs),
    )
