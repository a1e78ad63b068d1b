"""A client for Redis Cluster, with one ordinary client per node and a table of the slots of each
node.

redis-py has a cluster client, but it repeats commands blindly, closes the connections to all nodes
when one slot moves, sends ASKING on a different connection than the command, and asks a server
which keys each XREADGROUP uses. This client repeats a command only if a node reported that it did
not run it, because the slot is on another node or is being moved.
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

from broker.transport.connection import ANSWER_SECONDS, link_of

Address = tuple[str, int]
Range = tuple[int, int, Address]
"""The first and last slot of a range, and the address of the master that holds them."""
Command = tuple[tuple[Any, ...], Mapping[str, Any]]

SLOTS = 16_384
REDIRECTIONS = 5
"""Maximum number of redirections per command. After that, the caller must retry."""
NOT_DONE = (MovedError, TryAgainError)
"""Errors of a node that did not run the command, which can therefore be sent again immediately."""
LOOK_SECONDS = 1.0
"""How long a node may take to send the table of slots."""
LOOK_AGAIN_SECONDS = 0.25
"""How often the table is read while nodes hang or slots move."""
MOVING_SECONDS = 1.0
"""How long a command waits for keys that are being moved to another node."""
PAUSE_SECONDS = 0.02
"""The pause before a command on moving keys is sent again."""
KEYLESS = frozenset({"INFO", "PING", "TIME", "FLUSHALL", "SCRIPT FLUSH", "SCRIPT LOAD"})
"""Commands without a key. Every master runs them, and the response of the first one is returned."""


class ClusterClient(aioredis.Redis):
    """A client that sends each command to the master that holds its key.

    `open_node` creates the client of one node. A pipeline may span several slots; its commands for
    each slot are sent in one round trip.
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
        """Return the response of the node that holds the command's key."""
        key = key_of(args)
        if key is None:
            nodes = await self.nodes()
            answers = [(await _send(node, [(args, options)]))[0] for node in nodes]
            return raise_if_error(answers[0])
        [answer] = await self._on_slot(_slot(key), [(args, options)])
        return raise_if_error(answer)

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        """Return a pipeline without transaction, because its commands may span slots."""
        return ClusterPipeline(self)

    async def many(self, commands: Sequence[Command]) -> list[Any]:
        """Return the responses in the order of the commands; failed commands yield their errors."""
        groups: dict[int, list[int]] = {}
        slot = 0
        for index, (args, _) in enumerate(commands):
            key = key_of(args)
            # A command without a key, such as TIME, goes to the node of the command before it.
            slot = slot if key is None else _slot(key)
            groups.setdefault(slot, []).append(index)
        answers: list[Any] = [None] * len(commands)

        async def ask(slot: int, indexes: list[int]) -> None:
            slot_answers = await self._on_slot(slot, [commands[index] for index in indexes])
            for index, answer in zip(indexes, slot_answers, strict=True):
                answers[index] = answer

        asked = (ask(slot, indexes) for slot, indexes in groups.items())
        # Awaits all of them even if one fails, so that none still runs when the caller continues.
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
        """Return the address and client of the master that holds a key, even if it is
        unresponsive.
        """
        address = await self._address(_slot(key))
        return address, self._node(address)

    def look_again(self) -> None:
        """Read the table of slots again before the next command."""
        self._forget(self._ranges)

    async def disconnect(self) -> None:
        """Close the connections to every node; the next command connects again."""
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
        indexes = list(range(len(commands)))
        moves, until = 0, time.monotonic() + MOVING_SECONDS
        while indexes:
            new_answers = await self._send_following_redirects(
                slot, [commands[index] for index in indexes]
            )
            for index, answer in zip(indexes, new_answers, strict=True):
                answers[index] = answer
            refused = {index: type(answers[index]) for index in indexes}
            indexes = [index for index in indexes if refused[index] in NOT_DONE]
            moves += MovedError in refused.values()
            if moves >= REDIRECTIONS or time.monotonic() > until:
                break
            if TryAgainError in refused.values():
                await asyncio.sleep(PAUSE_SECONDS)
        return answers

    async def _send_following_redirects(self, slot: int, commands: Sequence[Command]) -> list[Any]:
        """Send to the owner of the slot or, after an ASK redirection, to the node that is importing
        the slot.
        """
        answers = await self._send_to_owner(slot, commands)
        for index, answer in enumerate(answers):
            if type(answer) is MovedError:
                self._learn(answer)
            elif type(answer) is AskError:
                answers[index] = await self._send_asking(answer, commands[index])
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
        """Send `ASKING` and the command, on one connection, to the node that is importing the
        slot.
        """
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
            raise ClusterDownError(f"the node {address[0]}:{address[1]} does not respond")
        return node

    async def _address(self, slot: int) -> Address:
        if self._moved:
            # The table is older than the redirection, perhaps because it came from a stale node.
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
        """Read the table again before the next command, unless it was read very recently."""
        if time.monotonic() - self._looked_at > LOOK_AGAIN_SECONDS:
            self.look_again()

    def _forget(self, table: object) -> None:
        """Read the table again before the next command, unless another task just did."""
        if table is self._ranges:
            self._ranges = []

    async def _look(self, before: object) -> None:
        async with self._looking:
            if self._ranges is not before:
                return
            self._looked_at = time.monotonic()
            self._ranges = await self._read_slot_ranges()
            self._moved = {}
            self._close_removed_nodes()

    async def _read_slot_ranges(self) -> list[Range]:
        """Read the table of slots, preferably from nodes that are not known to hang."""
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
                # A node that has just started may know only a part of the table.
                largest = max(largest, _ranges(rows, address[0]), key=_count_slots)
            if _count_slots(largest) == SLOTS:
                break
        if not largest:
            raise error
        return largest

    def _close_removed_nodes(self) -> None:
        """Close the clients of nodes that no longer hold slots."""
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
    """Commands for several slots, sent together and never repeated blindly."""

    def __init__(self, cluster: ClusterClient) -> None:
        super().__init__(cluster.connection_pool, cluster.response_callbacks, False, None)
        self._cluster = cluster

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Return the responses in order; raises the first error if `raise_on_error` is true."""
        commands: list[Command] = [(tuple(args), dict(kept)) for args, kept in self.command_stack]
        self.command_stack = []
        answers = await self._cluster.many(commands)
        return [raise_if_error(answer) for answer in answers] if raise_on_error else answers


def key_of(command: Sequence[Any]) -> str | bytes | None:
    """Return the first key of a command, or None for a command without a key."""
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


def raise_if_error(answer: Any) -> Any:
    """Return a response of a pipeline; raises it if it is an error."""
    if isinstance(answer, Exception):
        raise answer
    return answer


def _ranges(rows: Iterable[Any], host: str) -> list[Range]:
    """Parse a node's slot ranges; if a master has no host name, the node's `host` is used."""
    return [
        (first, last, (master[0].decode() or host, master[1])) for first, last, master, *_ in rows
    ]


def _count_slots(ranges: Sequence[Range]) -> int:
    return sum(last - first + 1 for first, last, _ in ranges)


def _slot(key: str | bytes) -> int:
    return int(key_slot(key.encode() if isinstance(key, str) else key))


def _hangs(node: aioredis.Redis) -> bool:
    return link_of(node.connection_pool).hangs


async def _close_later(node: aioredis.Redis) -> None:
    """Close a client once none of its connections is in use, at most `ANSWER_SECONDS` later."""
    try:
        for _ in range(int(ANSWER_SECONDS / LOOK_AGAIN_SECONDS)):
            if not _in_use(node):
                break
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
    finally:
        await node.aclose()


def _in_use(node: aioredis.Redis) -> int:
    """Return how many connections to a node are in use."""
    counts: Any = node.connection_pool.get_connection_count()
    return sum(count for count, about in counts if "used" in about.values())


async def _send(node: Any, commands: Sequence[Command]) -> list[Any]:
    """Send commands to one node in one round trip, and return the responses."""
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
