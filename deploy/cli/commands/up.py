"""Runs every role in this process, until SIGTERM."""

import argparse
import asyncio

from config.settings import load_settings
from deploy.assembly.runtime import ROLES
from deploy.cli.commands.worker import serve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk up`."""
    parser.add_argument(
        "--port",
        type=int,
        help="port of /healthz, /readyz and /metrics (default: HEALTH_PORT; 0: none)",
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk up`."""
    settings = load_settings()
    port = settings.health_port if chosen.port is None else chosen.port
    asyncio.run(serve(settings, ROLES, port))
    return 0
