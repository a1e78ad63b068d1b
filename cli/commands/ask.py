"""Asks one question, or runs a conversation in the terminal, and shows the progress of an answer.

The draft is erased when the answer is printed. Sentences that were shown but are not part of the
answer stay above it, struck out, so that nobody relies on them. Progress is shown only if the
output is a terminal.
"""

import argparse
import asyncio
import importlib
import shlex
import shutil
import sys
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import zip_longest
from uuid import uuid4

from pydantic import JsonValue

from broker.values import Fields
from citations.links import clean_text
from cli.arguments import add_format_argument, add_groups_argument, read_groups
from cli.main import EXIT_STATUSES
from cli.model_in_use import describe_models, say_models_once
from cli.printing import (
    ERASE_LINE,
    WIDTH,
    choices,
    columns,
    cut_line,
    list_operator_notes,
    print_line,
    print_reply,
    say_json,
    wrap,
    write_lines,
)
from config.settings import load_settings
from config.texts import load_texts
from deploy.assembly.runtime import open_desk
from deploy.errors import CommandError
from deploy.generate.pods import find_step
from envelope.json_values import read_list, read_objects
from envelope.tool_loop import WayName
from gateway.answer import answer_of, safe_reply
from gateway.desk import Desk, Message
from gateway.errors import GatewayError
from gateway.events import DraftFollower, Event
from gateway.text import clean_text as clean_question
from gateway.text import parse_command

LINE_UP = "\x1b[1A"
STRUCK, PLAIN = "\x1b[9m", "\x1b[0m"
MOST_ROWS = 20
"""Maximum number of rows of a draft on the screen, because more could not be erased on a small
terminal.
"""
COMMANDS = ("clear_history", "clear_all", "set_language", "get_stats", "help")
LEAVING = frozenset({"/quit", "/exit"})
GREETING = "Ask a question. /help lists the commands; /quit or Ctrl-D exits."
CHOOSING = "Answer with a number or with text."


class DraftDisplay:
    """The lines below the question that change until the answer is printed."""

    def __init__(self) -> None:
        self._texts = load_texts()
        self._language = "en"
        self._is_terminal = sys.stdout.isatty()
        self._rows = 0
        self._draft = ""
        self._stage = ""
        self._plan: dict[str, str] = {}
        self._ended: set[str] = set()

    def show_step(self, decision: Fields) -> None:
        """Show the stage of the question below its draft, and how many of its branches have
        ended.
        """
        if "branch" in decision:
            # A branch can take several steps, and can branch itself: only its end is shown.
            if decision.get("target") == "return":
                self._ended.add(str(decision["branch"]))
        else:
            stage = str(decision.get("target"))
            self._stage = "" if stage == "final" else stage
            self._plan, self._ended = _read_plan(decision), set(_read_completed(decision))
            self._plan = {**_read_completed(decision), **self._plan}
        self._draw()

    def read_language(self, run: Fields) -> None:
        """Show the following steps in the language of the question, once an agent has detected
        it.
        """
        writes = run.get("writes")
        language = writes.get("language") if isinstance(writes, dict) else None
        if isinstance(language, str) and language in self._texts.languages:
            self._language = language

    def show_event(self, event: Event) -> None:
        """Show new sentences of the draft, and strike out those that were retracted."""
        if event.name == "draft":
            kept = self._draft[: int(str(event.data["offset"]))]
            self._draft = f"{kept}{event.data['text']}"
            self._draw()
        elif event.name == "retracted":
            self._strike_out([str(sentence) for sentence in read_list(event.data["sentences"])])

    def end(self) -> None:
        """Erase the draft and the stage."""
        self._draft = self._stage = ""
        self._draw()

    def _strike_out(self, sentences: Sequence[str]) -> None:
        self._draft = ""
        if not self._is_terminal:
            return
        self._erase()
        for sentence in sentences:
            for line in wrap(clean_text(sentence)):
                sys.stdout.write(f"{STRUCK}{line}{PLAIN}\n")
        sys.stdout.write("\n")
        self._draw()

    def _draw(self) -> None:
        if not self._is_terminal:
            return
        self._erase()
        lines = _select_last(wrap(clean_text(self._draft))) if self._draft else []
        for name, label in self._plan.items():
            if label:
                lines.append(cut_line(f"  {'✓' if name in self._ended else '–'} {label}", end=""))
        write_lines(lines)
        sys.stdout.write(cut_line(self._describe_step(), end=""))
        self._rows = sum(map(_count_rows, lines))
        sys.stdout.flush()

    def _describe_step(self) -> str:
        """Return the step as text, with the number of completed parts of its plan, or an empty
        string at the end.
        """
        if not self._stage:
            return ""
        step = self._texts.text(f"step_{find_step(self._stage).value}", self._language)
        if not self._plan:
            return f"… {step}"
        ended = str(len(self._ended & self._plan.keys()))
        all_parts = str(len(self._plan))
        counted = self._texts.text("step_parts", self._language, ended=ended, all=all_parts)
        return f"… {step}: {counted}"

    def _erase(self) -> None:
        sys.stdout.write(ERASE_LINE + f"{LINE_UP}{ERASE_LINE}" * self._rows)
        self._rows = 0


async def show_progress(desk: Desk, message: Message) -> dict[str, JsonValue]:
    """Follow a submitted question to its end; return its reply, or an empty object if there was
    none before the deadline.
    """
    question = desk.question(message)
    follower = DraftFollower(
        question,
        shows=lambda reply, language: answer_of(
            reply, words=lambda key, _language: key, language=language
        ),
    )
    display, reply = DraftDisplay(), dict[str, JsonValue]()
    async for entry in desk.follow(question):
        if entry.kind == "routed":
            display.show_step(entry.fields)
        elif entry.kind == "agent_run":
            display.read_language(entry.fields)
        for event in follower.read(entry):
            display.show_event(event)
        if entry.kind == "finished":
            reply = entry.fields
    display.end()
    return reply


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk ask`."""
    parser.add_argument(
        "question", nargs="*", help="the question (default: read from standard input)"
    )
    parser.add_argument("--conversation", metavar="ID", help="continue this conversation")
    parser.add_argument(
        "--message",
        metavar="ID",
        help="id of the message; a question that is sent again with the same id is answered "
        "only once",
    )
    add_groups_argument(parser)
    add_way_arguments(parser)
    add_format_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the complete reply as JSON")
    parser.epilog = "exit status: 0 answered, 3 clarification, 4 refused, 5 failed, 1 error"


def add_way_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose how questions are answered."""
    parser.add_argument(
        "--way",
        choices=[way.value for way in WayName],
        help="way of answering: one search, a loop of tool calls, specialists for reviews, a "
        "swarm of workers, or automatic (default: the setting WAY)",
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
    """Run `refdesk ask`; the exit status depends on the outcome of the question."""
    text = clean_question(" ".join(chosen.question) if chosen.question else _from_standard_input())
    message = Message(
        text=text,
        conversation_id=chosen.conversation or f"ask-{uuid4().hex[:12]}",
        message_id=chosen.message or uuid4().hex[:12],
        shows_drafts=not chosen.json and sys.stdout.isatty(),
        groups=read_groups(chosen.groups),
        strategy=check_strategy(chosen.strategy),
        persona=chosen.persona,
    )
    form = "json" if chosen.json else chosen.format
    return asyncio.run(_ask(message, form=form, way=chosen.way))


def check_strategy(name: str | None) -> str:
    """Return the strategy if it exists, or an empty string if none is given; raises
    `CommandError`.
    """
    if not name:
        return ""
    # It imports the swarm, which other questions do not need.
    from agents.swarm.strategies import make_strategies
    from agents.swarm.swarm_plan import UnknownName

    try:
        return make_strategies().find(name).name
    except UnknownName as error:
        raise CommandError(str(error)) from error


def report_waiting() -> None:
    """Explain why the command is still running although its answer is complete."""
    sys.stderr.write(
        "refdesk: waiting for questions of other commands, whose model calls run in this "
        "process; press Ctrl-C to stop waiting (those calls are then repeated)\n"
    )


def name_report_command(reply: Mapping[str, JsonValue]) -> str:
    """Return the command that writes the report of a review of one document, or "" for any other
    reply.
    """
    documents, against = _list_ids(reply.get("documents")), _list_ids(reply.get("against"))
    if not reply.get("review_report"):
        return ""
    if len(documents) != 1 or not against:
        return ""
    rules = " ".join(f"--against {shlex.quote(rule)}" for rule in against)
    return f"refdesk review {shlex.quote(documents[0])} {rules} --report report.md"


def add_chat_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk chat`."""
    parser.add_argument("--conversation", metavar="ID", help="continue this conversation")
    add_groups_argument(parser)
    add_way_arguments(parser)
    add_format_argument(parser)


def run_chat(chosen: argparse.Namespace) -> int:
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
        asyncio.run(_chat(first, chosen.way, as_markdown=chosen.format == "markdown"))
    return 0


def _select_last(lines: Sequence[str]) -> list[str]:
    """Return the last lines that fit on a small terminal, where long lines take several rows."""
    rows, first = 0, len(lines)
    while first and rows + _count_rows(lines[first - 1]) <= MOST_ROWS:
        first -= 1
        rows += _count_rows(lines[first])
    return [*lines[first:]]


def _count_rows(line: str) -> int:
    """Return the number of terminal rows of a line, such as a long line of code."""
    return max(1, -(-columns(line) // shutil.get_terminal_size((WIDTH, MOST_ROWS)).columns))


def _read_completed(decision: Fields) -> dict[str, str]:
    """Return the parts of a plan that earlier branches completed. Their keys are negative numbers,
    which no branch has as its name.
    """
    labels = [clean_text(str(label)) for label in read_list(decision.get("completed"))]
    return {f"-{number}": label for number, label in enumerate(labels, 1)}


def _read_plan(decision: Fields) -> dict[str, str]:
    """Return the task of each branch that starts now, by branch name."""
    names = [str(name) for name in read_list(decision.get("branches"))]
    labels = [clean_text(str(name)) for name in read_list(decision.get("plan"))]
    return dict(zip_longest(names, labels[: len(names)], fillvalue=""))


def _from_standard_input() -> str:
    if sys.stdin.isatty():
        sys.stderr.write("Type the question, then press Ctrl-D on an empty line:\n")
    return sys.stdin.read()


async def _ask(message: Message, *, form: str, way: str | None) -> int:
    settings = load_settings(**({} if way is None else {"way": way}))
    async with open_desk(settings, report_waiting=report_waiting) as desk:
        if form == "json" or not sys.stdout.isatty():
            reply = await desk.ask(message)
        else:
            await desk.submit(message)
            reply = await show_progress(desk, message)
            if not reply:
                reply = desk.last_resort(desk.question(message), message.language)
        # Closing waits for calls of workers that were still running when the answer was finished.
        if form != "json":
            say_models_once(describe_models(settings), settings.refdesk_data)
        _show(reply, message, settings.index_location, form)
    return EXIT_STATUSES.get(str(reply.get("outcome")), 1)


def _list_ids(documents: JsonValue) -> list[str]:
    return [str(document.get("document_id")) for document in read_objects(documents)]


def _show(reply: dict[str, JsonValue], message: Message, index_location: str, form: str) -> None:
    for note in list_operator_notes(reply, index_location):
        sys.stderr.write(f"{note}\n")
    if form == "json":
        say_json(safe_reply(reply)[0])
    else:
        print_reply(reply, as_markdown=form == "markdown")
        if reply.get("outcome") == "failed":
            sys.stderr.write(f"refdesk: for details run: refdesk trace {message.message_id}\n")
        if reply.get("outcome") == "clarification" and choices(reply):
            answer = f'refdesk ask --conversation {message.conversation_id} "..."'
            sys.stderr.write(f"refdesk: to answer this, run: {answer}\n")
        if command := name_report_command(reply):
            sys.stderr.write(f"refdesk: to write the report to a file, run:\n{command}\n")
    sys.stdout.flush()


@contextmanager
def _terminal_as_it_was() -> Iterator[None]:
    """Restore the terminal's state if Ctrl-C ends the chat in the middle of a line."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


async def _chat(first: Message, way: str | None, *, as_markdown: bool) -> None:
    """Submit the questions that the user types; all messages have the groups, strategy, and persona
    of `first`.
    """
    settings = load_settings(**({} if way is None else {"way": way}))
    async with open_desk(settings, report_waiting=report_waiting) as desk:
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
            _show_reply(reply, asked_back=bool(options), as_markdown=as_markdown)
            for note in list_operator_notes(reply, settings.index_location):
                print_line(note)


def _show_reply(reply: dict[str, JsonValue], *, asked_back: bool, as_markdown: bool) -> None:
    if reply:
        print_reply(reply, as_markdown=as_markdown)
    if asked_back and sys.stdin.isatty():
        print_line(CHOOSING)
    print_line()


async def _next_line() -> str | None:
    """Return the next non-empty line, or None if the person ends the chat."""
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
