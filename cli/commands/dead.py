"""Shows dead letters, retries them, or drops them."""

import argparse
import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from broker.values import DeadLetter
from cli.printing import print_line, say_json
from config.settings import load_settings
from deploy.assembly.runtime import connect_runtime, dead_letters
from deploy.errors import CommandError
from envelope.envelope import DecodeError, decode

ACTIONS = ("list", "show", "retry", "drop")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk dead`."""
    parser.add_argument(
        "action",
        choices=ACTIONS,
        help="list: list the newest dead letters; show: show one with its envelope; retry: run "
        "its question again from the start, as a new message; drop: delete one",
    )
    parser.add_argument("id", nargs="?", help="id of a dead letter, as `list` prints it")
    parser.add_argument("--limit", type=int, default=50, help="maximum number to list (default 50)")
    parser.add_argument(
        "--deliver",
        action="store_true",
        help="with retry: send the reply to the channel that asked (default: only `refdesk "
        "trace` shows it)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk dead`."""
    if chosen.action != "list" and chosen.id is None:
        raise CommandError(
            f"refdesk dead {chosen.action} requires the id of a dead letter; "
            "`refdesk dead list` shows the ids"
        )
    return asyncio.run(_act(chosen))


def find_branch(letter: DeadLetter) -> str:
    """Return the path of the branch that ended as this letter, or "" if it ended the question."""
    try:
        return decode(letter.frame).branch
    except DecodeError:
        return ""


async def _act(chosen: argparse.Namespace) -> int:
    async with connect_runtime(load_settings()) as runtime:
        broker = runtime.broker
        if chosen.action == "list":
            return _list(
                await broker.admin.list_dead_letters(limit=chosen.limit), as_json=chosen.json
            )
        letter = await broker.admin.read_dead_letter(chosen.id)
        if letter is None:
            raise CommandError(
                f"the dead letter {chosen.id!r} does not exist; `refdesk dead list` shows the ids"
            )
        if chosen.action == "show":
            return _show(letter, as_json=chosen.json)
        if chosen.action == "drop":
            await broker.admin.drop_dead_letter(letter.id)
            print_line(f"dropped {letter.id}")
            return 0
        message_id = await dead_letters(runtime).retry(letter, deliver=chosen.deliver)
        print_line(
            f"running again as message {message_id}; follow it with: refdesk trace {message_id}"
        )
        return 0


def _list(letters: Sequence[DeadLetter], *, as_json: bool) -> int:
    shown = list(letters)
    if as_json:
        say_json([_fields(letter) for letter in shown])
        return 0
    if not shown:
        print_line("no dead letters")
    for letter in shown:
        branch = find_branch(letter)
        print_line(
            f"{letter.id}  {letter.role:<13} {letter.reason}  "
            f"attempts {letter.attempts}  {_at(letter)}"
        )
        if branch:
            print_line(f"    branch {branch[:67]}")
        print_line(f"    {letter.error[:74]}")
    return 0


def _show(letter: DeadLetter, *, as_json: bool) -> int:
    fields = _fields(letter)
    fields["frame"] = letter.frame.decode("utf-8", errors="backslashreplace")
    if as_json:
        say_json(fields)
        return 0
    for name, value in fields.items():
        for part in value if isinstance(value, list) else [value]:
            print_line(f"{name:<13} {part}")
    return 0


def _fields(letter: DeadLetter) -> dict[str, object]:
    question = letter.question
    return {
        "id": letter.id,
        "role": letter.role,
        "reason": letter.reason,
        "error": letter.error,
        "attempts": letter.attempts,
        "worker": letter.worker,
        "accepted_at": _moment(letter.accepted_at),
        "queued_at": _moment(letter.queued_at),
        "at": _moment(letter.at),
        "deaths": [f"{death.worker} at {_moment(death.at)}" for death in letter.deaths],
        "conversation": question.conversation_id if question is not None else None,
        "message": question.message_id if question is not None else None,
        "branch": find_branch(letter) or None,
    }


def _at(letter: DeadLetter) -> str:
    return datetime.fromtimestamp(letter.at, UTC).isoformat(timespec="seconds")


def _moment(seconds: float) -> str | None:
    """Return a time to the millisecond, or None if it is unknown."""
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
