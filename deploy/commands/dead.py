"""Looks at dead letters, runs them again, or drops them."""

import argparse
import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

from broker.port import Broker, DeadLetter, Submission
from config.settings import load_settings
from deploy.assembly import connected
from deploy.command import CommandError
from deploy.printing import say, say_json
from envelope.envelope import decode
from envelope.errors import DecodeError
from envelope.role import Role

ACTIONS = ("list", "show", "retry", "drop")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk dead`."""
    parser.add_argument("action", choices=ACTIONS, help="what to do")
    parser.add_argument("id", nargs="?", help="the dead letter's id, as `list` prints it")
    parser.add_argument("--limit", type=int, default=50, help="how many to list")
    parser.add_argument("--json", action="store_true", help="print as JSON")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk dead`."""
    if chosen.action != "list" and chosen.id is None:
        raise CommandError(f"dead {chosen.action} needs the id of a dead letter; see: dead list")
    return asyncio.run(_act(chosen))


async def _act(chosen: argparse.Namespace) -> int:
    settings = load_settings()
    async with connected(settings) as broker:
        if chosen.action == "list":
            return _list(await broker.dead_letters(limit=chosen.limit), as_json=chosen.json)
        letter = await broker.dead_letter(chosen.id)
        if letter is None:
            raise CommandError(f"there is no dead letter {chosen.id!r}; see: dead list")
        if chosen.action == "show":
            return _show(letter, as_json=chosen.json)
        if chosen.action == "drop":
            await broker.drop_dead_letter(letter.id)
            say(f"dropped {letter.id}")
            return 0
        message_id = await _retry(broker, letter, settings.deadline_seconds)
        say(f"running again as message {message_id}; follow it with: refdesk trace {message_id}")
        return 0


async def _retry(broker: Broker, letter: DeadLetter, deadline_seconds: float) -> str:
    """Submit the whole question again, from its start, under a new and linked message id."""
    try:
        envelope = decode(letter.frame)
    except DecodeError as error:
        raise CommandError(f"this frame cannot run again: {error}") from error
    door = {name: envelope.payload[name] for name in _DOOR if name in envelope.payload}
    message_id = f"{envelope.message_id[:110]}-retry-{uuid4().hex[:8]}"
    fresh = envelope.changed(
        message_id=message_id,
        payload=door,
        hop=None,
        retries=0,
        process_count=0,
        total_processing_time=0.0,
        sender_role="",
        target_role=Role.MANAGER.value,
        result_list="",
    )
    await broker.submit(
        Submission(
            question=fresh.question,
            frame=fresh.encode(),
            role=Role.MANAGER.value,
            deadline_seconds=deadline_seconds,
            last_resort={"outcome": "failed", "text": "", "language": "en"},
            accepted={"retry_of": envelope.message_id, "text": door.get("text")},
        )
    )
    return message_id


_DOOR = ("text", "command", "arguments")


def _list(letters: Sequence[DeadLetter], *, as_json: bool) -> int:
    shown = list(letters)
    if as_json:
        say_json([_fields(letter) for letter in shown])
        return 0
    if not shown:
        say("no dead letters")
    for letter in shown:
        say(
            f"{letter.id}  {letter.role:<13} {letter.reason}  "
            f"attempts {letter.attempts}  {_at(letter)}"
        )
        say(f"    {letter.error[:74]}")
    return 0


def _show(letter: DeadLetter, *, as_json: bool) -> int:
    fields = _fields(letter)
    fields["frame"] = letter.frame.decode("utf-8", errors="backslashreplace")
    if as_json:
        say_json(fields)
        return 0
    for name, value in fields.items():
        say(f"{name:<13} {value}")
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
        "at": _at(letter),
        "conversation": question.conversation_id if question is not None else None,
        "message": question.message_id if question is not None else None,
    }


def _at(letter: DeadLetter) -> str:
    return datetime.fromtimestamp(letter.at, UTC).isoformat(timespec="seconds")
