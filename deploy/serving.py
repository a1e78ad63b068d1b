"""Where the commands of push doors listen, and the secrets they cannot do without."""

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pydantic import SecretStr

from deploy.command import CommandError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

LOCAL = "127.0.0.1"


def add_place(parser: argparse.ArgumentParser, port: int) -> None:
    """Add where to listen, and whether to work here as well."""
    parser.add_argument(
        "--port", type=int, default=port, help=f"listen here for events ({port}); 0: any"
    )
    parser.add_argument("--host", default=LOCAL, help=f"listen at this address ({LOCAL})")
    parser.add_argument(
        "--gateway-only",
        action="store_true",
        help="leave the work to `refdesk up` or `refdesk worker` on the same Redis",
    )


def required(secret: SecretStr | None, name: str, what: str) -> str:
    """Return a secret; raises `CommandError` when it is not set."""
    value = "" if secret is None else secret.get_secret_value()
    if not value:
        raise CommandError(f"expected {what} in {name}, found nothing")
    return value


@asynccontextmanager
async def served(app: "ASGIApp", host: str, port: int) -> AsyncIterator[int]:
    """Serve an application while inside; return the port."""
    from gateway.http.serving import listening, serving

    listener = listening(host, port)
    try:
        async with serving(app, listener, asyncio.Event()):
            yield listener.getsockname()[1]
    finally:
        listener.close()
