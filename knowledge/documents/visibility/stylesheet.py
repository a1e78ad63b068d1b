"""Reads the rules of a page's style elements that may hide or show something.

External style sheets are not read. Conditions (`@media`) are evaluated for the screen of a desktop
computer.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from knowledge.documents.visibility.declarations import parse_declarations

MOST_RULES = 500
"""The number of rules of a page that are applied."""
_MOST_CHARACTERS = 1_000_000

_NAMES = (
    "display visibility content-visibility opacity filter clip clip-path -webkit-clip-path "
    "transform scale zoom position float left top right bottom margin-left margin-top text-indent "
    "width height max-width max-height overflow overflow-x overflow-y font font-size color "
    "background background-color background-image -webkit-text-fill-color"
)
_PROPERTIES = frozenset(_NAMES.split())
_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)")
_BRACE = re.compile("([{}])")
_WHEN = re.compile(
    r":(?:hover|focus-within|focus-visible|focus|active|target|checked)\b|\[open\]", re.IGNORECASE
)
_WIDTH = re.compile(r"\((min|max)-width\s*:\s*(\d{1,6}(?:\.\d{0,3})?)(px|em|rem)\)")
_SCREEN_PIXELS = 1280
_HOLDING = frozenset({"", "all", "screen", "onlyscreen", "(prefers-color-scheme:light)"})
_IDENTIFIER, _CLASS = re.compile(r"#[\w-]"), re.compile(r"[.:\[][\w-]")
_ELEMENT = re.compile(r"(?:^|[\s>+~])[a-zA-Z]")


@dataclass(frozen=True, slots=True)
class Rule:
    """One selector with its declarations; the rule of the highest `rank` applies."""

    selector: str
    declarations: dict[str, str]
    rank: tuple[int, int, int, int, int]


def parse_rules(css: str) -> list[Rule]:
    """Return the rules that may hide or show something, at most `MOST_RULES`."""
    found: list[Rule] = []
    for selectors, body in _blocks(_COMMENT.sub("", css[:_MOST_CHARACTERS])):
        styles = parse_declarations(body)
        kept = {name: value for name, value in styles.items() if name in _PROPERTIES}
        for selector in selectors.split(",") if kept else ():
            if (rule := _rule(selector.strip(), kept, len(found))) is not None:
                found.append(rule)
            if len(found) >= MOST_RULES:
                return found
    return found


def _rule(selector: str, styles: dict[str, str], order: int) -> Rule | None:
    """Return the rule; one for a click or a pointer counts only if it shows something."""
    is_dynamic = _WHEN.search(selector) is not None
    if not selector or "::" in selector or (is_dynamic and not _shows(styles)):
        return None
    rank = (
        int(is_dynamic),
        len(_IDENTIFIER.findall(selector)),
        len(_CLASS.findall(selector)),
        len(_ELEMENT.findall(selector)),
        order,
    )
    return Rule(_WHEN.sub("", selector) or "*", styles, rank)


def _shows(styles: dict[str, str]) -> bool:
    return (
        styles.get("display", "none") != "none"
        or styles.get("visibility") == "visible"
        or styles.get("opacity", "0") not in ("0", "0%", ".0")
        or styles.get("max-height", "0") not in ("0", "0px")
        or styles.get("height", "0") not in ("0", "0px")
    )


def _blocks(css: str) -> Iterator[tuple[str, str]]:
    """Yield selectors and bodies of the rules whose conditions are true."""
    conditions: list[bool] = []
    selector: str | None = None
    pieces = _BRACE.split(css)
    for before, brace in zip(pieces[::2], pieces[1::2], strict=False):
        text = before.rpartition(";")[2].strip() if brace == "{" else before
        if brace == "{":
            if text.startswith("@"):
                conditions.append(_holds(text))
            elif selector is None:
                selector = text
        elif selector is not None:
            if all(conditions):
                yield selector, text
            selector = None
        elif conditions:
            conditions.pop()


def _holds(condition: str) -> bool:
    name, _, rest = condition.partition(" ")
    if name.lower() in ("@supports", "@layer", "@container", "@scope"):
        return True
    if name.lower() != "@media":
        return False
    return any(_medium_holds(medium) for medium in rest.lower().split(","))


def _medium_holds(medium: str) -> bool:
    for kind, number, unit in _WIDTH.findall(medium):
        pixels = float(number) * (1 if unit == "px" else 16)
        if (pixels > _SCREEN_PIXELS) if kind == "min" else (pixels < _SCREEN_PIXELS):
            return False
    rest = (part.replace(" ", "") for part in re.split(r"\band\b", _WIDTH.sub("", medium)))
    return all(part in _HOLDING for part in rest)
