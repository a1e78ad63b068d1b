r"""Writes text of documents as Markdown that every renderer shows as it stands there.

The text of a document has fences, rows of tables, items that begin with `- ` or a number, inline
code, struck-out text (`~~400~~`), boxes of items (`- [x]`), and names of pictures (`![Label]`).
A backslash at the beginning of a line, before `- ` or a fence, makes it literal (`keep_literal`),
and so do those of two tildes that strike nothing out (`\~\~`).
Everything else in it, such as `2*3*4`, `_name_`, `<serial>`, `\\server\share` or `> 3 kW`, is
literal and is escaped. Links to the web, which prepared documents may contain, remain links.

Markdown numbers the items of a list itself. Items whose numbers do not follow each other, or are
years, are therefore written as paragraphs.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from citations.reading import fences, restore, spans_aside

STRUCK = "~~"
FIRST_YEAR = 1_000
PUNCTUATION = r"!-/:-@\[-`{-~"
"""The characters that a backslash escapes in Markdown, for a character class."""
_CODE_IN_WORD = re.compile(r"(?<=[^\W_])\0(\d{1,9})\0(?=[^\W_])")
_SIGN = re.compile(
    # Addresses, which other rules check, code, and tildes that strike nothing out.
    r"(?P<kept>https?://[^\s<>`|]+|\0\d{1,9}\0|\\~\\~)"
    r"|!\[(?P<picture>[^\[\]]{0,400})\]"
    r"|\[(?P<label>[^\[\]]{0,400})\]\((?:https?:)?//[^\s()<>]{1,1900}\)"
    rf"|(?P<struck>{STRUCK})"
    r"|(?P<bar>(?<!\\)\\*+\|)"
    rf"|\\(?=[{PUNCTUATION}\0]|\Z)"
    r"|\*(?!(?<=\s\*)\s)"
    r"|_(?!(?<=[^\W_]_)[^\W_]|(?<=\s_)\s)"
    r"|(?<=\S)~|<(?=[A-Za-z/!?])|&(?=#?\w{1,31};)|[\[\]`]|(?P<dollar>\$)"
)
_FENCE = re.compile(r"^([ \t]*)(?=\\*(?:```|~~~))")
_LITERAL = re.compile(r"^([ \t]*)\\(?=\\*(?:-[ \t]|```|~~~))", re.MULTILINE)
_MINUS = re.compile(r"^([ \t]*)(?=\\*-[ \t]+[.,]?\d)", re.MULTILINE)
_DASH = re.compile(r"^([ \t]*)(?=\\*-[ \t])", re.MULTILINE)
_OPENING = re.compile(
    r"\A(?P<indent>[ \t]*)"
    r"(?:(?P<mark>>|\+(?=[ \t]|\Z)|\#{1,6}(?=[ \t]|\Z)|(?:-[ \t]*)+\Z)|(?P<underline>=+[ \t]*\Z)"
    r"|(?P<literal>\\(?=\\*(?:-[ \t]|```|~~~)))"
    r"|(?P<bullet>-[ \t](?:\[[ xX]\](?=[ \t]))?)|(?P<number>\d{1,9})(?P<sign>[.)])(?=[ \t]|\Z))?"
)


@dataclass(slots=True)
class _Lists:
    """The lists that are open above a line: the last number of each by indentation, which is None
    for a list without numbers.
    """

    last: dict[int, int | None] = field(default_factory=dict)

    def enter(self, opening: re.Match[str]) -> bool:
        """Read the beginning of a line; return whether a list would change its number."""
        indent, number = len(opening["indent"]), opening["number"]
        is_item = bool(opening["bullet"] or number)
        if indent and not is_item:
            return False  # the text of an item continues
        before = self.last.get(indent)
        self.last = {at: last for at, last in self.last.items() if at < indent}
        if not is_item:
            return False
        own = int(number) if number else None
        follows = before is None or own == before + 1
        is_plain = own is None or (number == str(own) and own < FIRST_YEAR and follows)
        if opening["sign"] == ")" or not is_plain:
            return True
        self.last[indent] = own
        return False


def keep_literal(paragraph: str, *, may_list: bool = True) -> str:
    """Return a paragraph that neither opens code without closing it, nor turns the minus sign of a
    number at the beginning of a line into the sign of an item.

    With `may_list`, a `- ` before anything else may be such a sign, because an author typed it.
    """
    lines = paragraph.split("\n")
    for start, end in fences(paragraph):
        opening, last = lines[start].lstrip(), lines[end - 1].strip()
        sign = opening[0]
        marks = opening[: len(opening) - len(opening.lstrip(sign))]
        if end == start + 1 or not last.startswith(marks) or last.strip(sign):
            # Not closed, so it reaches to the end, with every other fence in it.
            lines[start:] = (_FENCE.sub(r"\1\\", line) for line in lines[start:])
    return (_MINUS if may_list else _DASH).sub(r"\1\\", "\n".join(lines))


def as_markdown(text: str) -> str:
    """Return a text of a document as Markdown that shows it."""
    lines = text.split("\n")
    code = {at for start, end in fences(text) for at in range(start, end)}
    spans: list[str] = []
    prose = ["" if at in code else _set_code_aside(line, spans) for at, line in enumerate(lines)]
    struck = (is_mark for is_mark, _ in find_struck("\n".join(prose)))
    lists = _Lists()
    written: list[str] = []
    for at, line in enumerate(prose):
        if at in code or not line.strip():
            written.append(lines[at])
            continue
        opening = next(_OPENING.finditer(line))
        is_renumbered = lists.enter(opening)
        is_literal = is_renumbered or opening["underline"] or opening["literal"]
        if is_literal and written and written[-1].strip():
            written.append("")
        indent = opening["indent"] if lists.last else ""  # four spaces would be code
        mark = opening["bullet"] or opening["underline"] or ""
        if opening["mark"]:
            mark = f"\\{opening['mark']}"
        if opening["number"]:
            escape = "\\" if is_renumbered else ""
            mark = f"{opening['number']}{escape}{opening['sign']}"
        if opening["literal"] and line.startswith("-", opening.end()):
            mark = "\\"
        rest = _escape(line[opening.end() :], struck, is_row=line.startswith("|"))
        written.append(restore(indent + mark + rest, spans))
    return "\n".join(written)


def find_struck(text: str) -> Sequence[tuple[bool, bool]]:
    """Return for each `~~` in a text, from which code was removed, whether it is a mark of
    struck-out text, and whether the text after it is struck out.
    """
    marks = list(re.finditer(STRUCK, text))
    found = [(False, False)] * len(marks)
    opened = -1
    for number, mark in enumerate(marks):
        if opened < 0 and text[mark.end() : mark.end() + 1].strip():
            opened = number
        elif opened >= 0 and not text[mark.start() - 1].isspace():
            found[opened : number + 1] = [(False, True)] * (number - opened + 1)
            found[opened], found[number] = (True, True), (True, False)
            opened = -1
    return found


def remove_struck(text: str) -> str:
    """Return a text without what is struck out in it; code is not recognised."""
    first, *parts = text.split(STRUCK)
    kept = [first]
    for (is_mark, is_struck), part in zip(find_struck(text), parts, strict=True):
        if not is_struck:
            kept.append(part if is_mark else STRUCK + part)
    return "".join(kept)


def cut_text(text: str, longest: int) -> str:
    """Return a text of at most this length; what is struck out at the cut remains struck out."""
    if len(text) <= longest:
        return text
    kept = text[: longest - 1].rstrip("~")
    return f"{kept.rstrip()}{STRUCK}…" if kept.count(STRUCK) % 2 else f"{kept}…"


def show_literal(text: str) -> str:
    """Return a text of a document without the backslashes of `keep_literal` and table cells."""
    return _LITERAL.sub(r"\1", text).replace("\\|", "|")


def _set_code_aside(line: str, spans: list[str]) -> str:
    """Replace code with placeholders. Backticks inside words on both sides, such as in "1`000 and
    2`000", are not code.
    """
    bare = spans_aside(line, spans, lambda code: code)
    return _CODE_IN_WORD.sub(lambda span: spans[int(span[1])], bare)


def _escape(prose: str, struck: Iterator[bool], *, is_row: bool) -> str:
    has_formula = prose.count("$") > 1

    def write(sign: re.Match[str]) -> str:
        if sign["kept"] or (sign["dollar"] and not has_formula):
            return sign[0]
        for name in ("picture", "label"):
            if sign[name] is not None:
                start, end = sign.start(name) - sign.start(), sign.end(name) - sign.start()
                return f"{sign[0][:start]}{_SIGN.sub(write, sign[name])}{sign[0][end:]}"
        if sign["struck"]:
            return STRUCK if next(struck, False) else r"\~\~"
        if sign["bar"]:
            literal = len(sign[0]) - 1
            if not is_row:
                return "\\\\" * literal + "\\|"
            return "\\\\" * (literal - 1) + "\\|" if literal else "|"
        return f"\\{sign[0]}"

    return _SIGN.sub(write, prose)
