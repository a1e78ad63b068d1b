"""Cleans user text by removing only characters that do not belong in text."""

import re
import unicodedata
from collections.abc import Sequence

from envelope.encoding import HIDDEN_RANGES
from gateway.errors import MessageError

LONGEST_CHARACTERS = 8_000
LONGEST_NAME = 128
# Controls but newline and tab, lone surrogates, and hidden characters; marks and isolates stay.
_NO_TEXT = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{HIDDEN_RANGES}]")
# Control sequences of terminals, such as those of colours, are removed as a whole.
_SEQUENCE = re.compile(r"\x1b\[[0-9:;<=>?]{0,32}[ -/]{0,8}[@-~]")
_ASCII_CONTROLS = bytes(code for code in range(128) if _NO_TEXT.match(chr(code)))


def clean_text(text: str, *, longest: int = LONGEST_CHARACTERS) -> str:
    """Return the text in NFC, stripped, without control characters and lone surrogates.

    Raises `MessageError` for a text that is empty or longer than `longest` characters.
    """
    if len(text) > longest:
        raise MessageError(
            f"the message is too long: expected at most {longest:,} characters, found {len(text):,}"
        )
    if "\x1b" in text:
        text = _SEQUENCE.sub("", text)
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    clean = (_ascii(lines) if lines.isascii() else _unicode(lines)).strip()
    if not clean:
        raise MessageError("the message is empty: expected a question or a command")
    return clean


def check_name(name: str, what: str) -> str:
    """Return an id unchanged; raises `MessageError` unless it has 1 to 128 printable characters."""
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise MessageError(
            f"expected a {what} of 1 to {LONGEST_NAME} printable characters, found {name[:40]!r}"
        )
    return name


def parse_command(text: str, commands: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """Return the command and arguments of `/command argument ...`, or None for a question."""
    words = text.split()
    if not words or not words[0].startswith("/") or "/" in words[0][1:]:
        return None, ()
    name = words[0][1:].lower().replace("-", "_")
    known = name in commands or name.isidentifier()
    return (name, tuple(words[1:])) if known else (None, ())


def _unicode(text: str) -> str:
    return unicodedata.normalize("NFC", _NO_TEXT.sub("", text))


def _ascii(text: str) -> str:
    """Return the cleaned text in a tenth of the time, because ASCII text is always in NFC."""
    return text.encode("ascii").translate(None, _ASCII_CONTROLS).decode("ascii")
