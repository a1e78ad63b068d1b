"""Runs a worker process for some roles, or for all roles, until SIGTERM."""

import argparse
import asyncio
import sys
from contextlib import AsyncExitStack

from cli.printing import print_line
from config.settings import Settings, load_settings
from deploy.assembly.assistant_prompts import TASK_OF_ROLE
from deploy.assembly.model_choice import vendor_access
from deploy.assembly.models import check_keys
from deploy.assembly.runtime import READ, ROLES, WRITE, working
from deploy.errors import CommandError
from worker.process import collect_rarely
from worker.shutdown import stop_on_signals

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SHORTEST_SECONDS = 60
NAMED = (*ROLES, READ, WRITE)
"""The roles for which a process can be started; the last two process documents for a server
index.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk worker`."""
    parser.add_argument(
        "--role",
        nargs="+",
        required=True,
        metavar="ROLE",
        help=f"one or more of: {', '.join(NAMED)}",
    )
    parser.add_argument(
        "--port",
        type=int,
        help="port of /healthz, /readyz and /metrics (default: HEALTH_PORT; 0: none)",
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk worker`."""
    roles = tuple(dict.fromkeys(name for word in chosen.role for name in word.split(",")))
    unknown = sorted(set(roles) - set(NAMED))
    if unknown:
        raise CommandError(f"expected roles of {', '.join(NAMED)}; found {', '.join(unknown)}")
    settings = load_settings()
    port = settings.health_port if chosen.port is None else chosen.port
    asyncio.run(serve(settings, roles, port))
    return 0


async def serve(
    settings: Settings, roles: tuple[str, ...], port: int, *, refresh_seconds: float | None = None
) -> None:
    """Run workers for `roles` until SIGTERM or SIGINT; with all roles, also refresh the sources.

    `refresh_seconds` is the interval at which sources without a schedule are ingested again.
    """
    stop = asyncio.Event()
    collect_rarely()
    await check_keys(
        vendor_access(settings),
        map(settings.model_of, [TASK_OF_ROLE[role] for role in roles if role in TASK_OF_ROLE]),
    )
    async with AsyncExitStack() as stack:
        grace = await stack.enter_async_context(stop_on_signals(stop))
        runtime = await stack.enter_async_context(
            working(settings, roles, health_port=port, grace=grace)
        )
        every = set(ROLES) <= set(roles)
        if every:
            from deploy.assembly.source_refresh import refresh

            await stack.enter_async_context(refresh(runtime, refresh_seconds))
        _print_now(f"working as {'every role' if every else ', '.join(roles)}; stop with Ctrl-C")
        if port:
            _print_now(f"serving /healthz, /readyz and /metrics on port {port}")
        await stop.wait()
        _print_now("stopping: finishing running work")


def add_up_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk up`."""
    parser.add_argument(
        "--port",
        type=int,
        help="port of /healthz, /readyz and /metrics (default: HEALTH_PORT; 0: none)",
    )
    parser.add_argument(
        "--refresh",
        type=parse_interval,
        metavar="TIME",
        help="read all ingested sources again at this interval, such as 30m, 6h or 1d",
    )


def parse_interval(text: str) -> float:
    """Return the seconds in a duration such as `6h`, which must be at least a minute."""
    number, unit = text[:-1], _UNITS.get(text[-1:])
    is_number = number.isascii() and number.isdigit() and len(number) < 6
    if unit is None or not is_number or int(number) * unit < _SHORTEST_SECONDS:
        raise argparse.ArgumentTypeError(
            f"expected a time of at least a minute such as 30m, 6h or 1d, found {text!r}"
        )
    return float(int(number) * unit)


def run_up(chosen: argparse.Namespace) -> int:
    """Run `refdesk up`."""
    settings = load_settings()
    port = settings.health_port if chosen.port is None else chosen.port
    asyncio.run(serve(settings, ROLES, port, refresh_seconds=chosen.refresh))
    return 0


def _print_now(text: str) -> None:
    """Print without buffering, because a script that started this command in the background may
    wait for the text.
    """
    print_line(text)
    sys.stdout.flush()
