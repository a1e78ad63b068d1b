"""Answers one MCP client over standard input and output."""

import argparse
import asyncio
from importlib.metadata import version

from config.settings import Settings, load_settings
from deploy.assembly.gateways.mcp_gateway import open_mcp_tools, require_package
from deploy.cli.arguments import add_groups_argument, read_groups
from deploy.cli.commands.serve import answering


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk mcp`."""
    parser.add_argument("--assistant", metavar="NAME", help="the assistant that answers")
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
