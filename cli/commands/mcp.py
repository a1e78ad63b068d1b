"""Serves one MCP client over standard input and output."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cli.arguments import add_groups_argument, read_groups
from cli.commands.serve import answering
from config.settings import Settings, load_settings
from deploy.assembly.gateways.documents import make_library
from deploy.assembly.gateways.http_gateway import MCP, STORES, make_channel
from deploy.assembly.runtime import Runtime, desks
from deploy.errors import CommandError
from gateway.api_keys import StoredKeys
from gateway.http.access import AllowedHosts
from gateway.http.admission_queue import AdmissionQueue, QuestionSender
from gateway.http.context import HttpMeter
from gateway.http.library import CallersLibrary

if TYPE_CHECKING:
    from gateway.mcp.server import DeskTools


def require_package() -> None:
    """Raise `CommandError` if the MCP package is not installed."""
    if find_spec("mcp") is None:
        raise CommandError("the MCP server requires a package: pip install 'refdesk[mcp]'")


@asynccontextmanager
async def open_mcp_tools(
    runtime: Runtime, *, assistant: str | None, groups: Sequence[str]
) -> AsyncIterator["DeskTools"]:
    """Provide the tools; `groups` are the user's groups if the settings do not contain a key."""
    from gateway.mcp.endpoint import find_local_caller
    from gateway.mcp.server import DeskTools

    settings, client = runtime.settings, runtime.endpoint.client()
    key = "" if settings.mcp_key is None else settings.mcp_key.get_secret_value()
    if key and groups:
        raise CommandError(
            "--groups cannot be used with MCP_KEY, because the key defines the groups"
        )
    try:
        channel = await make_channel(
            runtime,
            client,
            StoredKeys(client),
            HttpMeter(),
            keyless=False,
            # Another process may serve the pages of documents: see PUBLIC_URL.
            has_reader=settings.source_links and settings.public_url is not None,
            hosts=AllowedHosts(),
        )
        channel = replace(channel, desks=desks(runtime, MCP))
        stopping = asyncio.Event()
        sender = QuestionSender(channel, stopping, AdmissionQueue(stopping))
        find_caller = find_local_caller(
            channel.guard, key=key, tenant=settings.tenant, assistant=assistant, groups=groups
        )
        library = CallersLibrary(channel, make_library(runtime))
        yield DeskTools(channel, sender, library, find_caller, stopping, unavailable=STORES)
    finally:
        await client.aclose()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk mcp`."""
    parser.add_argument("--assistant", metavar="NAME", help="assistant that answers the questions")
    add_groups_argument(parser)
    parser.epilog = (
        "MCP clients start this command themselves; docs/mcp.md shows how to configure them. "
        "`refdesk serve` answers over HTTP at /mcp."
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk mcp`."""
    require_package()
    asyncio.run(_serve(load_settings(), chosen.assistant, read_groups(chosen.groups)))
    return 0


async def _serve(settings: Settings, assistant: str | None, groups: tuple[str, ...]) -> None:
    from gateway.mcp.endpoint import serve_lines

    async with (
        answering(settings, alone=False) as runtime,
        open_mcp_tools(runtime, assistant=assistant, groups=groups) as tools,
    ):
        await serve_lines(tools, version("refdesk"))
