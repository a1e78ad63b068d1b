"""Shows a question in the terminal while it is answered: its step, and the draft of its answer.

The draft is erased when the answer is printed. Sentences that were shown but are not part of the
answer stay above it, struck out, so that nobody relies on them. If the output is not a terminal,
nothing is shown.
"""

import shutil
import sys
from collections.abc import Sequence
from itertools import zip_longest

from pydantic import JsonValue

from broker.values import Fields
from citations.links import clean_text
from config.texts import load_texts
from deploy.cli.markdown_tables import columns
from deploy.cli.printing import WIDTH, wrap, write_lines
from deploy.generate.pods import find_step
from gateway.answer import answer_of
from gateway.desk import Desk, Message
from gateway.events import DraftFollower, Event

ERASE_LINE = "\r\x1b[2K"
LINE_UP = "\x1b[1A"
STRUCK, PLAIN = "\x1b[9m", "\x1b[0m"
MOST_ROWS = 20
"""Maximum rows of a draft on the screen: more could not be erased on a small terminal."""


async def show_progress(desk: Desk, message: Message) -> dict[str, JsonValue]:
    """Follow a submitted question to its end; return its reply, empty if there was none before the
    deadline.
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
        """Show the stage of the question below its draft, and how many of its branches ended."""
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
        """Show the following steps in the language of the question, once an agent has found it."""
        writes = run.get("writes")
        language = writes.get("language") if isinstance(writes, dict) else None
        if isinstance(language, str) and language in self._texts.languages:
            self._language = language

    def show_event(self, event: Event) -> None:
        """Show new sentences of the draft; strike out those that were withdrawn."""
        if event.name == "draft":
            kept = self._draft[: int(str(event.data["offset"]))]
            self._draft = f"{kept}{event.data['text']}"
            self._draw()
        elif event.name == "retracted":
            sentences = event.data["sentences"]
            self._strike_out([str(one) for one in sentences] if isinstance(sentences, list) else [])

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
                lines.append(_fit(f"  {'✓' if name in self._ended else '–'} {label}"))
        write_lines(lines)
        sys.stdout.write(_fit(self._describe_step()))
        self._rows = sum(map(_count_rows, lines))
        sys.stdout.flush()

    def _describe_step(self) -> str:
        """Return the step in words, and how many parts of its plan have ended; empty at the end."""
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


def _select_last(lines: Sequence[str]) -> list[str]:
    """Return the last lines that a small terminal shows: long ones take several rows."""
    rows, first = 0, len(lines)
    while first and rows + _count_rows(lines[first - 1]) <= MOST_ROWS:
        first -= 1
        rows += _count_rows(lines[first])
    return [*lines[first:]]


def _count_rows(line: str) -> int:
    """Return how many rows of the terminal a line takes, such as a long one of code."""
    return max(1, -(-columns(line) // shutil.get_terminal_size((WIDTH, MOST_ROWS)).columns))


def _fit(line: str) -> str:
    """Return the beginning of a line that takes one row: a longer one could not be erased."""
    while columns(line) > WIDTH:
        line = line[:-1]
    return line


def _read_completed(decision: Fields) -> dict[str, str]:
    """Return the parts of a plan that earlier branches completed, by numbers below 0."""
    found = decision.get("completed")
    labels = [clean_text(str(one)) for one in found] if isinstance(found, list) else []
    return {f"-{number}": label for number, label in enumerate(labels, 1)}


def _read_plan(decision: Fields) -> dict[str, str]:
    """Return what each branch does that begins now, by its name."""
    begun, plan = decision.get("branches"), decision.get("plan")
    names = [str(one) for one in begun] if isinstance(begun, list) else []
    labels = [clean_text(str(one)) for one in plan] if isinstance(plan, list) else []
    return dict(zip_longest(names, labels[: len(names)], fillvalue=""))
