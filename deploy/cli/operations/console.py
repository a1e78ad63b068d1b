"""Prints a one-time link to the console of a running `refdesk serve`."""

import argparse
import asyncio

from config.settings import Settings, load_settings
from deploy.assembly.recording import keeps_records
from deploy.assembly.runtime import connect_runtime
from deploy.cli.printing import print_line
from deploy.errors import CommandError
from memory.console_state import RedisConsoleSessions

PORT = 8000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk console`."""
    parser.add_argument(
        "--port",
        type=int,
        default=PORT,
        help=f"port of `refdesk serve` on this machine, if PUBLIC_URL is unset (default {PORT})",
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk console`."""
    asyncio.run(_print_link(load_settings(), chosen.port))
    return 0


async def _print_link(settings: Settings, port: int) -> None:
    if not keeps_records(settings):
        raise CommandError(
            "the console shows records, but RECORDS_DAYS is 0, so there are none; "
            "set RECORDS_DAYS and restart"
        )
    async with connect_runtime(settings) as runtime:
        if not runtime.endpoint.durable:
            raise CommandError(
                "this command needs the Redis server of `refdesk serve`, and there is none: "
                "install redis-server, or set REDIS_URL"
            )
        client = runtime.endpoint.client()
        try:
            code = await RedisConsoleSessions(client).make_code()
        finally:
            await client.aclose()
    base = (settings.public_url or f"http://127.0.0.1:{port}").rstrip("/")
    print_line(f"{base}/console/login?code={code}")
    print_line("opens the console once, within ten minutes, while `refdesk serve` runs")
