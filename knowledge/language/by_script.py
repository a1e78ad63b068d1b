"""Decides the language of a text by its script, or limits the languages that are possible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knowledge.language.cleaning import natural
from knowledge.language.port import Detection
from knowledge.language.scripts import filter_by_script, most_expected, script_of


@dataclass(frozen=True, slots=True)
class Undecided:
    """A text in a script that several languages use."""

    words: str
    """The text without code, addresses and markup."""
    script: str
    possible: tuple[str, ...]
    """At least two languages, ISO 639-1."""


def decide_by_script(
    text: str, prior: Mapping[str, float] | None, allowed: Sequence[str]
) -> Detection | Undecided:
    """Return the language of `text` if its script decides it, else its script and candidates.

    A text without letters has the likeliest language of `prior`, at confidence 0.
    """
    words = natural(text)
    script = script_of(words)
    if script is None:
        return Detection(most_expected(prior, allowed), 0.0)
    possible = filter_by_script(script, words, allowed)
    if len(possible) == 1:
        return Detection(possible[0], 1.0)
    return Undecided(words, script, possible)
