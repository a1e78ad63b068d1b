"""Holds a conversation in the terminal, and shows the stage of each question."""

import argparse
import asyncio
import importlib
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from uuid import uuid4

from pydantic import JsonValue

from config.settings import load_settings
from deploy.assembly.runtime import open_desk
from deploy.cli.arguments import add_groups_argument, read_groups
from deploy.cli.commands.ask import add_way_arguments, check_strategy
from deploy.cli.draft_display import show_progress
from deploy.cli.printing import choices, list_operator_notes, print_line, print_reply
from gateway.desk import Desk, Message
from gateway.errors import GatewayError
from gateway.text import parse_command

COMMANDS = ("clear_history", "clear_all", "set_language", "get_stats", "help")
LEAVING = frozenset({"/quit", "/exit"})
GREETING = "Ask a question. /help lists the commands; /quit or Ctrl-D exits."
CHOOSING = "Answer with a number or with text."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk chat`."""
    parser.add_argument("--conversation", metavar="ID", help="continue this conversation")
    add_groups_argument(parser)
    add_way_arguments(parser)


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk chat`."""
    conversation = chosen.conversation or f"chat-{uuid4().hex[:12]}"
    if sys.stdin.isatty():
        # Importing readline gives `input` editing keys and a history.
        importlib.import_module("readline")
    with _terminal_as_it_was():
        first = Message(
            "",
            conversation,
            "",
            groups=read_groups(chosen.groups),
            strategy=check_strategy(chosen.strategy),
            persona=chosen.persona,
        )
        asyncio.run(_chat(first, chosen.way))
    return 0


@contextmanager
def _terminal_as_it_was() -> Iterator[None]:
    """Restore the terminal's state when Ctrl-C ends the chat in the middle of a line."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


async def _chat(first: Message, way: str | None) -> None:
    """Ask what the person types; all messages have the groups, strategy and persona of `first`."""
    settings = load_settings(**({} if way is None else {"way": way}))
    async with open_desk(settings) as desk:
        print_line(GREETING)
        options: list[str] = []
        while (line := await _next_line()) is not None:
            text = _resolve_choice(line, options)
            command, arguments = parse_command(text, COMMANDS)
            message = replace(
                first,
                text=text,
                message_id=uuid4().hex[:12],
                command=command,
                arguments=arguments,
                shows_drafts=sys.stdout.isatty(),
            )
            reply = await _ask_desk(desk, message)
            options = [str(choice.get("value")) for choice in choices(reply)]
            _show(reply, asked_back=bool(options))
            for note in list_operator_notes(reply, settings):
                print_line(note)


def _show(reply: dict[str, JsonValue], *, asked_back: bool) -> None:
    if reply:
        print_reply(reply)
    if asked_back and sys.stdin.isatty():
        print_line(CHOOSING)
    print_line()


async def _next_line() -> str | None:
    """Return the next line that is not empty, or None when the person ends the chat."""
    while (line := await _read_beside()) is not None:
        if line in LEAVING:
            return None
        if line:
            return line
    if sys.stdin.isatty():
        print_line()  # Ctrl-D leaves the cursor behind the prompt
    return None


async def _read_beside() -> str | None:
    """Read a line in a daemon thread, so that Ctrl-C ends the chat immediately."""
    loop = asyncio.get_running_loop()
    read: asyncio.Future[str | None] = loop.create_future()

    def settle(line: str | None) -> None:
        if not read.done():
            read.set_result(line)

    def work() -> None:
        line = _read()
        with suppress(RuntimeError):  # the loop has ended before the person typed
            loop.call_soon_threadsafe(settle, line)

    threading.Thread(target=work, name="reading", daemon=True).start()
    return await read


def _read() -> str | None:
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except (EOFError, OSError, ValueError):
        return None


def _resolve_choice(line: str, options: list[str]) -> str:
    """Return the option that a number selects; any other text is returned unchanged."""
    if line.isdecimal() and 1 <= int(line) <= len(options):
        return options[int(line) - 1]
    return line


async def _ask_desk(desk: Desk, message: Message) -> dict[str, JsonValue]:
    try:
        await desk.submit(message)
    except GatewayError as error:
        sys.stderr.write(f"refdesk: {error}\n")
        return {}
    reply = await show_progress(desk, message)
    if not reply:
        sys.stderr.write(
            "refdesk: there was no answer before the deadline; to see whether "
            "workers are running: refdesk status\n"
        )
    return reply
