"""Talks to the desk in the terminal, and shows the stage a question is in while it works."""

import argparse
import asyncio
import sys
from uuid import uuid4

from pydantic import JsonValue

from config.settings import load_settings
from deploy.assembly import opened
from deploy.printing import reply_lines, say
from gateway.desk import Desk, Message, parsed
from gateway.errors import GatewayError

COMMANDS = ("clear_history", "clear_all", "set_language", "get_stats", "help")
GREETING = "Ask a question. /help lists the commands; an empty line or Ctrl-D leaves."
ERASE_LINE = "\r\x1b[2K"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk chat`."""
    parser.add_argument("--conversation", metavar="ID", help="go on with this conversation")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk chat`."""
    conversation = chosen.conversation or f"chat-{uuid4().hex[:12]}"
    asyncio.run(_chat(conversation))
    return 0


async def _chat(conversation_id: str) -> None:
    async with opened(load_settings()) as desk:
        say(GREETING)
        options: list[str] = []
        while (line := await asyncio.to_thread(_read)) is not None:
            text = _chosen(line, options)
            command, arguments = parsed(text, COMMANDS)
            message = Message(text, conversation_id, uuid4().hex[:12], command, arguments)
            reply = await _answered(desk, message)
            options = _options(reply)
            for shown in reply_lines(reply) if reply else ():
                say(shown)
            say()


def _read() -> str | None:
    try:
        line = input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return None
    return line or None


def _chosen(line: str, options: list[str]) -> str:
    """A number picks the option it stands before."""
    if line.isdecimal() and 1 <= int(line) <= len(options):
        return options[int(line) - 1]
    return line


async def _answered(desk: Desk, message: Message) -> dict[str, JsonValue]:
    try:
        await desk.submit(message)
    except GatewayError as error:
        sys.stderr.write(f"refdesk: {error}\n")
        return {}
    reply: dict[str, JsonValue] = {}
    async for entry in desk.follow(desk.question(message)):
        if entry.kind == "routed":
            _show_stage(str(entry.fields.get("to")))
        if entry.kind == "finished":
            reply = entry.fields
    _show_stage("")
    return reply


def _show_stage(stage: str) -> None:
    if sys.stdout.isatty():
        sys.stdout.write(f"{ERASE_LINE}{f'… {stage}' if stage else ''}")
        sys.stdout.flush()


def _options(reply: dict[str, JsonValue]) -> list[str]:
    actions = reply.get("suggested_actions")
    return [
        str(action["value"])
        for action in (actions if isinstance(actions, list) else ())
        if isinstance(action, dict) and action.get("kind") == "option"
    ]
