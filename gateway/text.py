"""Cleans what people send: characters that no text has are removed, nothing else is touched."""

import unicodedata

from gateway.errors import MessageError

LONGEST_CHARACTERS = 8_000
LONGEST_NAME = 128
_KEPT_CONTROLS = frozenset("\n\t")
# Directional overrides can make a text read differently from what it says; marks and isolates stay.
_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e")


def cleaned(text: str, *, longest: int = LONGEST_CHARACTERS) -> str:
    """Return the text without control characters and lone surrogates, in NFC, stripped.

    Raises `MessageError` for a text that is empty or longer than `longest` characters.
    """
    if len(text) > longest:
        raise MessageError(
            f"the message is too long: expected at most {longest:,} characters, found {len(text):,}"
        )
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    kept = "".join(character for character in lines if _is_text(character))
    clean = unicodedata.normalize("NFC", kept).strip()
    if not clean:
        raise MessageError("the message is empty: expected a question or a command")
    return clean


def checked_name(name: str, what: str) -> str:
    """Return an id as given; raises `MessageError` unless it has 1 to 128 printable characters."""
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise MessageError(
            f"expected a {what} of 1 to {LONGEST_NAME} printable characters, found {name[:40]!r}"
        )
    return name


def _is_text(character: str) -> bool:
    if character in _KEPT_CONTROLS:
        return True
    return unicodedata.category(character) not in {"Cc", "Cs"} and character not in _OVERRIDES
