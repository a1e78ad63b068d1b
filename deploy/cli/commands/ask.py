"""Asks one question and prints the answer with its sources."""

import argparse
import asyncio
import shlex
import sys
from collections.abc import Mapping
from uuid import uuid4

from pydantic import JsonValue

from config.settings import Settings, load_settings
from deploy.assembly.runtime import open_desk
from deploy.cli.arguments import add_groups_argument, read_groups
from deploy.cli.draft_display import show_progress
from deploy.cli.main import EXIT_STATUSES
from deploy.cli.model_in_use import say_models_once
from deploy.cli.printing import choices, list_operator_notes, print_reply, say_json
from deploy.errors import CommandError
from envelope.tool_loop import WayName
from gateway.answer import safe_reply
from gateway.desk import Message
from gateway.text import clean_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk ask`."""
    parser.add_argument(
        "question", nargs="*", help="the question (default: read from standard input)"
    )
    parser.add_argument("--conversation", metavar="ID", help="continue this conversation")
    parser.add_argument(
        "--message",
        metavar="ID",
        help="id of the message; a question that is sent twice with the same id is answered once",
    )
    add_groups_argument(parser)
    add_way_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the complete reply as JSON")
    parser.epilog = "exit status: 0 answered, 3 clarification, 4 refused, 5 failed, 1 error"


def add_way_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose how questions are answered."""
    parser.add_argument(
        "--way",
        choices=[way.value for way in WayName],
        help="how to answer: one search, a loop of tool calls, specialists for reviews, a swarm "
        "of workers, or the way that fits the question (default: the setting WAY)",
    )
    parser.add_argument(
        "--strategy",
        metavar="NAME",
        help="how a swarm divides the question: intelligent, parallel or council "
        "(default: the setting SWARM_STRATEGY)",
    )
    parser.add_argument(
        "--persona", default="", help="role or person in whose voice a swarm answers"
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk ask`; the exit status depends on the outcome."""
    text = clean_text(" ".join(chosen.question) if chosen.question else _from_standard_input())
    message = Message(
        text=text,
        conversation_id=chosen.conversation or f"ask-{uuid4().hex[:12]}",
        message_id=chosen.message or uuid4().hex[:12],
        shows_drafts=not chosen.json and sys.stdout.isatty(),
        groups=read_groups(chosen.groups),
        strategy=check_strategy(chosen.strategy),
        persona=chosen.persona,
    )
    return asyncio.run(_ask(message, as_json=chosen.json, way=chosen.way))


def check_strategy(name: str | None) -> str:
    """Return the strategy if it exists, empty if none is given; raises `CommandError`."""
    if not name:
        return ""
    # It imports the swarm, which other questions do not need.
    from agents.swarm.errors import UnknownName
    from agents.swarm.strategies import make_strategies

    try:
        return make_strategies().find(name).name
    except UnknownName as error:
        raise CommandError(str(error)) from error


def _from_standard_input() -> str:
    if sys.stdin.isatty():
        sys.stderr.write("Type the question, then press Ctrl-D on an empty line:\n")
    return sys.stdin.read()


async def _ask(message: Message, *, as_json: bool, way: str | None) -> int:
    settings = load_settings(**({} if way is None else {"way": way}))
    async with open_desk(settings) as desk:
        if as_json or not sys.stdout.isatty():
            reply = await desk.ask(message)
        else:
            await desk.submit(message)
            reply = await show_progress(desk, message)
            if not reply:
                reply = desk.last_resort(desk.question(message), message.language)
        # Closing waits for calls of workers that were still running when the answer was finished.
        _show(reply, message, settings, as_json=as_json)
    return EXIT_STATUSES.get(str(reply.get("outcome")), 1)


def name_report_command(reply: Mapping[str, JsonValue]) -> str:
    """Return the command that writes the report of a review, or "" if the reply has no report."""
    documents, against = _list_ids(reply.get("documents")), _list_ids(reply.get("against"))
    if not reply.get("review_report"):
        return ""
    if len(documents) != 1 or not against:
        return ""
    rules = " ".join(f"--against {shlex.quote(one)}" for one in against)
    return f"refdesk review {shlex.quote(documents[0])} {rules} --report report.md"


def _list_ids(documents: JsonValue) -> list[str]:
    known = documents if isinstance(documents, list) else []
    return [str(one.get("document_id")) for one in known if isinstance(one, dict)]


def _show(
    reply: dict[str, JsonValue], message: Message, settings: Settings, *, as_json: bool
) -> None:
    if not as_json:
        say_models_once(settings)
    for note in list_operator_notes(reply, settings):
        sys.stderr.write(f"{note}\n")
    if as_json:
        say_json(safe_reply(reply)[0])
    else:
        print_reply(reply)
        if reply.get("outcome") == "failed":
            sys.stderr.write(f"refdesk: for details run: refdesk trace {message.message_id}\n")
        if reply.get("outcome") == "clarification" and choices(reply):
            answer = f'refdesk ask --conversation {message.conversation_id} "..."'
            sys.stderr.write(f"refdesk: to answer this, run: {answer}\n")
        if command := name_report_command(reply):
            sys.stderr.write(f"refdesk: to write the report to a file, run:\n{command}\n")
    sys.stdout.flush()
