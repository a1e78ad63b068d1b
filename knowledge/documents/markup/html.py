"""Reads HTML: the main part of the page, without scripts, styles, navigation and hidden text.

The tree is walked with an explicit stack, so that nesting of any depth is read.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from selectolax.lexbor import LexborHTMLParser, LexborNode

from knowledge.documents.decoding import clean_text, decode
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.front_matter import list_keywords
from knowledge.documents.markup.controls import (
    list_ancestors,
    place_tabs,
    write_form_values,
    write_note_marks,
    write_signs,
)
from knowledge.documents.markup.hidden_elements import remove_hidden
from knowledge.documents.markup.html_tables import (
    is_table,
    list_plain_rows,
    list_rows,
    read_rows,
    take_mark,
)
from knowledge.documents.markup.main_part import find_main_part, remove_elements
from knowledge.documents.markup.style_sheets import STRUCK, FindFile, parse_declarations
from knowledge.documents.notation import (
    NUMBERINGS,
    Formula,
    Script,
    Span,
    join_spans,
    read_number,
    write_formula,
    write_number,
)
from knowledge.documents.page import (
    Anchors,
    Block,
    BlockKind,
    LeftOut,
    Page,
    Picture,
    make_code,
    make_item,
)
from knowledge.documents.tables import write_inner_rows, write_table

_UNREAD = (
    "script, style, noscript, template, iframe, object, embed, canvas, rt, .katex-html, .linenos, "
    ".linenodiv, .lineno, .lntd:first-child, .line > .ln, .hljs-ln-numbers"
)
_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]{0,40})", re.IGNORECASE)
_DEEPEST = 2000
_LONGEST_ATTRIBUTE = 100_000
_LONGEST_OUTER_TERM = 40
_DEEPEST_IN_FORMULA = 60
_INLINE_PICTURE = re.compile(r"data:image/[a-z]{1,8};base64,")
_SERVER_CODE = re.compile(r"<%[^%]{0,2000}(?:%(?!>)[^%]{0,2000}){0,20}%>")
_MOST_LINKS = 5000
_WEB_ADDRESS = re.compile(r"https?://[^\s<>\"']{1,800}")
# These end by themselves, or not at all, or are closed in any order.
_LOOSE = (
    "area base br col embed hr img input link meta param source track wbr p li dt dd td th tr "
    "tbody thead tfoot html head body a b i u s em strong font small big tt code nobr"
)
_UNCOUNTED = frozenset(_LOOSE.split())
_CHARSET = re.compile(
    rb"<(?:meta[^<>]{0,200}charset|\?xml[^<>]{0,200}encoding)=[\"']?([\w:.-]{1,40})", re.IGNORECASE
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CONTAINERS = "div section article main body ul ol dl dt dd blockquote figure details header aside"
_OTHERS = "nav footer hgroup menu form fieldset option optgroup dialog svg text"
_BLOCKS = "p caption figcaption summary legend address hr center tr td th"
_BREAKS = frozenset(f"{_CONTAINERS} {_OTHERS} {_BLOCKS}".split())
_LISTS = frozenset({"ul", "ol"})
_ENDS_OF_MARK = frozenset(".)]")
_MOST_OUTER_TABLES = 2
_ENDS_OF_TERM = frozenset(".,:;!?")
_DEFINITIONS = frozenset({"dl", "dt", "dd"})
_TICKS = re.compile("`+")
_HELD_SPACE = "\x1a"
_HELD_BREAK = "\x1b"
_BREAKS_HELD = re.compile(f"(?<![ {_HELD_BREAK}])[ {_HELD_BREAK}]*{_HELD_BREAK}[ {_HELD_BREAK}]*")
_SOFT_HYPHEN = "\xad"
_SCRIPTS = {"sup": Script.RAISED, "super": Script.RAISED, "sub": Script.LOWERED}
_ROLES = ("epub:type", "role")
_STRUCK = frozenset({"s", "strike", "del"})
# What code has besides its letters.
_MARKED = "br, sub, sup, s, strike, del"
_STRIKING_CLASSES = frozenset({STRUCK, f"text-decoration-{STRUCK}", "strike", "strikethrough"})


class BlockWriter:
    """Collects text until a block ends; `enter` returns whether to visit the children of an
    element.
    """

    def __init__(self, *, outer_tables: int = 0, is_struck: bool = False) -> None:
        self._anchors = Anchors()
        self._outer_tables = outer_tables
        self._written: list[Block] = []
        self._text: list[Span] = []
        self._scripts: list[Script] = []
        self._struck = int(is_struck)
        self._pictures: list[Picture] = []
        self._is_link = True
        self._links = 0
        self._lists: list[tuple[int, int]] = []
        self._markers: list[str] = []
        self._items: set[int] = set()
        self._rows: set[int] = set()
        self._place: str | None = None
        self._term = ""
        self._repeated = ""
        # The terms of the definition that is open in each list.
        self._terms: list[str] = []

    def enter(self, node: LexborNode) -> bool:
        """Handle the start of an element; return whether to visit its children."""
        tag = node.tag
        if tag == "-text":
            # A line break of the file itself is a space.
            text = (node.text_content or "").replace("\n", " ")
            script = self._scripts[-1] if self._scripts else Script.LINE
            self._text.append(Span(text, script, self._struck > 0))
            self._is_link = self._is_link and (not text.strip() or self._links > 0)
        elif tag == "pre":
            self.flush()
            self._write(_code(node))
        elif self._outer_tables < _MOST_OUTER_TABLES and is_table(node):
            self.flush()
            self._table(node, list_rows(node))
        elif tag == "tr" and self._is_read(node):
            pass
        elif tag == "img":
            self._pictures += find_pictures(node)
        elif tag == "math":
            space = " " if node.attributes.get("display") == "block" else ""
            self._text.append(Span(f"{space}{write_formula(_read_formula(node))}{space}"))
        elif tag == "code" and node.css_first(f"a, {_MARKED}") is None:
            code = Span(_write_span(node.text()), is_struck=self._struck > 0, is_code=True)
            self._text.append(code)
            self._is_link = self._is_link and self._links > 0
        else:
            self._begin(node)
            return True
        return False

    def leave(self, node: LexborNode) -> None:
        """Handle the end of an element."""
        tag = node.tag or ""
        if _find_script(node) is not None:
            self._scripts.pop()
        self._struck -= _is_struck(node)
        self._links -= tag == "a"
        if tag in _HEADINGS:
            self._heading(node, _HEADINGS[tag])
        elif tag in _DEFINITIONS:
            self._end_definition(tag)
        elif tag in _BREAKS or tag == "li":
            self.flush()
        if tag in _LISTS and self._lists:
            self._lists.pop()
        if self._markers and (tag == "li" or node.mem_id in self._items):
            self._markers.pop()

    def flush(self) -> None:
        """End the current block."""
        is_link = self._is_link
        text = self._line()
        if not text:
            self._write(Block(BlockKind.TEXT, "") if self._pictures else None)
        elif not self._markers:
            term, self._term, self._repeated = self._term or self._repeated, "", ""
            mark = "" if term[-1:] in _ENDS_OF_TERM else ":"
            text = f"{term}{mark} {text}" if term else text
            is_link = is_link and not term
            self._write(Block(BlockKind.TEXT, text, is_link=is_link, is_paragraph=True))
        else:
            depth = len(self._markers) - 1
            text = text.replace("\n", f"\n{' ' * (2 * depth + len(self._markers[-1]) + 1)}")
            self._write(make_item(self._markers[-1], text, depth, is_link=is_link))
            self._markers[-1] = " " * len(self._markers[-1])

    def take_blocks(self) -> Sequence[Block]:
        """Return the blocks written since the last call."""
        taken, self._written = self._written, []
        return taken

    def _begin(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag in _BREAKS or tag in _HEADINGS or tag == "li":
            self.flush()
        if place := _identifier(node):
            self._place = place
        if (script := _find_script(node)) is not None:
            self._scripts.append(script)
        self._struck += _is_struck(node)
        self._links += tag == "a"
        self._begin_part(node, tag)

    def _begin_part(self, node: LexborNode, tag: str) -> None:
        if tag in _LISTS:
            step = -1 if tag == "ol" and "reversed" in node.attributes else 1
            first = 1 if step > 0 else sum(child.tag == "li" for child in node.iter())
            self._lists.append((read_number(node.attributes.get("start"), first) - step, step))
        elif tag == "li":
            self._markers.append(self._next_marker(node))
        elif tag == "tr" and (mark := take_mark(node)):
            self._items.add(node.mem_id)
            self._markers.append(mark if mark[-1] in _ENDS_OF_MARK else "-")
        elif tag == "br":
            self._text.append(Span(_HELD_BREAK))
        elif tag == "dl":
            self._terms.append("")
        elif tag == "dd":
            # Each definition has its term, also the second one.
            self._term = self._term or "".join(self._terms[-1:])
            self._terms[-1:] = [self._term]

    def _next_marker(self, node: LexborNode) -> str:
        before, step = self._lists[-1] if self._lists else (0, 1)
        number = read_number(node.attributes.get("value"), before + step)
        self._lists[-1:] = [(number, step)]
        if node.parent is None or node.parent.tag != "ol":
            return "-"
        # docutils states the numbering as a class.
        stated = node.parent.attributes
        names = [part.attributes.get("type") or "" for part in (node, node.parent)]
        names += (name for name in (stated.get("class") or "").split() if name in NUMBERINGS)
        label = write_number(number, next(filter(None, names), ""))
        return f"{label}." if label else "-"

    def _end_definition(self, tag: str) -> None:
        if tag == "dt" and not self._markers:
            if term := self._line():
                outer = self._terms[-2] if len(self._terms) > 1 else ""
                before = self._term or (outer if len(outer) <= _LONGEST_OUTER_TERM else "")
                self._term = f"{before}, {term}" if before else term
            return
        self.flush()
        if tag == "dl":
            self._end_term()
            self._terms[-1:] = []
        self._repeat_term(is_open=tag == "dl")

    def _is_read(self, row: LexborNode) -> bool:
        """Write a row of a layout table that has only text, with those below it, once."""
        if row.mem_id not in self._rows and (rows := list_plain_rows(row)):
            self._rows.update(node.mem_id for node in rows)
            self.flush()
            self._table(row, rows)
        return row.mem_id in self._rows

    def _table(self, node: LexborNode, rows: Sequence[LexborNode]) -> None:
        caption = node.css_first("caption")
        if caption is not None and (text := _read_lines(caption)):
            self._write(Block(BlockKind.TEXT, text))
        inner = self._outer_tables + 1
        read = list(read_rows(rows, lambda cell: _read_lines(cell, inner)))
        line = Block(BlockKind.TEXT, "; ".join(write_inner_rows(read)))
        for block in (line,) if self._outer_tables else write_table(read):
            self._write(block)
        for image in (image for row in rows for image in row.css("img")):
            self._pictures += find_pictures(image)
        self.flush()

    def _heading(self, node: LexborNode, level: int) -> None:
        text = self._line().replace("\n", " ")
        stated = _identifier(node) or self._place
        if text:
            anchor = self._anchors.take(text.replace("`", ""), stated)
            self._write(Block(BlockKind.HEADING, text, level, anchor))

    def _line(self) -> str:
        text = _join_line(self._text)
        self._text = []
        self._is_link = True
        return text

    def _end_term(self) -> None:
        """Write a term that has no definition."""
        term, self._term = self._term, ""
        if term:
            self._written.append(Block(BlockKind.TEXT, term))

    def _repeat_term(self, *, is_open: bool = True) -> None:
        """Repeat the label of a box or tab, if it is open, with its text after other content."""
        term = "".join(self._terms[-1:]) if is_open else ""
        self._repeated = term if len(term) <= _LONGEST_OUTER_TERM else ""

    def _write(self, block: Block | None) -> None:
        if block is not None:
            self._end_term()
            if block.kind in (BlockKind.CODE, BlockKind.TABLE):
                self._repeat_term()
            pictures, self._pictures = tuple(self._pictures), []
            self._written.append(replace(block, pictures=pictures) if pictures else block)
            self._place = None


def read(
    data: bytes, source: str, find_file: FindFile = lambda _: None, *, is_book: bool = False
) -> Page:
    """Return the page; its title is its first heading or, if there is none, the title in its
    head.

    `find_file` returns its style sheets. A part of a book is read completely; other pages have the
    navigation of a website around their content.
    """
    text, warnings = decode(data, find_charset(data))
    tree, left_out = _parse(_SERVER_CODE.sub("", text), find_file, is_book=is_book)
    content, title, crumbs = find_main_part(tree, is_book=is_book)
    blocks = tuple(_walk(content)) if content is not None else ()
    named = " ".join(clean_text("".join(part.text() for part in tree.css("title")[:1])).split())
    headings = (block.text for block in blocks if block.level == 1)
    return Page(
        source=source,
        title=title or next(headings, named),
        blocks=blocks,
        crumbs=crumbs,
        description=read_attribute(tree, "meta[name=description]", "content"),
        keywords=list_keywords(read_attribute(tree, "meta[name=keywords]", "content")),
        language=read_attribute(tree, "html", "lang") or None,
        url=read_attribute(tree, "link[rel=canonical]", "href") or None,
        links=tuple(_list_web_links(content)) if content is not None else (),
        warnings=warnings,
        left_out=left_out,
    )


def read_fragment(markup: str) -> Page:
    """Return the page of an HTML fragment that is a document as a whole, without a surrounding
    website; only its blocks, links and left-out content are stated.
    """
    tree, left_out = _parse(markup)
    blocks = tuple(_walk(tree.body)) if tree.body is not None else ()
    return Page("", "", blocks, links=tuple(_list_web_links(tree)), left_out=left_out)


def find_charset(data: bytes) -> str | None:
    """Return the encoding declared in the head of a page, or None."""
    stated = _CHARSET.search(data[:2048])
    return stated[1].decode("ascii") if stated else None


def refuse_depth(text: str) -> None:
    """Raise `WrongFormatError` if parsing would take more than linear time."""
    depth = 0
    for tag in _TAG.finditer(text):
        if tag[2].lower() not in _UNCOUNTED:
            depth = max(0, depth + (-1 if tag[1] else 1))
            if depth > _DEEPEST:
                raise WrongFormatError(f"expected elements at most {_DEEPEST} deep, found more")


def read_attribute(
    tree: LexborHTMLParser, selector: str, name: str, longest: int = _LONGEST_ATTRIBUTE
) -> str:
    """Return an attribute of the first element that matches a selector, or an empty string if there
    is none, or if it has more than `longest` characters.
    """
    node = tree.css_first(selector)
    value = (node.attributes.get(name) or "" if node is not None else "").strip()
    return clean_text(value) if len(value) <= longest else ""


def find_pictures(node: LexborNode) -> Iterator[Picture]:
    """Yield the picture of an element; its caption is that of its figure or, if there is none, its
    alternative text.

    A picture embedded in its URL is decoded; pictures are never fetched.
    """
    address = (node.attributes.get("src") or "").strip()
    figure = next((part for part in list_ancestors(node) if part.tag == "figure"), None)
    caption = figure.css_first("figcaption") if figure is not None else None
    stated = caption.text() if caption is not None else node.attributes.get("alt")
    name = " ".join((stated or "").split())
    inline = _INLINE_PICTURE.match(address)
    if inline is not None:
        yield Picture(name, data=address[inline.end() :])
    elif address:
        yield Picture(name, address)


def _parse(
    markup: str, find_file: FindFile = lambda _: None, *, is_book: bool = False
) -> tuple[LexborHTMLParser, tuple[LeftOut, ...]]:
    """Return a page as people see it, with its values as text, and what was left out."""
    refuse_depth(markup)
    tree = LexborHTMLParser(markup)
    left_out = (*write_signs(tree), *remove_hidden(tree, find_file, is_book=is_book))
    place_tabs(tree)
    write_note_marks(tree)
    write_form_values(tree)
    remove_elements(tree, _UNREAD)
    return tree, left_out


def _list_web_links(tree: LexborHTMLParser | LexborNode) -> Iterator[tuple[str, str]]:
    for node in tree.css("a[href]")[:_MOST_LINKS]:
        label = " ".join(_read_lines(node).split())
        address = (node.attributes.get("href") or "").strip()
        if label and label != address and _WEB_ADDRESS.fullmatch(address):
            yield label, address


def _walk(root: LexborNode, outer_tables: int = 0) -> Iterator[Block]:
    # Such as the row of a cell.
    is_struck = any(map(_is_struck, list_ancestors(root)))
    writer = BlockWriter(outer_tables=outer_tables, is_struck=is_struck)
    stack: list[tuple[LexborNode, bool]] = [(root, False)]
    while stack:
        node, is_left = stack.pop()
        if is_left:
            writer.leave(node)
        elif writer.enter(node):
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(list(node.iter(include_text=True))))
        yield from writer.take_blocks()
    writer.flush()
    yield from writer.take_blocks()


def _write_span(code: str) -> str:
    """Return inline code with its spaces, delimited by more backticks than any run of backticks in
    it.
    """
    code = " ".join(line.strip() for line in code.strip("\n").split("\n"))
    ticks = "`" * (max(map(len, _TICKS.findall(code)), default=0) + 1)
    border = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{ticks}{border}{code}{border}{ticks}".replace(" ", _HELD_SPACE)


def _join_line(parts: Sequence[Span]) -> str:
    if not parts:
        return ""
    text = " ".join(join_spans(parts).replace(_SOFT_HYPHEN, "").split())
    return _BREAKS_HELD.sub("\n", text).strip().replace(_HELD_SPACE, " ")


def _find_script(node: LexborNode) -> Script | None:
    """Return the vertical position of the text in an element (raised or lowered), or None if it is
    unchanged.
    """
    if node.tag == "a" and any("noteref" in (node.attributes.get(name) or "") for name in _ROLES):
        return Script.NOTE
    stated = parse_declarations(node.attributes.get("style") or "").get("vertical-align", "")
    # In blocks and cells, such a style does not raise the text.
    is_block = node.tag in _BREAKS or node.tag in _HEADINGS or node.tag == "li"
    has_style = stated in _SCRIPTS and not is_block
    script = _SCRIPTS.get(stated if has_style else node.tag or "")
    if script is not Script.RAISED:
        return script
    parts = filter(None, (node.css_first("a[href]"), node, *list_ancestors(node)))
    link = next((part for part in parts if part.tag == "a"), None)
    # A link with more text than the mark is not that of a footnote.
    is_mark = link is not None and link.text(strip=True) in node.text(strip=True)
    address = (link.attributes.get("href") or "") if link is not None else ""
    return Script.NOTE if is_mark and "#" in address else script


def _is_struck(node: LexborNode) -> bool:
    stated = node.attributes
    style = (stated.get("style") or "").lower()
    if node.tag in _STRUCK or "text-decoration" in style:
        return node.tag in _STRUCK or STRUCK in style
    return not _STRIKING_CLASSES.isdisjoint((stated.get("class") or "").split())


def _read_formula(node: LexborNode, depth: int = 0) -> Formula:
    if depth > _DEEPEST_IN_FORMULA or (node.tag or "").startswith("annotation"):
        return Formula("mrow")
    parts = tuple(_read_formula(child, depth + 1) for child in node.iter() if child.is_element_node)
    if node.tag == "mmultiscripts":
        names = [part.name for part in parts]
        at = names.index("mprescripts") if "mprescripts" in names else len(parts)
        before = Formula("msubsup", parts=(Formula("mrow"), *parts[at + 1 :][:2]))
        return Formula("mrow", parts=(before, Formula("msubsup", parts=parts[:at][:3])))
    has_no_line = (node.attributes.get("linethickness") or "").startswith("0")
    name = "binomial" if node.tag == "mfrac" and has_no_line else node.tag or ""
    return Formula(name, "" if parts else node.text(), parts)


def _read_lines(top: LexborNode, outer_tables: int = 1) -> str:
    """Return the text in an element in its lines, without the fences of code."""
    written = _walk(top, outer_tables)
    blocks = ((block, block.text.split("\n")) for block in written if block.text)
    parts = (lines[1:-1] if block.kind is BlockKind.CODE else lines for block, lines in blocks)
    return "\n".join(line.strip() for lines in parts for line in lines)


def _identifier(node: LexborNode) -> str | None:
    attributes = node.attributes
    stated = attributes.get("id") or (attributes.get("name") if node.tag == "a" else None) or ""
    return stated if stated.split() == [stated] else None


def _code(node: LexborNode) -> Block | None:
    for part in reversed(node.css(_MARKED)):
        script, is_struck = _find_script(part) or Script.LINE, _is_struck(part)
        written = join_spans([Span(part.text(), script, is_struck)])
        part.replace_with("\n" if part.tag == "br" else written)
    text = node.text().strip("\n")
    if not text.strip():
        return None
    info = " ".join((node.attributes.get("data-info") or "").replace("`", "").split())[:300]
    inner = node.css_first("code")
    classes = f"{node.attributes.get('class')} {inner.attributes.get('class') if inner else ''}"
    stated = (name.partition("-")[2] for name in classes.split() if name.startswith("language-"))
    return make_code(text, info or next(stated, ""))
