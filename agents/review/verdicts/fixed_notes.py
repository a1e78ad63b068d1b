"""Says the notes and reasons of the rules in the language of the reader."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Formatter

_FILE = Path(__file__).with_name("fixed_notes.toml")
_ENGLISH = "en"
_SEPARATOR = "; "


def translate_note(note: str, language: str) -> str:
    """Return a note of the rules in a language; text without a translation stays as it is.

    Several notes on one line are translated one by one; of an error, `[id] specialist: text`, the
    text is translated.
    """
    if language == _ENGLISH:
        return note
    name, mark, text = note.partition(": ")
    if mark and name.startswith("["):
        return f"{name}: {translate_note(text, language)}"
    whole = _translate(note, language)
    if whole is not None:
        return whole
    pieces = [(one, _translate(one, language)) for one in note.split(_SEPARATOR)]
    return _SEPARATOR.join(one if found is None else found for one, found in pieces)


def _translate(note: str, language: str) -> str | None:
    for texts in _load().values():
        values = _read_values(note, texts[_ENGLISH])
        if values is not None and language in texts:
            return texts[language].format(**values)
    return None


def _read_values(note: str, template: str) -> dict[str, str] | None:
    """Return the values with which a template makes this note; None: it does not make it."""
    values: dict[str, str] = {}
    rest, name = note, ""
    for literal, following, _, _ in Formatter().parse(template):
        at = rest.find(literal) if literal or not name else len(rest)
        if at < 0 or (not name and at > 0):
            return None
        if name:
            values[name] = rest[:at]
        rest, name = rest[at + len(literal) :], following or ""
    if name:
        values[name] = rest
        return values
    return None if rest else values


@cache
def _load() -> Mapping[str, Mapping[str, str]]:
    tables: dict[str, dict[str, str]] = tomllib.loads(_FILE.read_text("utf-8"))
    return tables
