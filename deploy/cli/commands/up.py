"""Runs every role in this process, until SIGTERM."""

import argparse
import asyncio

from config.settings import load_settings
from deploy.assembly.runtime import ROLES
from deploy.cli.commands.worker import serve

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SHORTEST_SECONDS = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
        help="read all ingested sources again every TIME, such as 30m, 6h or 1d",
    )


def parse_interval(text: str) -> float:
    """Return the seconds of a time such as `6h`, at least a minute."""
    number, unit = text[:-1], _UNITS.get(text[-1:])
    is_number = number.isascii() and number.isdigit() and len(number) < 6
    if unit is None or not is_number or int(number) * unit < _SHORTEST_SECONDS:
        raise argparse.ArgumentTypeError(
            f"expected a time of at least a minute such as 30m, 6h or 1d, found {text!r}"
        )
    return float(int(number) * unit)


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk up`."""
    settings = load_settings()
    port = settings.health_port if chosen.port is None else chosen.port
    asyncio.run(serve(settings, ROLES, port, refresh_seconds=chosen.refresh))
    return 0
