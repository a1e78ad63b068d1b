"""Shows what waits, what runs and what was given up, role by role."""

import argparse
import asyncio
from dataclasses import asdict

from broker.cluster import ClusterClient
from broker.port import RoleStatus
from config.settings import load_settings
from deploy.assembly import ROLES, Post, posted
from deploy.printing import say, say_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk status`."""
    parser.add_argument("--json", action="store_true", help="print as JSON")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk status`."""
    server, status = asyncio.run(_status())
    if chosen.json:
        say_json([asdict(role) for role in status])
        return 0
    say(server)
    say(f"{'role':<14}{'depth':>8}{'in flight':>11}{'oldest':>10}{'dead':>6}{'consumers':>11}")
    for role in status:
        say(
            f"{role.role:<14}{role.depth:>8}{role.in_flight:>11}"
            f"{role.oldest_seconds:>9.1f}s{role.dead:>6}{role.consumers:>11}"
        )
    return 0


async def _status() -> tuple[str, list[RoleStatus]]:
    async with posted(load_settings()) as post:
        return await _describe_server(post), list(await post.broker.status(ROLES))


async def _describe_server(post: Post) -> str:
    """Return which Redis answers, and whose it is."""
    if post.endpoint.played is not None:
        return "Redis is played inside this process, and forgets with it"
    client = post.endpoint.client()
    try:
        node = (await client.nodes())[0] if isinstance(client, ClusterClient) else client
        version = (await node.info("server"))["redis_version"]
    finally:
        await client.aclose()
    owner = "of the data folder" if post.settings.redis_url is None else "at REDIS_URL"
    return f"Redis {version} {owner}"
