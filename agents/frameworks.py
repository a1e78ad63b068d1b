"""Identifies the legal frameworks that a question or a title names, by any of their names."""

import re
import tomllib
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("frameworks.toml")
_WORD = re.compile(r"[^\W_]{1,60}")


def identify_frameworks(*texts: str) -> tuple[str, ...]:
    """Return the frameworks that texts name, such as GDPR, in the order of the table."""
    padded = [f" {' '.join(word.casefold() for word in _WORD.findall(text))} " for text in texts]
    return tuple(
        framework
        for framework, names in _load().items()
        if any(f" {name} " in text for name in names for text in padded)
    )


def list_names(framework: str) -> tuple[str, ...]:
    """Return the names of a framework, in lower case."""
    return tuple(_load()[framework])


@cache
def _load() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads(_FILE.read_text("utf-8"))
    return found
