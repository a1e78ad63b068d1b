"""Prevents text from documents and questions from being interpreted as a command by a CI runner.

GitHub's runner reads every line that a step prints. `::NAME ...::` at the beginning of a line,
possibly after spaces, is a command, and so is `##[NAME]` anywhere in a line. `stop-commands` would
disable commands only until another program in the step enables them again, and would add lines to
the output that other programs read.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO

OLD_COMMAND = "##["


class PlainLines:
    """A text stream that inserts a space at the beginning of each command."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._is_at_start = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write the text; return its length."""
        for line in text.splitlines(keepends=True):
            self.stream.write(_break_commands(line, self._is_at_start))
            is_open = self._is_at_start and not line.strip()
            self._is_at_start = is_open or line.splitlines()[0] != line
        return len(text)


@contextmanager
def without_commands() -> Iterator[None]:
    """Prevent everything that is printed inside the context from being interpreted as a command."""
    # Typed as the streams that they stand for: everything else is passed on to these.
    out: Any = PlainLines(sys.stdout)
    err: Any = PlainLines(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err):
        yield


def write_command(stream: Any, kind: str, properties: dict[str, str], text: str) -> None:
    """Write a command of our own to a stream, even if commands are disabled in it."""
    named = ",".join(f"{name}={_escape(value, ':,')}" for name, value in properties.items())
    line = f"::{kind} {named}::{_escape(text)}\n"
    getattr(stream, "stream", stream).write(line)


def _break_commands(line: str, is_at_start: bool) -> str:
    text = line.lstrip()
    if is_at_start and text.startswith("::"):
        line = f"{line[: len(line) - len(text)]}: {text[1:]}"
    return line.replace(OLD_COMMAND, "# #[")


def _escape(text: str, further: str = "") -> str:
    """Return the text escaped for commands as documented by GitHub; properties also escape
    `further` characters.
    """
    return "".join(f"%{ord(sign):02X}" if sign in f"%\r\n{further}" else sign for sign in text)
