"""Shows what waits, what runs and what was given up, role by role."""

import argparse
import asyncio
from dataclasses import asdict

from broker.port import RoleStatus
from config.settings import load_settings
from deploy.assembly import ROLES, connected
from deploy.printing import say, say_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk status`."""
    parser.add_argument("--json", action="store_true", help="print as JSON")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk status`."""
    status = asyncio.run(_status())
    if chosen.json:
        say_json([asdict(role) for role in status])
        return 0
    say(f"{'role':<14}{'depth':>8}{'in flight':>11}{'oldest':>10}{'dead':>6}{'consumers':>11}")
    for role in status:
        say(
            f"{role.role:<14}{role.depth:>8}{role.in_flight:>11}"
            f"{role.oldest_seconds:>9.1f}s{role.dead:>6}{role.consumers:>11}"
        )
    return 0


async def _status() -> list[RoleStatus]:
    async with connected(load_settings()) as broker:
        return list(await broker.status(ROLES))
