"""Speaks with Redis Cluster: an ordinary client for each node, and a table of who holds which slot.

redis-py has a client for clusters. Its retries are blind, it hangs up on every node when one moved,
it sends ASKING on another connection than the command, and it asks a server where the keys of each
XREADGROUP stand. This one never sends anything twice: a command is sent again only when a node
said that it did not do it, because the slot is elsewhere or just moves there.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from redis import asyncio as aioredis
from redis.asyncio.client import Pipeline
from redis.crc import key_slot
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MovedError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)

from broker.transport.encode_command import ANSWER_SECONDS, line_of

Address = tuple[str, int]
Range = tuple[int, int, Address]
"""First and last slot, and the master that holds them."""
Command = tuple[tuple[Any, ...], Mapping[str, Any]]

SLOTS = 16_384
REDIRECTIONS = 5
"""A slot that moves more often within one command is asked for later."""
NOT_DONE = (MovedError, TryAgainError)
"""What a node says that did nothing, and may be asked again at once."""
LOOK_SECONDS = 1.0
"""How long a node may take to tell the table of slots."""
LOOK_AGAIN_SECONDS = 0.25
"""How often the table is looked for while nodes hang or slots move."""
MOVING_SECONDS = 1.0
"""How long a command waits for keys that are just on their way to another node."""
PAUSE_SECONDS = 0.02
"""Between two looks whether they have arrived."""
KEYLESS = frozenset({"INFO", "PING", "TIME", "FLUSHALL", "SCRIPT FLUSH", "SCRIPT LOAD"})
"""Commands of the whole cluster: every master does them, and the first one's answer counts."""


class ClusterClient(aioredis.Redis):
    """A client whose commands go to the master that holds their key.

    `open_node` makes the client of one node. A pipeline may span several slots; what it sends to
    each is sent in one trip.
    """

    def __init__(
        self, seeds: Sequence[Address], open_node: Callable[[Address], aioredis.Redis]
    ) -> None:
        self._seeds = tuple(seeds)
        self._open_node = open_node
        self._nodes: dict[Address, aioredis.Redis] = {}
        self._ranges: list[Range] = []
        self._moved: dict[int, Address] = {}
        self._looking = asyncio.Lock()
        self._looked_at = float("-inf")
        self._gone: set[asyncio.Task[None]] = set()
        super().__init__(connection_pool=self._node(self._seeds[0]).connection_pool)

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Return what the right node answers."""
        key = key_of(args)
        if key is None:
            nodes = await self.nodes()
            answers = [(await _send(node, [(args, options)]))[0] for node in nodes]
            return _raise_if_error(answers[0])
        [answer] = await self._on_slot(_slot(key), [(args, options)])
        return _raise_if_error(answer)

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        """Gather commands; there are no transactions over slots."""
        return ClusterPipeline(self)

    async def many(self, commands: Sequence[Command]) -> list[Any]:
        """Return what the nodes answer, errors of single commands in their places."""
        groups: dict[int, list[int]] = {}
        slot = 0
        for place, (args, _) in enumerate(commands):
            key = key_of(args)
            # A command without a key, such as TIME, is about the one before it.
            slot = slot if key is None else _slot(key)
            groups.setdefault(slot, []).append(place)
        answers: list[Any] = [None] * len(commands)

        async def ask(slot: int, places: list[int]) -> None:
            found = await self._on_slot(slot, [commands[place] for place in places])
            for place, answer in zip(places, found, strict=True):
                answers[place] = answer

        asked = (ask(slot, places) for slot, places in groups.items())
        # All of them, also when one fails: none goes on behind the back of who asked.
        for error in await asyncio.gather(*asked, return_exceptions=True):
            if error is not None:
                raise error
        return answers

    async def nodes(self) -> list[aioredis.Redis]:
        """Return a client for each master that holds slots."""
        if not self._ranges:
            await self._look(self._ranges)
        return [self._node(address) for address in dict.fromkeys(row[2] for row in self._ranges)]

    async def holder(self, key: str) -> tuple[Address, Any]:
        """Return the master that holds a key, also while it does not answer, and its client."""
        address = await self._address(_slot(key))
        return address, self._node(address)

    def look_again(self) -> None:
        """Look for the table of slots again before the next command."""
        self._forget(self._ranges)

    async def disconnect(self) -> None:
        """Hang up on every node; the next command dials anew."""
        for node in list(self._nodes.values()):
            await node.connection_pool.disconnect(inuse_connections=True)

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Close the connections to every node."""
        for task in list(self._gone):
            task.cancel()
        await asyncio.gather(*self._gone, return_exceptions=True)
        nodes, self._nodes = self._nodes, {}
        for node in nodes.values():
            await node.aclose()

    async def _on_slot(self, slot: int, commands: Sequence[Command]) -> list[Any]:
        answers: list[Any] = [None] * len(commands)
        places = list(range(len(commands)))
        moves, until = 0, time.monotonic() + MOVING_SECONDS
        while places:
            found = await self._send_following_redirects(
                slot, [commands[place] for place in places]
            )
            for place, answer in zip(places, found, strict=True):
                answers[place] = answer
            refused = {place: type(answers[place]) for place in places}
            places = [place for place in places if refused[place] in NOT_DONE]
            moves += MovedError in refused.values()
            if moves >= REDIRECTIONS or time.monotonic() > until:
                break
            if TryAgainError in refused.values():
                await asyncio.sleep(PAUSE_SECONDS)
        return answers

    async def _send_following_redirects(self, slot: int, commands: Sequence[Command]) -> list[Any]:
        """Ask the owner, and where it says so the node to which the slot moves."""
        answers = await self._send_to_owner(slot, commands)
        for place, answer in enumerate(answers):
            if type(answer) is MovedError:
                self._learn(answer)
            elif type(answer) is AskError:
                answers[place] = await self._send_asking(answer, commands[place])
        return answers

    async def _send_to_owner(self, slot: int, commands: Sequence[Command]) -> list[Any]:
        table, node = self._ranges, await self._owner(slot)
        try:
            answers = await _send(node, commands)
        except (RedisError, OSError):
            self._forget(table)
            raise
        if any(isinstance(answer, ReadOnlyError | ClusterDownError) for answer in answers):
            self._forget(table)
        return answers

    async def _send_asking(self, error: AskError, command: Command) -> Any:
        """Ask the node that is just importing the slot; both commands on one connection."""
        node = self._node((error.host, error.port))
        return (await _send(node, [(("ASKING",), {}), command]))[-1]

    async def _owner(self, slot: int) -> aioredis.Redis:
        node = self._node(await self._address(slot))
        if not _hangs(node):
            return node
        self._look_soon()
        address = await self._address(slot)
        node = self._node(address)
        if _hangs(node):
            raise ClusterDownError(f"the node {address[0]}:{address[1]} hangs")
        return node

    async def _address(self, slot: int) -> Address:
        if self._moved:
            # The table is older than what was learned, perhaps because a node told it that was.
            self._look_soon()
        if not self._ranges:
            await self._look(self._ranges)
        address = self._moved.get(slot)
        if address is None:
            held = (row[2] for row in self._ranges if row[0] <= slot <= row[1])
            address = next(held, None)
        if address is None:
            self._forget(self._ranges)
            raise ClusterDownError(f"no node holds the slot {slot}")
        return address

    def _learn(self, error: MovedError) -> None:
        self._moved[error.slot_id] = (error.host or self._seeds[0][0], error.port)

    def _look_soon(self) -> None:
        """Look for the table again, unless it was looked for a moment ago."""
        if time.monotonic() - self._looked_at > LOOK_AGAIN_SECONDS:
            self.look_again()

    def _forget(self, table: object) -> None:
        """Look for the table again before the next command, unless somebody just did."""
        if table is self._ranges:
            self._ranges = []

    async def _look(self, before: object) -> None:
        async with self._looking:
            if self._ranges is not before:
                return
            self._looked_at = time.monotonic()
            self._ranges = await self._read_slot_ranges()
            self._moved = {}
            self._part_from_gone()

    async def _read_slot_ranges(self) -> list[Range]:
        """Return what the nodes tell, those first that are not known to hang."""
        error: Exception = ClusterDownError("no node was found")
        largest: list[Range] = []
        known = dict.fromkeys((*self._nodes, *self._seeds))
        for address in sorted(known, key=lambda address: _hangs(self._node(address))):
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    [rows] = await _send(self._node(address), [(("CLUSTER", "SLOTS"), {})])
            except (RedisError, OSError) as failure:
                error = failure
                continue
            if isinstance(rows, Exception):
                error = rows
            else:
                # A node that has just started may know a part of the table only.
                largest = max(largest, _ranges(rows, address[0]), key=_count_slots)
            if _count_slots(largest) == SLOTS:
                break
        if not largest:
            raise error
        return largest

    def _part_from_gone(self) -> None:
        """Close the clients of nodes that hold nothing any more."""
        held = {address for _, _, address in self._ranges}
        for address in self._nodes.keys() - held - set(self._seeds):
            node = self._nodes.pop(address)
            task = asyncio.get_running_loop().create_task(_close_later(node))
            self._gone.add(task)
            task.add_done_callback(self._gone.discard)

    def _node(self, address: Address) -> aioredis.Redis:
        node = self._nodes.get(address)
        if node is None:
            node = self._nodes[address] = self._open_node(address)
        return node


class ClusterPipeline(Pipeline):
    """Commands for several slots; sent together, and never sent twice."""

    def __init__(self, cluster: ClusterClient) -> None:
        super().__init__(cluster.connection_pool, cluster.response_callbacks, False, None)
        self._cluster = cluster

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Return the answers in order; raises the first error unless told not to."""
        commands: list[Command] = [(tuple(args), dict(kept)) for args, kept in self.command_stack]
        self.command_stack = []
        answers = await self._cluster.many(commands)
        return [_raise_if_error(answer) for answer in answers] if raise_on_error else answers


def _ranges(rows: Iterable[Any], host: str) -> list[Range]:
    """Return what a node tells; one that does not know its own name is asked under `host`."""
    return [
        (first, last, (master[0].decode() or host, master[1])) for first, last, master, *_ in rows
    ]


def _count_slots(ranges: Sequence[Range]) -> int:
    return sum(last - first + 1 for first, last, _ in ranges)


def key_of(command: Sequence[Any]) -> str | bytes | None:
    """Return the first key of a command, or None when it is about no key."""
    name = command[0] if isinstance(command[0], str) else command[0].decode()
    key: str | bytes | None
    match name:
        case "EVAL" | "EVALSHA":
            key = command[3]
        case "XREAD" | "XREADGROUP":
            key = command[command.index("STREAMS") + 1]
        case _:
            key = None if name in KEYLESS else command[1]
    return key


def _slot(key: str | bytes) -> int:
    return int(key_slot(key.encode() if isinstance(key, str) else key))


def _raise_if_error(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def _hangs(node: aioredis.Redis) -> bool:
    return line_of(node.connection_pool).hangs


async def _close_later(node: aioredis.Redis) -> None:
    """Close it once nobody waits for an answer of it, or could any more."""
    try:
        for _ in range(int(ANSWER_SECONDS / LOOK_AGAIN_SECONDS)):
            if not _in_use(node):
                break
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
    finally:
        await node.aclose()


def _in_use(node: aioredis.Redis) -> int:
    """Return how many connections to a node somebody uses."""
    counts: Any = node.connection_pool.get_connection_count()
    return sum(count for count, about in counts if "used" in about.values())


async def _send(node: Any, commands: Sequence[Command]) -> list[Any]:
    """Return what one node answers, in one trip."""
    if len(commands) == 1:
        args, options = commands[0]
        try:
            return [await node.execute_command(*args, **options)]
        except ResponseError as error:
            return [error]
    pipeline = node.pipeline(transaction=False)
    for args, options in commands:
        pipeline.execute_command(*args, **options)
    answers: list[Any] = await pipeline.execute(raise_on_error=False)
    return answers
