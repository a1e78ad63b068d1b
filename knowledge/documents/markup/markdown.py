"""Reads Markdown: blocks with their headings and anchors.

Only the block structure is parsed; inline markup is taken out by bounded patterns, because a
full inline parse of one very long line takes more than linear time.

Every pattern is bounded, so that a line of ten million characters costs linear time.

Known are containers (`:::tip Title`), places of generated documentation (`::: module`), tables of
contents, footnotes, abbreviations and shortcodes.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.token import Token

from knowledge.documents import front_matter
from knowledge.documents.decoding import decode
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.markup.html import note_on_hidden, text_of
from knowledge.documents.markup.raw_markup import RawMarkup
from knowledge.documents.page import (
    Anchors,
    Block,
    BlockKind,
    Page,
    Picture,
    first_heading,
    make_code,
    make_item,
)

_STATED_ANCHOR = re.compile(r"\{[ \t]*#([\w:.-]+)(?:[ \t][^{}]{0,200})?\}[ \t]*\Z")
_ADMONITION = re.compile(r"\A(?:!!!|\?\?\?\+?|===[!+]?)[ \t]")
_NOTE = re.compile(
    r"\A(?:!!!|\?\?\?\+?|===[!+]?)[ \t]{1,9}([\w-]{0,40})[\w \t-]{0,60}"
    r"(?:\"([^\"\n]{0,300})\")?[ \t]{0,9}$",
    re.MULTILINE,
)
_BAR = "\x1b"
_DEEPEST_NOTE = 4
_WITH_TEXT = frozenset({"inline", "code_block", "fence", "html_block", "table_open"})
_DIRECTIVE = re.compile(r"\{([\w:.+-]{1,40})\}(.*)\Z", re.DOTALL)
_OPTION_LINES = re.compile(r"\A(?:[ \t]*:[\w-]+:[^\n]*\n|[ \t]*\n)+")
_LISTINGS = frozenset({"code-block", "code", "code-cell", "sourcecode", "doctest", "testcode"})
_FIGURES = frozenset({"figure", "image"})
_LEFT_OUT = frozenset({"toctree", "eval-rst", "raw", "include", "literalinclude"})


def read(data: bytes, source: str) -> Page:
    """Return the page; its title is stated in front, or its first heading, or empty."""
    text, warnings = decode(data)
    return read_text(text, source, warnings)


def read_text(text: str, source: str, warnings: tuple[str, ...] = ()) -> Page:
    """Return the page of a text that is clean already."""
    front, body = front_matter.take(text)
    if front.unclear_groups:
        raise WrongFormatError(f"who may read it is unclear: {front.unclear_groups}")
    body = remove_site_marks(body)
    markup = RawMarkup(body)
    reader = _Blocks(Anchors(), markup)
    blocks = tuple(reader.of(body))
    return Page(
        source=source,
        title=front.title or first_heading(blocks),
        blocks=blocks,
        description=front.description,
        keywords=front.keywords,
        language=front.language,
        url=front.url,
        groups=front.groups,
        version=front.version,
        links=tuple(reader.links),
        warnings=(*warnings, *front.warnings, *note_on_hidden(markup.hidden_words)),
    )


def blocks_of(markdown: str) -> tuple[Block, ...]:
    """Return the blocks of a text in Markdown."""
    return tuple(_Blocks(Anchors(), RawMarkup(markdown)).of(markdown))


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


class _Blocks:
    """Walks the block tokens of a text, and collects the links to the web among them."""

    def __init__(self, anchors: Anchors, markup: RawMarkup, depth: int = 0) -> None:
        self._anchors = anchors
        self._markup = markup
        self._depth = depth
        self._markers: list[str] = []
        self._opened_note = False
        self._note_title = ""
        self._in_table: list[Picture] = []
        self.links: list[tuple[str, str]] = []

    def of(self, markdown: str) -> Iterator[Block]:
        tokens = _parser().parse(markdown)
        lines = markdown.split("\n")
        position = 0
        while position < len(tokens):
            token = tokens[position]
            is_inside = self._opened_note and token.type == "code_block"
            if token.type in _WITH_TEXT and not is_inside:
                yield from self._take_title()
            if token.type == "table_open":
                yield from self._table(token, lines)
                while tokens[position].type != "table_close":
                    position += 1
            else:
                yield from self._block(token, tokens[position - 1] if position else None)
            position += 1
        yield from self._take_title()

    def _take_title(self) -> Iterator[Block]:
        """Yield the title of a note or tab that has no text."""
        if self._note_title:
            yield Block(BlockKind.TEXT, self._note_title)
        self._note_title = ""

    def _block(self, token: Token, before: Token | None) -> Iterator[Block]:
        if token.type in ("fence", "code_block"):
            self._markup.begin_block()
            if self._markup.hide(token.content):
                yield from self._code(token)
        elif token.type == "html_block":
            text = text_of(self._markup.visible_block(token.content))
            pictures = self._markup.take_pictures()
            if text or pictures:
                yield Block(BlockKind.TEXT, text, pictures=pictures)
        elif token.type == "inline" and before is not None:
            yield from self._text(token, before)
        else:
            self._container(token)

    def _text(self, token: Token, before: Token) -> Iterator[Block]:
        self._markup.begin_block()
        content = self._markup.visible_inline(token.content)
        self._markup.end_line()
        self.links += find_web_links(content)
        pictures = (*find_pictures(content), *self._markup.take_pictures())
        if before.type == "heading_open":
            if content.strip() or not token.content:
                yield replace(self._heading(content, int(before.tag[1:])), pictures=pictures)
            return
        self._opened_note = _ADMONITION.match(token.content) is not None
        text = one_line(_NOTE.sub(_title_note, content, count=1))
        if not text:
            if pictures:
                yield Block(BlockKind.TEXT, "", pictures=pictures)
            return
        if not self._markers and self._opened_note and text == _title_of(token.content):
            self._note_title = text
            return
        is_link = _LINK.fullmatch(content.strip()) is not None
        if not self._markers:
            yield Block(BlockKind.TEXT, text, is_link=is_link, pictures=pictures)
            return
        depth = len(self._markers) - 1
        yield make_item(self._markers[-1], text, depth, is_link=is_link, pictures=pictures)
        self._markers[-1] = " " * len(self._markers[-1])

    def _heading(self, content: str, level: int) -> Block:
        content = content.rstrip(" \t")
        stated = _STATED_ANCHOR.match(content, max(0, content.rfind("{")))
        text = one_line(content if stated is None else content[: stated.start()])
        name = self._anchors.take(text.replace("`", ""), stated[1] if stated else None)
        return Block(BlockKind.HEADING, text, level, name)

    def _code(self, token: Token) -> Iterator[Block]:
        directive = _DIRECTIVE.match(token.info.strip())
        if directive is not None and self._depth < _DEEPEST_NOTE:
            yield from self._directive(directive[1], directive[2].strip(), token.content)
        elif token.type == "code_block" and self._opened_note and self._depth < _DEEPEST_NOTE:
            title, self._note_title = self._note_title, ""
            yield from _put_title(title, self._inside(token.content))
        elif token.content.strip():
            yield _code(_describe_fence(token.info), token.content)

    def _directive(self, name: str, argument: str, content: str) -> Iterator[Block]:
        """Read a fence that is a box, a tab or the like, as documentation generators write them."""
        options = _OPTION_LINES.match(content)
        body = content if options is None else content[options.end() :]
        if name in _LISTINGS:
            if body.strip():
                yield _code(_add_caption(argument, options[0] if options else ""), body)
        elif name in _FIGURES:
            yield Block(BlockKind.TEXT, "", pictures=(_figure(argument, options, body),))
            yield from self._inside(body)
        elif name not in _LEFT_OUT:
            yield from self._inside(f"{argument}\n\n{body}")

    def _inside(self, markdown: str) -> Iterator[Block]:
        inner = _Blocks(self._anchors, self._markup, self._depth + 1)
        inner.links = self.links
        yield from inner.of(remove_site_marks(markdown))

    def _table(self, token: Token, lines: Sequence[str]) -> Iterator[Block]:
        first, last = token.map if token.map is not None else (0, 0)
        self._markup.begin_block()
        rows = [self._plain_row(line) for line in lines[first:last]]
        if any(rows):
            pictures, self._in_table = tuple(self._in_table), []
            text = "\n".join(row for row in rows if row)
            yield Block(BlockKind.TABLE, text, pictures=pictures)

    def _plain_row(self, line: str) -> str:
        """Return a row without markup, in which an escaped bar is no border of a cell."""
        held = self._row(line).replace(_BAR, "").replace("\\|", _BAR)
        return plain(held).replace(_BAR, "\\|")

    def _row(self, line: str) -> str:
        self._markup.enter()
        row = self._markup.visible_inline(line.strip().lstrip(">").strip())
        self.links += find_web_links(row)
        self._in_table += (*find_pictures(row), *self._markup.take_pictures())
        self._markup.leave()
        return row

    def _container(self, token: Token) -> None:
        if token.type in ("list_item_open", "blockquote_open"):
            self._markup.enter()
        elif token.type in ("list_item_close", "blockquote_close"):
            self._markup.leave()
        if token.type == "list_item_open":
            self._markers.append(f"{token.info}{token.markup}" if token.info else "-")
        elif token.type == "list_item_close":
            self._markers.pop()


_FENCE_LABEL = re.compile(
    r"(?<![\w-])(?:tab|title|label|caption|filename)=(?:\"[^\"\n]{1,200}\"|'[^'\n]{1,200}')"
    r"|(?<!\S)\[[^\[\]\n]{1,80}\](?!\S)"
)


def _describe_fence(info: str) -> str:
    """Return the language of a fence and the label of its tab or file, without other options."""
    language = next((word.strip("{}.,") for word in info.split() if word.strip("{}.,")), "")
    labels = [found[0] for found in _FENCE_LABEL.finditer(info)]
    return " ".join(("" if _FENCE_LABEL.match(info.strip()) else language, *labels)).strip()


def _title_note(found: re.Match[str]) -> str:
    """Return the title of a note or tab, else its kind: a box without a title is headed by it.

    A title whose text follows in the same paragraph ends with a sign, so that it is no part of it.
    """
    title = found[2] or found[1].capitalize()
    has_text = bool(found.string[found.end() :].strip())
    return f"{title}:" if title and has_text and title[-1].isalnum() else title


def _title_of(content: str) -> str:
    """Return the title of a note whose text does not follow in the same paragraph, else nothing."""
    found = _NOTE.match(content)
    return _title_note(found) if found is not None and found.end() == len(content.rstrip()) else ""


def _put_title(title: str, blocks: Iterator[Block]) -> Iterator[Block]:
    """Put the title of a note or tab before its text, or above its code, list or table."""
    first = next(blocks, None)
    lead = f"{title}:" if title and title[-1].isalnum() else title
    if first is None or first.kind is BlockKind.HEADING:
        lead = title
    if title and first is not None and first.kind is BlockKind.TEXT:
        first = replace(first, text=f"{lead} {first.text}")
    elif title:
        yield Block(BlockKind.TEXT, lead)
    if first is not None:
        yield first
    yield from blocks


_ALT_OPTION = re.compile(r"^[ \t]*:alt:[ \t]{1,20}([^\n]{1,500})$", re.MULTILINE)


def _figure(address: str, options: re.Match[str] | None, body: str) -> Picture:
    """Return the picture of a directive; its caption is its first paragraph, else its `alt`."""
    alt = _ALT_OPTION.search(options[0]) if options is not None else None
    caption = one_line(body.strip().partition("\n\n")[0])
    return Picture(caption or (alt[1].strip() if alt is not None else ""), address)


_CAPTION_OPTION = re.compile(r"^[ \t]*:caption:[ \t]{1,20}([^\"\n]{1,200})$", re.MULTILINE)


def _add_caption(info: str, options: str) -> str:
    """Return what stands behind a fence: its language, and the caption that its options state."""
    caption = _CAPTION_OPTION.search(options)
    return info if caption is None else f'{info} title="{caption[1].strip()}"'


def _code(info: str, content: str) -> Block:
    return make_code(content.rstrip("\n"), info)


_IMAGE = re.compile(r"!\[([^\[\]]{0,500})\](?:\([^()\n]{0,2000}\)|\[[^\[\]]{0,200}\])")
_LINK = re.compile(
    r"\[([^\[\]]{1,500})\](?:\((?:[^()\n]|\([^()\n]{0,200}\)){0,2000}\)|\[[^\[\]]{0,200}\])"
)
_WEB_LINK = re.compile(
    r"(?<!!)\[([^\[\]]{1,200})\]\(<?(https?://[^\s<>()]{1,500}(?:\([^\s<>()]{0,100}\))?[^\s<>()]{0,200})"
)
_AUTOLINK = re.compile(r"<((?:https?|mailto):[^<>\s]{1,2000})>")
_TAG = re.compile(r"</?[A-Za-z][\w.:-]{0,60}(?:\s[^<>]{0,2000})?/?>|<!--[^<>]{0,2000}-->")
_STRONG = re.compile(r"(\*\*|__)(?=\S)([^*_\n]{1,2000})(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,2000})(?<=[^\s*])\*(?![\w*])")
_UNDERSCORED = re.compile(r"(?<!\w)_(?=[^\s_])([^_\n]{1,2000})(?<=[^\s_])_(?!\w)")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|<>~-])")
_TICKS = re.compile(r"`+")
_FENCED_NOTE = re.compile(r"^[^\S\n]*(?:/{3,4}|:{3,4}|!{3}|\?{3}\+?)[ \t]*", re.MULTILINE)
# Roles and targets as documentation generators write them in Markdown; a code span follows a role.
_CODE_MARK = "\x1a"
_PICTURE_START, _PICTURE_END = "\x0e", "\x0f"
_ROLE = re.compile(rf"\{{([A-Za-z][\w:.-]{{0,40}})\}}(?={_CODE_MARK}(\d{{1,9}}){_CODE_MARK})")
_MARKED_CODE = re.compile(rf"{_CODE_MARK}(\d{{1,9}}){_CODE_MARK}")
_REFERENCE_ROLES = frozenset({"ref", "doc", "term", "numref", "any"})
_REFERENCE_TARGET = re.compile(r"\s{0,3}<[^<>\n]{1,300}>\Z")
_TARGET = re.compile(r"^\([\w.:-]{1,100}\)=[ \t]*$", re.MULTILINE)
_ATTRIBUTE = r"(?:[#.][\w:.-]{1,60}|[\w-]{1,30}=(?:\"[^\"\n]{0,100}\"|[\w%.-]{1,60}))"
_ATTRIBUTES = re.compile(
    rf"[ \t]?\{{:?[ \t]{{0,3}}{_ATTRIBUTE}(?:[ \t]{{1,3}}{_ATTRIBUTE}){{0,9}}[ \t]{{0,3}}\}}"
)
_ICON = re.compile(r":(?:material|octicons|fontawesome|simple)-[\w-]{1,60}:[ \t]?")
_FOOTNOTE_MARK = re.compile(r"\[\^[^\[\]\s]{1,60}\]")
_SPACE = re.compile(r"[ \t]{2,}")


def plain(text: str) -> str:
    """Return the text without markup; code spans keep their backticks and every character."""
    marked, spans = _mark_code(text.replace(_CODE_MARK, ""))
    marked = _TARGET.sub("", _FENCED_NOTE.sub("", marked))
    for role in _ROLE.finditer(marked):
        if role[1] in _REFERENCE_ROLES:
            number = int(role[2])
            spans[number] = _REFERENCE_TARGET.sub("", spans[number].strip("`"))
    marked = _FOOTNOTE_MARK.sub("", _ICON.sub("", _ROLE.sub("", marked)))
    marked = _ATTRIBUTES.sub("", marked)
    marked = _TAG.sub(" ", _AUTOLINK.sub(r"\1", _IMAGE.sub(_mark_picture, marked)))
    marked = _SPACE.sub(" ", _without_marks(_LINK.sub(r"\1", marked))).strip()
    marked = marked.replace(_PICTURE_START, "![").replace(_PICTURE_END, "]")
    return _MARKED_CODE.sub(lambda found: spans[int(found[1])], marked)


def _mark_picture(found: re.Match[str]) -> str:
    """Return the text that stands for a picture, marked: it is a name and no sentence."""
    name = " ".join(found[1].split())
    return f"{_PICTURE_START}{name}{_PICTURE_END}" if name else ""


_SHOWN = re.compile(
    r"!\[([^\[\]]{0,500})\]\([ \t]{0,3}(?:<([^<>\n]{1,500})>|([^\s()<>]{1,500}))[^()\n]{0,500}\)"
)


def find_pictures(text: str) -> list[Picture]:
    """Return the pictures of a text with their names, without those of code."""
    marked = _mark_code(text.replace(_CODE_MARK, ""))[0] if "![" in text else ""
    return [Picture(one_line(found[1]), found[2] or found[3]) for found in _SHOWN.finditer(marked)]


def find_web_links(text: str) -> list[tuple[str, str]]:
    """Return the label of each link to the web, without markup, and its address."""
    marked, _ = _mark_code(text.replace(_CODE_MARK, ""))
    found = ((one_line(link[1]), link[2]) for link in _WEB_LINK.finditer(marked))
    return [(label, address) for label, address in found if label and label != address]


def _mark_code(text: str) -> tuple[str, list[str]]:
    """Return the text with a mark for each code span, and the spans with their backticks.

    A span ends at the next run of equally many backticks (CommonMark 0.31, 6.1).
    """
    runs = list(_TICKS.finditer(text))
    next_equal: dict[int, int] = {}
    ends: list[int | None] = [None] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        length = len(runs[index][0])
        ends[index] = next_equal.get(length)
        next_equal[length] = index
    parts: list[str] = []
    spans: list[str] = []
    at = index = 0
    while index < len(runs):
        end = ends[index]
        if end is None or _is_escaped(text, runs[index].start()):
            index += 1
            continue
        start, stop = runs[index].start(), runs[end].end()
        parts += [text[at:start], f"{_CODE_MARK}{len(spans)}{_CODE_MARK}"]
        spans.append(text[start:stop].replace("\n", " "))
        at, index = stop, end + 1
    return "".join([*parts, text[at:]]), spans


def _is_escaped(text: str, at: int) -> bool:
    first = at
    while first and text[first - 1] == "\\":
        first -= 1
    return (at - first) % 2 == 1


def one_line(text: str) -> str:
    """Return the plain text with soft line breaks joined."""
    return " ".join(line.strip() for line in plain(text).split("\n") if line.strip())


def _without_marks(text: str) -> str:
    for pattern, replacement in (
        (_STRONG, r"\2"),
        (_EMPHASIS, r"\1"),
        (_UNDERSCORED, r"\1"),
        (_ESCAPE, r"\1"),
    ):
        text = pattern.sub(replacement, text)
    return html.unescape(text)


_FENCE = re.compile(r"[ \t>]{0,40}(`{3,}|~{3,})")
_CONTAINER = re.compile(
    r"[ \t]{0,40}:{3,}[ \t]{0,9}(?:\{?([\w:.+-]{1,60})\}?)?(?:[ \t]{0,9}\[([^\[\]]{1,200})\]|"
    r"[ \t]{1,9}(.{1,300}))?\Z"
)
_CONTENTS = re.compile(
    r"[ \t]{0,3}(?:\[TOC\]|\[\[_?TOC_?\]\]|\[\[toc\]\])[ \t]{0,9}\Z", re.IGNORECASE
)
_SHORTCODE = re.compile(r"\{\{[<%][^{}]{0,500}[>%]\}\}|\{%[^{}%]{0,500}%\}")
_FOOTNOTE = re.compile(r"[ \t]{0,3}\[\^[^\[\]]{1,60}\]:[ \t]{1,9}")
_ABBREVIATION = re.compile(r"[ \t]{0,3}\*\[([^\[\]]{1,60})\]:[ \t]{1,9}")
_NUMBER = re.compile(r"[\d ]{1,9}\Z")


def remove_site_marks(text: str) -> str:
    """Return Markdown without the marks; titles of containers stay as text."""
    return "\n".join(_clean_lines(unfold_tabs(text.split("\n"))))


_TAB = re.compile(r"[ \t]{0,80}<(/?)(Tabs|TabItem|Tab)(?:\s([^<>\n]{0,500}))?(?<!/)>[ \t]{0,80}\Z")
_LONGEST_LINE_OF_TABS = 2000
_TAB_LABEL = re.compile(r"(?<![\w-])(label|title|value)=(?:\"([^\"\n]{1,200})\"|'([^'\n]{1,200})')")


def unfold_tabs(lines: Sequence[str]) -> list[str]:
    """Return lines in which the label of each tab stands above what it holds, not indented."""
    kept: list[str] = []
    margins: list[int | None] = []
    fence: str | None = None
    for line in lines:
        tabs = _find_tabs(line) if fence is None and "<" in line else []
        if not tabs:
            if margins and margins[-1] is None and line.strip():
                margins[-1] = len(line) - len(line.lstrip())
            kept.append(_dedent(line, margins[-1] or 0) if margins else line)
            mark = _FENCE.match(line)
            fence = follow_fence(fence, mark[1]) if mark is not None else fence
            continue
        for tab in tabs:
            if tab[1]:
                margins[-1:] = []
            else:
                margins.append(None)
            kept += ["", _find_tab_label(tab[3] or ""), ""]
    return kept


def _find_tabs(line: str) -> list[re.Match[str]]:
    """Return the tags of a line that has nothing but tags of tabs, else none."""
    parts = line.replace("><", ">\n<").split("\n") if len(line) <= _LONGEST_LINE_OF_TABS else []
    found = [tag for tag in map(_TAB.match, parts) if tag is not None]
    return found if len(found) == len(parts) else []


def _find_tab_label(attributes: str) -> str:
    stated = {found[1]: found[2] or found[3] for found in _TAB_LABEL.finditer(attributes)}
    return next((stated[name] for name in ("label", "title", "value") if name in stated), "")


def _dedent(line: str, margin: int) -> str:
    return line[min(margin, len(line) - len(line.lstrip())) :]


def _clean_lines(lines: list[str]) -> Iterator[str]:
    fence: str | None = None
    is_generated = False
    for line in lines:
        mark = _FENCE.match(line)
        if mark is not None:
            fence = follow_fence(fence, mark[1])
        if fence is not None or mark is not None:
            is_generated = False
            yield line
            continue
        if is_generated and line[:1] in (" ", "\t"):
            continue
        container = _CONTAINER.match(line.rstrip())
        name = container[1] or "" if container is not None else ""
        is_generated = "." in name and container is not None and not (container[2] or container[3])
        if container is not None:
            yield from _write_container(container)
        elif _CONTENTS.match(line) is None:
            yield _clean_line(line)


def _write_container(found: re.Match[str]) -> Iterator[str]:
    title = found[2] or found[3] or _name_box(found[1] or "")
    yield ""
    if title and _NUMBER.match(title) is None:
        yield title.strip()
        yield ""


_BOX_NAMES = "attention caution danger error hint important info note seealso success tip warning"
_BOXES = frozenset(_BOX_NAMES.split(" "))


def _name_box(name: str) -> str:
    """Return the title of a box that states none: its kind, as its readers see it."""
    return name.capitalize() if name in _BOXES else ""


def _clean_line(line: str) -> str:
    if "{" in line and "`" not in line:
        line = _SHORTCODE.sub("", line)
    return _ABBREVIATION.sub(r"\1: ", _FOOTNOTE.sub("", line, count=1), count=1)


def follow_fence(fence: str | None, mark: str) -> str | None:
    """Return the fence of code that is open after a mark of one, or None."""
    if fence is None:
        return mark
    return None if mark[0] == fence[0] and len(mark) >= len(fence) else fence
