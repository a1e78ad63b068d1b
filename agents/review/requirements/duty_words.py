"""Marks the words of a law that often oblige, forbid or permit, for a reader without a model.

A mark says nothing about the sentence: what a text demands is for its reader to judge.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("duty_words.toml")
_WORD = re.compile(r"[^\W\d_]{1,40}")


def find_duty_words(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each such word; nothing in a language without a list."""
    words = _load(language)
    for one in _WORD.finditer(text):
        if one[0].lower() in words:
            yield one.start(), one.end()


@cache
def _load(language: str) -> frozenset[str]:
    tables: dict[str, str] = tomllib.loads(_FILE.read_text("utf-8"))
    return frozenset(tables.get(language, "").split())
