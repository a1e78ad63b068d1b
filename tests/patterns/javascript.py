"""Finds the regular expressions of the widget's scripts, in the words of Python's `re`.

Python's matcher goes back step by step like those of browsers, without what the newest of them
know to save themselves: what is linear for it is linear for everybody.
"""

import re

from tests.patterns.collection import ROOT, Pattern

_LITERAL = re.compile(
    r"(?:[=(,:\[!&|?{};]|return|=>)\s*(/(?![/*])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*)"
)
_COMMENT = ("//", "*", "/*")


def find_script_patterns(folder: str) -> list[Pattern]:
    """Return the patterns of the scripts in a folder of the product."""
    return [
        _pattern(f"{path.relative_to(ROOT)}:{number}", literal)
        for path in sorted((ROOT / folder).rglob("*.js"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if not line.lstrip().startswith(_COMMENT)
        for literal in _LITERAL.findall(line)
    ]


def _pattern(place: str, literal: str) -> Pattern:
    source, _, flags = literal[1:].rpartition("/")
    method = "match" if "y" in flags else "finditer"
    return Pattern(place, _as_python(source), 0, frozenset({method}))


def _as_python(source: str) -> str:
    source = re.sub(r"\\[pP]\{\w+\}", r"\\w", source).replace("[^]", r"[\s\S]")
    source = re.sub(r"\\u\{?([0-9a-fA-F]{4,6})\}?", lambda it: chr(int(it[1], 16)), source)
    return re.sub(r"\(\?<(?![=!])", "(?P<", source)
