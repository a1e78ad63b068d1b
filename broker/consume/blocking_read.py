"""Waits for the next entries of many streams, which no single command of a cluster can read."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from redis.exceptions import ClusterCrossSlotError

from broker.entry_codec import Entry
from broker.errors import BrokerUnavailableError
from broker.transport.connect import reachable

if TYPE_CHECKING:
    from broker.context import BrokerContext

AWAY_SECONDS = 1.0
"""How long the other streams are awaited while one cannot be read; then that one is tried again."""

Read = list[tuple[bytes, list[Entry]]]


async def next_entries(
    context: "BrokerContext", after: Mapping[bytes, bytes], *, seconds: float, count: int
) -> Read:
    """Return the entries after these ids, by stream; wait up to `seconds` for the first of them.

    In a cluster each stream is awaited on a separate connection. As soon as one of them returns an
    entry, the other reads are cancelled.
    """
    if not context.slots_apart:
        try:
            return await _read(context, after, seconds, count)
        except ClusterCrossSlotError:
            # Only `prepare` checks whether the server is a cluster; other clients find out here.
            context.slots_apart = True
    async with asyncio.TaskGroup() as tasks:
        waiting = {
            tasks.create_task(_read_or_error(context, {stream: entry_id}, seconds, count))
            for stream, entry_id in after.items()
        }
        try:
            first = await _first(waiting)
        finally:
            for task in waiting:
                task.cancel()
    # Raised outside the task group, which would wrap it into an exception group.
    if isinstance(first, BrokerUnavailableError):
        raise first
    return first


async def _first(
    waiting: "set[asyncio.Task[Read | BrokerUnavailableError]]",
) -> Read | BrokerUnavailableError:
    """Return the first result that has entries; an error only when every read failed.

    Once one read has failed, the others are awaited for `AWAY_SECONDS` at most.
    """
    errors: list[BrokerUnavailableError] = []
    pending, total = waiting, len(waiting)
    while pending:
        patience = AWAY_SECONDS if errors else None
        done, pending = await asyncio.wait(
            pending, timeout=patience, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            return []
        found: Read = []
        for task in done:
            read = task.result()
            if isinstance(read, BrokerUnavailableError):
                errors.append(read)
            else:
                found += read
        if found:
            return found
    return errors[0] if len(errors) == total else []


async def _read_or_error(
    context: "BrokerContext", after: Mapping[bytes, bytes], seconds: float, count: int
) -> Read | BrokerUnavailableError:
    try:
        return await _read(context, after, seconds, count)
    except BrokerUnavailableError as error:
        return error


async def _read(
    context: "BrokerContext", after: Mapping[bytes, bytes], seconds: float, count: int
) -> Read:
    client: Any = context.client
    with reachable():
        read = await client.execute_command(
            "XREAD", "COUNT", count, "BLOCK", max(1, int(seconds * 1000)),
            "STREAMS", *after.keys(), *after.values(),
        )  # fmt: skip
    return pairs(read)


def pairs(read: Any) -> Read:
    """Return streams with their entries, from the list or the dictionary that a client returns."""
    if not read:
        return []
    if isinstance(read, dict):
        return [(stream, batch[0]) for stream, batch in read.items()]
    return [(stream, entries) for stream, entries in read]
