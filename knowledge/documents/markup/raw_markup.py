"""Tracks the HTML elements in Markdown, and removes the text that they hide.

An element may begin in one block and end in another; it also hides the Markdown in between. The
state follows browsers as far as practical: an element ends with its end tag or with the list item
or quotation that contains it, an inline element also with its paragraph.
"""

import html
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping

from knowledge.documents.markup.appearance import Appearance, Rule, appearance_inside, parse_rules
from knowledge.documents.page import Picture

_LONGEST_TAG = 8_000
_INTERESTING = re.compile(r"[<`\\]")
_TAG_START = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)(?=[\s/>])")
_TAG_REST = re.compile(r"(?:[^\"'{}<>]|\"[^\"]*\"|'[^']*'|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})*>")
_ATTRIBUTE = re.compile(
    r"([^\s\"'<>/=]{1,200})"
    r"(?:\s{0,20}=\s{0,20}(?:\"([^\"]*)\"|'([^']*)'|(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})|([^\s\"'<>]+)))?"
)
_BACKTICKS = re.compile("`+")
_STYLE_START = re.compile(r"<style[^<>]{0,400}>", re.IGNORECASE)
_SIMPLE = re.compile(r"([a-z][\w-]*)?((?:[.#][\w-]+)*)\Z", re.IGNORECASE)
_VOID_NAMES = "area base br col embed hr img input link meta param source track wbr"
_VOID = frozenset(_VOID_NAMES.split())
_LINE_NAMES = "span abbr cite kbd mark q sub sup var samp time data dfn label bdi bdo ins del"
_OF_A_LINE = frozenset(_LINE_NAMES.split())
_BLOCK_NAMES = (
    "p div ul ol dl table section article aside blockquote pre h1 h2 h3 h4 h5 h6 details figure "
    "header footer main nav form fieldset hr address"
)
_CELLS = frozenset({"td", "th"})
_ENDED_BY: Mapping[str, frozenset[str]] = {
    "tr": _CELLS | {"tr"},
    "td": _CELLS,
    "th": _CELLS,
    "li": frozenset({"li", "p"}),
    "dt": frozenset({"dt", "dd", "p"}),
    "dd": frozenset({"dt", "dd", "p"}),
    **dict.fromkeys(_BLOCK_NAMES.split(), frozenset({"p"})),
}


class RawMarkup:
    """The open elements; `hidden_words` is the number of removed words."""

    def __init__(self, markdown: str) -> None:
        self.hidden_words = 0
        self._pictures: list[Picture] = []
        self._rules = _page_rules(markdown)
        self._open: list[tuple[str, Appearance | None]] = [("", Appearance())]
        self._counts: list[Counter[str]] = [Counter()]

    @property
    def hides(self) -> bool:
        """Whether text at this position is hidden."""
        inside = self._open[-1][1]
        return inside is None or not inside.shows_text

    def enter(self) -> None:
        """Begin a part, such as a list item, whose end closes every element opened in it."""
        self._open.append(("", self._open[-1][1]))
        self._counts.append(Counter())

    def leave(self) -> None:
        """End a part and close its elements."""
        while self._open.pop()[0]:
            pass
        self._counts.pop()

    def begin_block(self) -> None:
        """Begin a block of Markdown: it ends an open paragraph."""
        self._end_top(_ENDED_BY["p"])

    def end_line(self) -> None:
        """End a paragraph of Markdown and its inline elements."""
        self._end_top(_OF_A_LINE)

    def hide(self, text: str) -> str:
        """Return a block without markup, such as code, or an empty text if it is hidden."""
        if not self.hides:
            return text
        self.hidden_words += len(text.split())
        return ""

    def visible_inline(self, text: str) -> str:
        """Return a line of Markdown without its tags and without hidden text."""
        if "<" not in text:
            return self.hide(text)
        return _Scan(self, text, is_inline=True).run()

    def visible_block(self, markup: str) -> str:
        """Return a block of HTML with its tags, without hidden text."""
        return _Scan(self, markup, is_inline=False).run()

    def take_pictures(self) -> tuple[Picture, ...]:
        """Return the visible pictures since the last time."""
        taken, self._pictures = tuple(self._pictures), []
        return taken

    def start(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        """Record the beginning of an element."""
        self._end_top(_ENDED_BY.get(tag, frozenset()))
        if tag == "img" and not self.hides and attributes.get("src"):
            caption = attributes.get("alt") or ""
            self._pictures.append(Picture(caption, (attributes["src"] or "").strip()))
        if tag in _VOID:
            return
        outer = self._open[-1][1]
        inner = (
            None
            if outer is None
            else appearance_inside(outer, tag, attributes, self._apply_rules(tag, attributes))
        )
        self._open.append((tag, inner))
        self._counts[-1][tag] += 1

    def end(self, tag: str) -> None:
        """Record the end of an element; the end of one that is not open is ignored."""
        if not self._counts[-1][tag]:
            return
        found = ""
        while found != tag:
            found = self._open.pop()[0]
            self._counts[-1][found] -= 1

    def _end_top(self, ended: frozenset[str]) -> None:
        while self._open[-1][0] in ended:
            self._counts[-1][self._open.pop()[0]] -= 1

    def _apply_rules(self, tag: str, attributes: Mapping[str, str | None]) -> dict[str, str]:
        styles: dict[str, str] = {}
        if self._rules:
            names = {f".{name}" for name in (attributes.get("class") or "").split()}
            names.add(f"#{attributes.get('id')}")
            for element, needed, rule in self._rules:
                if element in ("", tag) and needed <= names:
                    styles.update(rule.declarations)
        return styles


class _Scan:
    """One pass over one text."""

    def __init__(self, markup: RawMarkup, text: str, *, is_inline: bool) -> None:
        self._markup = markup
        self._text = text
        self._is_inline = is_inline
        self._kept: list[str] = []
        self._position = 0
        self._missing: set[str] = set()
        self._runs: dict[int, list[int]] = {}
        for run in _BACKTICKS.finditer(text) if is_inline else ():
            self._runs.setdefault(len(run[0]), []).append(run.start())

    def run(self) -> str:
        while (found := _INTERESTING.search(self._text, self._position)) is not None:
            self._keep(found.start())
            mark = found[0]
            if mark == "<":
                self._markup_at(found.start())
            elif not self._is_inline:
                self._keep(found.end())
            else:
                self._keep(self._literal_end(found.start(), mark))
        self._keep(len(self._text))
        return "".join(self._kept)

    def _literal_end(self, start: int, mark: str) -> int:
        """Return the end of an escape, of a run of backticks, or of the code that it begins."""
        if mark == "\\":
            return min(start + 2, len(self._text))
        run = _BACKTICKS.match(self._text, start)
        size = len(run[0]) if run is not None else 1
        same = self._runs.get(size, [])
        following = bisect_right(same, start)
        return same[following] + size if following < len(same) else start + size

    def _keep(self, end: int) -> None:
        text = self._text[self._position : end]
        self._kept.append(self._markup.hide(text) if text.strip() else text)
        self._position = end

    def _markup_at(self, start: int) -> None:
        text = self._text
        if text.startswith("<!--", start):
            end = start + 5 if text.startswith("<!-->", start) else self._find("-->", start + 4)
            # An unclosed comment is text within a line, but hides the rest of a block of HTML.
            self._skip(end if end is not None else None if self._is_inline else len(text), start)
        elif text.startswith(("<!", "<?"), start):
            self._skip(self._find(">", start), start)
        elif (tag := _TAG_START.match(text, start)) is not None:
            self._tag(tag)
        else:
            self._keep(start + 1)

    def _skip(self, end: int | None, start: int) -> None:
        if end is None:
            self._keep(start + 1)
        else:
            self._position = end

    def _tag(self, tag: re.Match[str]) -> None:
        start, text = tag.start(), self._text
        end = self._find(">", start)
        if end is None:
            self._keep(start + 1)
            return
        whole = _TAG_REST.match(text, tag.end(), tag.end() + _LONGEST_TAG)
        end = end if whole is None else whole.end()
        name = tag[2].lower()
        was_hidden = self._markup.hides
        if tag[1]:
            self._markup.end(name)
        elif not text.endswith("/>", start, end) or name not in _VOID or name == "img":
            self._markup.start(name, _attributes(text[tag.end() : end - 1]))
        if self._is_inline:
            self._kept.append(" ")
        elif not was_hidden and not self._markup.hides:
            self._kept.append(text[start:end])
        self._position = end

    def _find(self, mark: str, start: int) -> int | None:
        """Return the position after a mark, or None; a missing mark is searched only once."""
        if mark in self._missing:
            return None
        found = self._text.find(mark, start)
        if found < 0:
            self._missing.add(mark)
            return None
        return found + len(mark)


def _attributes(text: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for match in _ATTRIBUTE.finditer(text):
        values = [value for value in match.groups()[1:] if value is not None]
        found.setdefault(match[1].lower(), html.unescape(values[0]) if values else None)
    return found


def _page_rules(markdown: str) -> list[tuple[str, frozenset[str], Rule]]:
    """Return the rules for single elements in the style elements of a page."""
    css: list[str] = []
    start = 0
    while (opening := _STYLE_START.search(markdown, start)) is not None:
        end = markdown.find("</", opening.end())
        start = end if end >= 0 else len(markdown)
        css.append(markdown[opening.end() : start])
    rules = []
    for rule in sorted(parse_rules("\n".join(css)), key=lambda rule: rule.rank) if css else ():
        simple = _SIMPLE.match(rule.selector)
        if simple is not None:
            names = frozenset(re.findall(r"[.#][\w-]+", simple[2]))
            rules.append(((simple[1] or "").lower(), names, rule))
    return rules
