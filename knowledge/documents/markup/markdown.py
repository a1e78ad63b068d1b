"""Reads Markdown: blocks with their headings and anchors.

Only the block structure is parsed; inline markup is taken out by bounded patterns, because a
full inline parse of one very long line takes more than linear time.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.token import Token

from knowledge.documents.anchors import Anchors
from knowledge.documents.decoding import decode
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.markup import inline
from knowledge.documents.markup.html import note_on_hidden, text_of
from knowledge.documents.markup.site_marks import remove_site_marks
from knowledge.documents.metadata import front_matter
from knowledge.documents.page import DEEPEST_INDENT, Block, BlockKind, Page, first_heading
from knowledge.documents.visibility.raw_markup import RawMarkup

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
_LEFT_OUT = frozenset(
    {"toctree", "eval-rst", "image", "figure", "raw", "include", "literalinclude"}
)


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
            if text := text_of(self._markup.visible_block(token.content)):
                yield Block(BlockKind.TEXT, text)
        elif token.type == "inline" and before is not None:
            yield from self._text(token, before)
        else:
            self._container(token)

    def _text(self, token: Token, before: Token) -> Iterator[Block]:
        self._markup.begin_block()
        content = self._markup.visible_inline(token.content)
        self._markup.end_line()
        self.links += inline.find_web_links(content)
        if before.type == "heading_open":
            if content.strip() or not token.content:
                yield self._heading(content, int(before.tag[1:]))
            return
        self._opened_note = _ADMONITION.match(token.content) is not None
        text = inline.one_line(_NOTE.sub(_title_note, content, count=1))
        if not text:
            return
        if not self._markers and self._opened_note and text == _title_of(token.content):
            self._note_title = text
            return
        if not self._markers:
            yield Block(BlockKind.TEXT, text)
            return
        indent = "  " * min(len(self._markers) - 1, DEEPEST_INDENT)
        yield Block(BlockKind.ITEM, f"{indent}{self._markers[-1]} {text}")
        self._markers[-1] = " " * len(self._markers[-1])

    def _heading(self, content: str, level: int) -> Block:
        content = content.rstrip(" \t")
        stated = _STATED_ANCHOR.match(content, max(0, content.rfind("{")))
        text = inline.one_line(content if stated is None else content[: stated.start()])
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
            yield _code(_name_language(token.info), token.content)

    def _directive(self, name: str, argument: str, content: str) -> Iterator[Block]:
        """Read a fence that is a box, a tab or the like, as documentation generators write them."""
        body = _OPTION_LINES.sub("", content)
        if name in _LISTINGS:
            if body.strip():
                yield _code(argument, body)
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
            yield Block(BlockKind.TABLE, "\n".join(row for row in rows if row))

    def _plain_row(self, line: str) -> str:
        """Return a row without markup, in which an escaped bar is no border of a cell."""
        held = self._row(line).replace(_BAR, "").replace("\\|", _BAR)
        return inline.plain(held).replace(_BAR, "\\|")

    def _row(self, line: str) -> str:
        self._markup.enter()
        row = self._markup.visible_inline(line.strip().lstrip(">").strip())
        self.links += inline.find_web_links(row)
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


def _name_language(info: str) -> str:
    """Return the language of a fence without the options of a site generator."""
    return next((word.strip("{}.,") for word in info.split() if word.strip("{}.,")), "")


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


def _code(info: str, content: str) -> Block:
    fence = "````" if "```" in content else "```"
    body = content.rstrip("\n")
    return Block(BlockKind.CODE, f"{fence}{info}\n{body}\n{fence}")
