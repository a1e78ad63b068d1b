"""Checks at start that a Redis is suitable: its version, eviction policy and number of shards."""

from typing import TYPE_CHECKING, Any

from redis.exceptions import NoPermissionError, ResponseError

from broker.errors import UnsuitableServerError
from broker.keys import SHARDS
from broker.transport.cluster import ClusterClient
from broker.transport.connect import reachable

if TYPE_CHECKING:
    from redis.asyncio import Redis

OLDEST = (6, 2)


async def check_server(client: "Redis", shards: int) -> bool:
    """Return whether the server is a cluster; raises `UnsuitableServerError` if it could lose
    frames.
    """
    with reachable():
        nodes = await client.nodes() if isinstance(client, ClusterClient) else [client]
        infos = [await _info(node) for node in nodes]
        for info in infos:
            check_server_info(info)
        clustered = any(info.get("cluster_enabled") for info in infos)
        if clustered and not isinstance(client, ClusterClient):
            await _check_alone(client)
        found = await client.get(SHARDS)
        if found is None:
            found = await _set_shards(client, shards)
    if found is not None and int(found) != shards:
        raise UnsuitableServerError(
            f"expected {shards} shards, found a Redis that was set up with {int(found)}: "
            "the number of shards is fixed at the first start"
        )
    return clustered


async def _set_shards(client: "Redis", shards: int) -> bytes | None:
    """Store the number of shards at the first start; return the stored number."""
    try:
        await client.set(SHARDS, shards, nx=True)
    except NoPermissionError as error:
        raise UnsuitableServerError(
            "this Redis is not set up yet, and the user of REDIS_URL has no permission to do it; "
            "start a worker first, then this process again"
        ) from error
    found = await client.get(SHARDS)
    return found.encode() if isinstance(found, str) else found


def check_server_info(info: dict[str, Any]) -> None:
    """Raise `UnsuitableServerError` when the server is too old or evicts keys."""
    version = str(info.get("redis_version", ""))
    numbers = version_numbers(version)
    if numbers and numbers < OLDEST:
        raise UnsuitableServerError(f"expected Redis 6.2 or newer, found {version}")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise UnsuitableServerError(
            "expected maxmemory-policy noeviction, because any other may delete envelopes, found "
            "{policy}"
        )


async def _check_alone(client: Any) -> None:
    """Reject a single node of a cluster, which would redirect most conversations."""
    rows = await client.execute_command("CLUSTER", "SLOTS")
    masters = {tuple(row[2][:2]) for row in rows}
    if len(masters) > 1:
        raise UnsuitableServerError(
            "expected redis+cluster://host:port,... as the address of a cluster, found redis:// "
            f"and a cluster of {len(masters)} masters"
        )


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version, or () for a text without numbers."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


async def _info(client: "Redis") -> dict[str, Any]:
    try:
        return await client.info()
    except ResponseError:
        return {}  # fakeredis has no INFO, and evicts nothing
