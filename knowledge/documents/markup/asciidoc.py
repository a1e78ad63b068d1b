"""Reads AsciiDoc: sections, lists, listings, tables, admonitions. Includes are not resolved, and no
code is run.

Conditions (`ifdef`, `ifndef`) are applied as if the file were converted to HTML; what follows
`ifeval` is left out.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import unescape
from itertools import cycle
from textwrap import dedent

from knowledge.documents.decoding import decode
from knowledge.documents.front_matter import list_keywords
from knowledge.documents.notation import (
    NUMBERINGS,
    Script,
    Span,
    join_spans,
    keep_tildes,
    write_number,
)
from knowledge.documents.page import (
    DEEPEST_INDENT,
    Anchors,
    Block,
    BlockKind,
    LeftOutCounts,
    Page,
    Picture,
    first_heading,
    make_code,
)
from knowledge.documents.tables import MOST_COLUMNS, Cell, write_table

_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)\Z")
_ATTRIBUTE = re.compile(r":(!?)([\w-]{1,60})(!?):(?:[ \t](.*))?\Z")
_CONDITION = re.compile(r"(\\?)(ifdef|ifndef|ifeval|endif)::([^\s\[\]]{0,300})\[(.{0,1000})\]\Z")
# What Asciidoctor sets when it writes HTML.
_OUTPUT = {
    "backend": "html5", "backend-html5": "", "basebackend": "html", "basebackend-html": "",
    "filetype": "html", "filetype-html": "", "asciidoctor": "",
}  # fmt: skip
_ANCHOR = re.compile(
    r"\[\[([^\[\],]{1,100})(?:,[^\[\]]{0,200})?\]\]\Z|\[#([^\[\],.%]{1,100})[^\[\]]{0,100}\]\Z"
)
_BLOCK_ATTRIBUTES = re.compile(r"\[([^\[\]]{0,300})\]\Z")
_TITLE = re.compile(r"\.([^\s.].{0,300})\Z")
_FENCE = re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|`{3})(\w{0,40})\Z")
_TABLE_FENCE = re.compile(r"[|,:!]={3,}\Z")
_ITEM = re.compile(r"[ \t]{0,40}(\*{1,6}|-|\.{1,6}|\d{1,4}\.|<(?:\d{1,3}|\.)>)[ \t]+(\S.*)\Z")
_TERM = re.compile(r"[ \t]{0,40}(\S.{0,300}?)(?:::{1,3}|;;)(?:[ \t](.*))?\Z")
_ADMONITION = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t](.*)\Z")
_DIRECTIVE = re.compile(r"(include|video|audio|toc)::(.{0,300})\Z")
_IMAGE = re.compile(r"image:{1,2}([^\s\[\]:]{1,500})\[([^\[\]\n]{0,500})\]")
_IMAGE_TITLE = re.compile(r"\btitle=\"([^\"]{1,300})\"")
_IGNORED = re.compile(r"//(?!//)")
_BREAKS = frozenset({"'''", "<<<"})
_VERBATIM = frozenset("-.+`")
_MOST_LINES = 500_000
_LONGEST_VALUE = 4000
_MOST_VALUES = 20
_DEEPEST_MACRO = 2
_MOST_LINKS = 5000
_NOT_READ = {"include": "other files are not included"}
_CELL = re.compile(r"(?:(?<=\s)|\A)((?:\d{0,3}(?:\.\d{1,3})?[+*])?[<^>.]{0,4}[aehlmsdv]?)\|(?!=)")
_SPAN = re.compile(r"(\d{0,3})(?:\.(\d{1,3}))?([+*])")
_COLUMNS = re.compile(r"cols=\"?([^\"\]]{1,300})")
_FILLED = re.compile(r"\bsubs=\"?[\w+,-]{0,60}(?:attributes|normal)\b")
_TIMES = re.compile(r"(?:(\d{1,3})\*|[^\s,;])[^,;]*")
_FORMAT = re.compile(r"\bformat=\"?(csv|tsv|dsv)|\bseparator=\"?([^\"\s])")
_SEPARATORS = {"csv": ",", "tsv": "\t", "dsv": ":"}
_START = re.compile(r"\bstart=\"?(\d{1,6})")
_NESTED_NUMBERINGS = ("decimal", "a", "i", "A", "I")
_BOXES = frozenset({"NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"})
_BARS = "\x1b"
_LITERAL = re.compile(r"`\+([^\n]{1,1000}?)\+`")
_CODE = re.compile(r"``([^`\n]{1,1000})``|`([^`\n]{1,1000})`")
_PASSED = re.compile(
    r"\+\+\+([^\n]{1,500}?)\+\+\+|\+\+([^+\n]{1,500})\+\+"
    r"|(?:pass:[\w,]{0,60}|(?:stem|asciimath|latexmath):)\[(?P<argument>(?:[^\]\\\n]|\\.){0,500})\]"
    r"|(?<![\w+])\+([^\s+](?:[^+\n]{0,300}[^\s+])?)\+(?![\w+])"
)
_ESCAPED_ATTRIBUTE = re.compile(r"\\(\{[\w-]{1,60}\})")
_SCRIPT = re.compile(r"\^([\w+.,()-]{1,20})\^|~([\w+-]{1,20})~")
_SCRIPTS = (Script.LINE, Script.RAISED, Script.LOWERED)
_ROLE = r"(?:(?<!\w)\[[^\[\]\n]{1,60}\])?"
_STRUCK = re.compile(r"\[[\w.-]{0,40}line-through[\w.-]{0,40}\]([#*_]{1,2})([^\n]{1,500}?)\1")
_REFERENCE = re.compile(r"<<([^<>,\n]{1,200})(?:,[ \t]{0,9}([^<>\n]{1,300}))?>>")
_MACRO = re.compile(
    r"(?:link|xref|mailto|kbd|btn|menu|footnote|image|icon):{1,2}([^\s\[\]]{0,500})"
    r"\[([^\[\]\n]{0,500})\]"
)
_LINK = re.compile(r"(?:link:|(?<![\w:]))(https?://[^\s\[\]<>]{1,1000})\[([^\[\]\n]{0,500})\]")
_FORMATS = tuple(
    re.compile(f"{_ROLE}{pattern}")
    for pattern in (
        r"\*\*(?=\S)([^*\n]{1,1000})(?<=\S)\*\*",
        r"__(?=\S)([^_\n]{1,1000})(?<=\S)__",
        r"##(?=\S)([^#\n]{1,1000})(?<=\S)##",
        r"(?<![\w*])\*(?=\S)([^*\n]{1,1000}|[^\n]{1,200}?)(?<=\S)\*(?![\w*])",
        r"(?<!\w)_(?=[^\s_])([^_\n]{1,1000}|[^\n]{1,200}?)(?<=[^\s_])_(?!\w)",
        r"(?<![\w#])#(?=\S)([^#\n]{1,500})(?<=\S)#(?!\w)",
        "(?=\x1a)()",
    )
)
_QUOTED = re.compile(r"([\"'])`([^`\n]{1,500})`\1")
_INLINE_ATTRIBUTE = re.compile(r"\{([\w-]{1,60})\}")
_INLINE_ANCHOR = re.compile(r"\[\[[^\[\]\n]{1,100}\]\]")
_HELD_BREAK = "\x19"
_HARD_BREAK = re.compile(r"[ ]\+\Z")
_BREAK = re.compile(f"[ ]?{_HELD_BREAK}[ ]?")
_HELD = re.compile("\x1a(\\d{1,9})\x1a")
_KNOWN = {
    "nbsp": " ", "sp": " ", "empty": "", "blank": "", "plus": "+", "asterisk": "*", "backtick": "`",
    "lt": "<", "gt": ">", "amp": "&", "vbar": "|", "caret": "^", "tilde": "~", "startsb": "[",
    "endsb": "]", "backslash": "\\", "two-colons": "::", "two-semicolons": ";;", "cpp": "C++",
    "pp": "++", "quot": '"', "apos": "'", "lsquo": "\u2018", "rsquo": "\u2019",
    "ldquo": "\u201c", "rdquo": "\u201d", "deg": "\u00b0", "brvbar": "\u00a6", "zwsp": "", "wj": "",
}  # fmt: skip


class _AsciiDocReader:
    """Reads the lines in a single pass and keeps the attributes set so far."""

    def __init__(self, lines: list[str]) -> None:
        self.attributes = dict(_OUTPUT)
        self.left_out = LeftOutCounts()
        self.links: list[tuple[str, str]] = []
        self._lines = lines
        self._titles = _find_titles(self._lines)
        self._at = 0
        self._conditions: list[bool] = []
        self._is_header = False
        self._anchors = Anchors()
        self._anchor: str | None = None
        self._style = ""
        self._title = ""
        self._held: list[str] = []
        self._marker = ""
        self._counts: dict[str, int] = {}
        self._numberings: dict[str, str] = {}
        self._depths: list[str] = []

    def blocks(self) -> Iterator[Block]:
        while self._find_line():
            line = self._take_line()
            self._is_header = self._is_header and bool(line)
            if self._is_header and (attribute := _ATTRIBUTE.match(line)) is not None:
                self._set_attribute(attribute)
                continue
            if _ANCHOR.match(line) or _BLOCK_ATTRIBUTES.match(line):
                yield from self._end()
            yield from self._line(line)
        yield from self._end()

    def _find_line(self) -> bool:
        """Move to the next line that no condition excludes; return whether there is one."""
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip()
            match = _CONDITION.match(line)
            if match is not None and not match[1]:
                is_met = self._follow(match[2], match[3].lower(), match[4])
                if match[2] != "endif" and match[3] and match[4]:
                    # The condition applies only to the text in brackets.
                    self._conditions.pop()
                    if is_met:
                        self._lines[self._at] = match[4]
                        continue
            elif all(self._conditions):
                return True
            self._at += 1
        return False

    def _follow(self, kind: str, target: str, text: str) -> bool:
        """Open or close a condition; return whether it is met, as are those around it."""
        if kind == "endif":
            self._conditions[-1:] = []
            return False
        names = target.replace("+", ",").split(",")
        results = [name in self.attributes for name in names]
        is_met = all(results) if "+" in target else any(results)
        is_met = is_met is (kind != "ifndef") and kind != "ifeval"
        if all(self._conditions) and not is_met:
            name = f"{kind} {target or text}"
            self.left_out.add("part", "the condition is not met or not evaluated", name=name)
        self._conditions.append(is_met)
        return all(self._conditions)

    def _fill(self, text: str) -> str:
        """Return text with the values of the first attributes in it that are set."""
        return _INLINE_ATTRIBUTE.sub(
            lambda found: self.attributes.get(found[1].lower(), found[0]), text, _MOST_VALUES
        )

    def _take_line(self) -> str:
        line = self._lines[self._at].rstrip()
        self._at += 1
        return line[1:] if line.startswith("\\") and _CONDITION.match(line) else line

    def _line(self, line: str) -> Iterator[Block]:
        if not line or line == "+":
            yield from self._end()
            if not line and not self._goes_on():
                self._depths, self._counts = [], {}
        elif _IGNORED.match(line) is not None:
            return
        elif (match := _TABLE_FENCE.match(line)) is not None:
            yield from self._end()
            taken = [row for row in self._take_until(line) if not _IGNORED.match(row)]
            rows = read_table(taken, self._style, self._plain, line[0])
            self._style = ""
            yield from write_table(rows)
        elif (match := _FENCE.match(line)) is not None:
            yield from self._end()
            yield from self._fence(match[1], match[2])
        elif not self._held and (match := _IMAGE.fullmatch(line)) is not None:
            yield Block(BlockKind.TEXT, "", pictures=(self._picture(match, self._title),))
        elif not self._held and self._note(line):
            return
        else:
            yield from self._text_line(line)

    def _note(self, line: str) -> bool:
        """Return whether a line between blocks describes the next block."""
        if (match := _ATTRIBUTE.match(line)) is not None:
            self._set_attribute(match)
        elif (match := _ANCHOR.match(line)) is not None:
            self._anchor = match[1] or match[2]
        elif (match := _BLOCK_ATTRIBUTES.match(line)) is not None:
            self._style = match[1]
        elif (match := _DIRECTIVE.match(line)) is not None:
            name = f"{match[1]} {match[2].partition('[')[0]}".strip()
            if match[1] != "toc":
                self.left_out.add(
                    "directive", _NOT_READ.get(match[1], "recordings are not read"), name=name
                )
        else:
            return line in _BREAKS
        return True

    def _set_attribute(self, match: re.Match[str]) -> None:
        name, value = match[2].lower(), (match[4] or "").strip()
        while value.endswith(" \\") and self._find_line():
            value = value[:-1] + self._take_line().strip()
        filled = self._fill(value)
        value = filled if len(filled) <= _LONGEST_VALUE else value
        if match[1] or match[3]:
            self.attributes.pop(name, None)
        elif len(value) <= _LONGEST_VALUE:
            self.attributes[name] = value

    def _text_line(self, line: str) -> Iterator[Block]:
        if (match := _HEADING.match(line)) is not None and not self._held:
            yield self._heading(len(match[1]), match[2])
        elif (match := _ITEM.match(line)) is not None:
            yield from self._end()
            self._marker = self._item_marker(match[1])
            self._held = [match[2]]
        elif (match := _TERM.match(line)) is not None and "[" not in match[1]:
            yield from self._end()
            self._held = [f"{match[1]}: {match[2]}" if match[2] else f"{match[1]}:"]
        elif not self._held and (title := _TITLE.match(line)) is not None:
            self._title = self._plain(title[1])
            yield Block(BlockKind.TEXT, self._title)
        elif not self._held and line[0] in " \t" and not self._marker:
            yield from _write_code("", dedent("\n".join((line, *self._take_until("")))).split("\n"))
        else:
            self._held.append(line.strip())

    def _heading(self, level: int, text: str) -> Block:
        shown = self._plain(text)
        anchor = self._anchors.take(shown.replace("`", ""), self._anchor)
        self._anchor, self._style = None, ""
        self._is_header = level == 1
        self._depths, self._counts = [], {}
        return Block(BlockKind.HEADING, shown, level, anchor)

    def _item_marker(self, mark: str) -> str:
        """Return the label of an item, indented according to its depth."""
        kind = mark if mark[0] in "*-." else "1"
        if kind in self._depths:
            for deeper in self._depths[self._depths.index(kind) + 1 :]:
                self._counts.pop(deeper, None)
            del self._depths[self._depths.index(kind) + 1 :]
        else:
            self._depths.append(kind)
            start = _START.search(self._style)
            self._counts[kind] = int(start[1]) - 1 if start is not None else 0
            nested = _NESTED_NUMBERINGS[min(len(mark), len(_NESTED_NUMBERINGS)) - 1]
            stated = (part.strip() for part in self._style.split(","))
            self._numberings[kind] = next((part for part in stated if part in NUMBERINGS), nested)
        indent = "  " * min(len(self._depths) - 1, DEEPEST_INDENT)
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if mark[0].isdigit():
            return f"{indent}{mark} "
        numbering = self._numberings[kind] if mark[0] == "." else ""
        number = write_number(self._counts[kind], numbering)
        return f"{indent}{number}. " if mark[0] in ".<" else f"{indent}- "

    def _goes_on(self) -> bool:
        """Return whether the next non-empty line is an item of the same list."""
        following = ""
        while self._find_line() and not (following := self._lines[self._at].rstrip()):
            self._at += 1
        return _ITEM.match(following) is not None or following == "+"

    def _end(self) -> Iterator[Block]:
        held, self._held = self._held, []
        marker, self._marker = self._marker, ""
        if not held:
            return
        joined = " ".join(_HARD_BREAK.sub(_HELD_BREAK, line) for line in held)
        if self._style in _BOXES:
            joined = f"{self._style}: {joined}"
        admonition = _ADMONITION.match(joined)
        pictures = tuple(self._picture(match) for match in _IMAGE.finditer(joined))
        text = self._plain(f"{admonition[1]}: {admonition[2]}" if admonition else joined)
        text = text.replace("\n", f"\n{' ' * len(marker)}")
        if text:
            kind = BlockKind.ITEM if marker else BlockKind.TEXT
            yield Block(kind, f"{marker}{text}", pictures=pictures)
        self._style = self._title = ""

    def _picture(self, match: re.Match[str], title: str = "") -> Picture:
        """Return a picture; its caption is its title or, if there is none, its alternative text."""
        stated = _IMAGE_TITLE.search(match[2])
        named = title or (self._plain(stated[1]) if stated else _name_alternative(match[2]))
        return Picture(named, match[1])

    def _fence(self, mark: str, language: str) -> Iterator[Block]:
        style, self._style = self._style, ""
        if mark[0] == "/":
            self._take_until(mark)
        elif mark[0] in _VERBATIM and mark != "--":
            parts = [part.strip() for part in style.split(",")]
            named = parts[1] if len(parts) > 1 and parts[0] in ("source", "") else language
            lines = self._take_until(mark)
            fills = _FILLED.search(style) is not None
            yield from _write_code(named, [self._fill(line) if fills else line for line in lines])
        elif style in _BOXES:
            yield Block(BlockKind.TEXT, f"{style}:")
        elif style.startswith(("quote,", "verse,")):
            author = ", ".join(part.strip() for part in style.split(",")[1:])
            yield Block(BlockKind.TEXT, f"{self._plain(author)}:")
        # The marks of other fences are left out; what they enclose is read as usual.

    def _take_until(self, closing: str) -> list[str]:
        taken: list[str] = []
        while self._find_line() and (line := self._take_line()) != closing:
            taken.append(line)
        return taken

    def _plain(self, text: str) -> str:
        """Return the text on one line without markup; unknown attributes stay as written."""
        held: list[str] = []

        def hold(shown: str) -> str:
            held.append(shown)
            return f"\x1a{len(held) - 1}\x1a"

        def hold_passed(match: re.Match[str]) -> str:
            shown = keep_tildes(next((part for part in match.groups() if part is not None), ""))
            return hold(shown if match.lastgroup is None else shown.replace("\\]", "]"))

        def fill(match: re.Match[str]) -> str:
            known = _KNOWN.get(match[1])
            return self.attributes.get(match[1].lower(), match[0] if known is None else hold(known))

        text = _ESCAPED_ATTRIBUTE.sub(hold_passed, text.replace("\x1a", ""))
        text = _PASSED.sub(hold_passed, _LITERAL.sub(lambda found: hold(f"`{found[1]}`"), text))
        text = _QUOTED.sub(r"\1\2\1", _INLINE_ATTRIBUTE.sub(fill, text))
        text = _CODE.sub(lambda found: hold(f"`{unescape(found[1] or found[2])}`"), text)
        text = _REFERENCE.sub(
            lambda found: found[2] or self._titles.get(found[1], found[1]),
            _INLINE_ANCHOR.sub("", text),
        )
        for _ in range(_DEEPEST_MACRO):
            text = _MACRO.sub(_show_macro, _LINK.sub(self._show_link, text))
        parts = zip(_SCRIPT.split(text), cycle(_SCRIPTS), strict=False)
        text = join_spans(Span(part or "", script) for part, script in parts)
        text = _STRUCK.sub(r"~~\2~~", text)
        for pattern in _FORMATS:
            text = pattern.sub(r"\1", text)
        text = unescape(text).replace("\xad", "")
        for _ in range(_DEEPEST_MACRO):
            text = _HELD.sub(lambda found: held[int(found[1])], text)
        return _BREAK.sub("\n", " ".join(text.split())).strip()

    def _show_link(self, match: re.Match[str]) -> str:
        label = match[2] if "=" not in match[2] else match[2].partition(",")[0]
        label = label.rstrip("^")
        if label and "\x1a" not in label and len(self.links) < _MOST_LINKS:
            self.links.append((self._plain(label), match[1]))
        return label or match[1]


def read(data: bytes, source: str) -> Page:
    """Return the page; its title is the document title or, if there is none, the first heading."""
    text, warnings = decode(data)
    reader = _AsciiDocReader(text.split("\n")[:_MOST_LINES])
    blocks = tuple(reader.blocks())
    attributes = reader.attributes
    return Page(
        source,
        first_heading(blocks) or attributes.get("title", ""),
        blocks,
        description=attributes.get("description", ""),
        keywords=list_keywords(attributes.get("keywords")),
        language=attributes.get("lang") or None,
        links=tuple(reader.links),
        warnings=warnings,
        left_out=reader.left_out.list(),
    )


def read_table(
    lines: Sequence[str], style: str, plain: Callable[[str], str], mark: str = "|"
) -> list[list[Cell]]:
    """Return the rows of a table with the block attributes `style`; `mark` begins its fence.

    Without a number of columns, the first line is one row.
    """
    formats = list(_FORMAT.finditer(style))
    named = next((match[1] for match in formats if match[1]), "")
    separator = next((match[2] for match in formats if match[2]), "")
    if named or mark in (",", ":"):
        separator = separator or _SEPARATORS.get(named, mark)
        return [
            [Cell(plain(cell)) for cell in row]
            for row in csv.reader(lines, delimiter=separator, skipinitialspace=True)
        ]
    columns = _COLUMNS.search(style)
    times = _TIMES.findall(columns[1] if columns is not None else "")
    stated = min(sum(int(number or 1) for number in times), MOST_COLUMNS)
    first = next((line for line in lines if line.strip()), "")
    cells = list(_cells(lines, plain))
    width = stated or sum(cell.columns for cell in _cells([first], plain)) or 1
    rows: list[list[Cell]] = [[]]
    filled = 0
    taken: dict[int, int] = {}
    for cell in cells:
        if filled + taken.get(len(rows) - 1, 0) >= width:
            rows.append([])
            filled = 0
        for below in range(1, min(cell.rows, 1000)):
            at = len(rows) - 1 + below
            taken[at] = taken.get(at, 0) + cell.columns
        rows[-1].append(cell)
        filled += cell.columns
    return [row for row in rows if row]


def _find_titles(lines: Iterable[str]) -> dict[str, str]:
    """Return the titles of headings and blocks by the anchors before them."""
    titles: dict[str, str] = {}
    anchors: list[str] = []
    for line in lines:
        if (anchor := _ANCHOR.match(line)) is not None:
            anchors.append(anchor[1] or anchor[2])
        elif anchors and _BLOCK_ATTRIBUTES.match(line) is None:
            heading, title = _HEADING.match(line), _TITLE.match(line)
            named = heading[2] if heading is not None else title[1] if title is not None else ""
            titles.update(dict.fromkeys(anchors if named else (), named))
            anchors = []
    return titles


def _write_code(language: str, lines: Sequence[str]) -> Iterator[Block]:
    if any(lines):
        yield make_code("\n".join(lines).rstrip(), language)


def _cells(lines: Iterable[str], plain: Callable[[str], str]) -> Iterator[Cell]:
    lines = (_HARD_BREAK.sub("", line.rstrip()) for line in lines)
    text = "\n".join(lines).replace(_BARS, "").replace("\\|", _BARS)
    marks = list(_CELL.finditer(text))
    for index, mark in enumerate(marks):
        end = marks[index + 1].start() if index + 1 < len(marks) else len(text)
        content = plain(" ".join(text[mark.end() : end].split())).replace(_BARS, "|")
        span = _SPAN.match(mark[1])
        columns, rows = 1, 1
        if span is not None:
            columns, rows = int(span[1] or 1), int(span[2] or 1)
        if span is not None and span[3] == "*":
            yield from [Cell(content)] * min(columns, MOST_COLUMNS)
        else:
            yield Cell(content, max(columns, 1), max(rows, 1))


def _show_macro(match: re.Match[str]) -> str:
    shown = _name_alternative(match[2])
    if match[0].startswith("image"):
        return f"![{shown}]" if shown else ""
    if match[0].startswith("footnote"):
        return f" [{match[2]}]" if match[2] else ""
    if match[0].startswith("kbd"):
        return match[2].replace(",", "+")
    if match[0].startswith("menu"):
        return " > ".join(filter(None, (match[1], shown)))
    return shown or match[1]


def _name_alternative(attributes: str) -> str:
    """Return the first attribute of a macro: its label, or the alternative text of a picture."""
    first = attributes.partition(",")[0].strip('"').rstrip("^")
    return "" if "=" in first else first
