"""Writes the text that a style sheet generates before and after elements, with its counters
(CSS Generated Content and CSS Lists).
"""

import re
from collections.abc import Iterator, Mapping

from knowledge.documents.notation import read_number, write_number

_STRING = r"\"[^\"]*\"|'[^']*'"
_PART = re.compile(
    rf"(?P<text>{_STRING})|counters?\(\s*(?P<name>[\w-]{{1,60}})\s*(?:,\s*(?P<between>{_STRING})\s*)?"
    r"(?:,\s*(?P<style>[\w-]{1,40})\s*)?\)|attr\(\s*(?P<attribute>[\w-]{1,60})[^()]{0,60}\)|(?P<end>/)"
)
_CHANGE = re.compile(r"([^\W\d][\w-]{0,59})(?:\s+(-?\d{1,9})(?!\S))?")
_LISTS = frozenset({"ol", "ul"})
_ITEM = "list-item"
_MOST_COUNTERS = 100
_MOST_LEVELS = 20
"""Maximum number of nested counters that are written."""


class Counters:
    """The counters in scope at an element; elements are entered in the order of the document."""

    def __init__(self) -> None:
        # The depth of the element that made each instance of a counter, and its number.
        self._instances: dict[str, list[tuple[int, int]]] = {}

    def enter(
        self, depth: int, tag: str, attributes: Mapping[str, str | None], styles: Mapping[str, str]
    ) -> None:
        """Apply the changes of an element, or of generated text one level deeper."""
        for instances in self._instances.values():
            while instances and instances[-1][0] > depth:
                instances.pop()
        if tag in _LISTS:
            self._set(_ITEM, depth, read_number(attributes.get("start"), 1) - 1, is_new=True)
        for name, number in _list_changes(styles.get("counter-reset", ""), 0):
            self._set(name, depth, number, is_new=True)
        for name, number in _list_changes(styles.get("counter-increment", ""), 1):
            self._set(name, depth, self._read(name) + number)
        if tag == "li":
            number = read_number(attributes.get("value"), self._read(_ITEM) + 1)
            self._set(_ITEM, depth, number)
        for name, number in _list_changes(styles.get("counter-set", ""), 0):
            self._set(name, depth, number)

    def write(self, content: str, attributes: Mapping[str, str | None]) -> str:
        """Return the text of the value of `content`, without its pictures and quotation marks."""
        written = ""
        for part in _PART.finditer(content):
            if part["end"]:
                break
            if part["text"]:
                written += part["text"][1:-1]
            elif part["name"]:
                numbers = [number for _, number in self._instances.get(part["name"].lower(), ())]
                if part["between"] is None:
                    numbers = numbers[-1:]
                numbers = numbers[-_MOST_LEVELS:]
                style = (part["style"] or "").lower()
                texts = (write_number(number, style) for number in numbers or [0])
                written += (part["between"] or "  ")[1:-1].join(texts)
            else:
                written += attributes.get(part["attribute"].lower()) or ""
        return written

    def _set(self, name: str, depth: int, number: int, *, is_new: bool = False) -> None:
        instances = self._instances.get(name, [])
        if instances and (not is_new or instances[-1][0] == depth):
            depth, _ = instances.pop()
        if name in self._instances or len(self._instances) < _MOST_COUNTERS:
            self._instances.setdefault(name, []).append((depth, number))

    def _read(self, name: str) -> int:
        instances = self._instances.get(name)
        return instances[-1][1] if instances else 0


def _list_changes(stated: str, default: int) -> Iterator[tuple[str, int]]:
    for name, number in _CHANGE.findall(stated):
        if name != "none":
            yield name, int(number) if number else default
