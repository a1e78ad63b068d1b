"""Reads HTML: the main part of the page, without scripts, styles, navigation and hidden text.

The tree is walked with an explicit stack, so that nesting of any depth is read.
"""

import re
from collections.abc import Iterator, Sequence

from selectolax.lexbor import LexborHTMLParser, LexborNode

from knowledge.documents.anchors import Anchors
from knowledge.documents.decoding import clean_text, decode
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.markup.confluence import find_ancestors, find_exported_page
from knowledge.documents.markup.html_blocks import BlockWriter
from knowledge.documents.page import Block, Page
from knowledge.documents.visibility.hidden_elements import remove_hidden

_DROPPED = (
    "script style noscript template svg iframe object embed canvas nav footer button select input "
    "textarea [role=navigation] [role=search] [role=banner] .headerlink"
)
_MAIN = ("main", "[role=main]", "article")
_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]{0,40})", re.IGNORECASE)
_DEEPEST = 2000
_LEAST_WORDS = 5
_MOST_LINKS = 5000
_WEB_ADDRESS = re.compile(r"https?://[^\s<>\"']{1,800}")
# These end by themselves, or not at all, or are closed in any order.
_SELF_ENDING = (
    "area base br col embed hr img input link meta param source track wbr p li dt dd td th"
)
_LOOSE = "tr tbody thead tfoot html head body a b i u s em strong font small big tt code nobr"
_UNCOUNTED = frozenset(f"{_SELF_ENDING} {_LOOSE}".split())
_CHARSET = re.compile(rb"<meta[^<>]{0,200}charset=[\"']?([\w-]{1,40})", re.IGNORECASE)


def read(data: bytes, source: str) -> Page:
    """Return the page; its title is its first heading, else what its head states."""
    text, warnings = decode(data, find_charset(data))
    refuse_depth(text)
    tree = LexborHTMLParser(text)
    hidden_words = remove_hidden(tree)
    ancestors = find_ancestors(tree)
    exported = find_exported_page(tree)
    blocks = tuple(_blocks(tree, exported[1] if exported is not None else None))
    return Page(
        source=source,
        title=exported[0] if exported is not None else _find_title(tree, blocks),
        blocks=blocks,
        crumbs=ancestors,
        description=_attribute(tree, "meta[name=description]", "content"),
        keywords=_keywords(tree),
        language=_attribute(tree, "html", "lang") or None,
        url=_attribute(tree, "link[rel=canonical]", "href") or None,
        links=tuple(_list_web_links(tree)),
        warnings=(*warnings, *note_on_hidden(hidden_words)),
    )


def _list_web_links(tree: LexborHTMLParser) -> Iterator[tuple[str, str]]:
    for node in tree.css("a[href]")[:_MOST_LINKS]:
        label = " ".join(node.text().split())
        address = (node.attributes.get("href") or "").strip()
        if label and label != address and _WEB_ADDRESS.fullmatch(address):
            yield label, address


def _find_title(tree: LexborHTMLParser, blocks: Sequence[Block]) -> str:
    headings = [block for block in blocks if block.level == 1]
    return headings[0].text if headings else _line(tree, "title")


def note_on_hidden(words: int) -> tuple[str, ...]:
    """Return a note on words that were left out because no reader of the page sees them."""
    if words < _LEAST_WORDS:
        return ()
    return (f"{words} words that its readers cannot see were left out",)


def text_of(fragment: str) -> str:
    """Return what a reader sees of a piece of HTML, on one line."""
    refuse_depth(fragment)
    tree = LexborHTMLParser(fragment)
    remove_hidden(tree)
    return " ".join(block.text for block in _blocks(tree))


def find_charset(data: bytes) -> str | None:
    """Return the encoding that a page states in its head, or None."""
    stated = _CHARSET.search(data[:2048])
    return stated[1].decode("ascii") if stated else None


def refuse_depth(text: str) -> None:
    """Raise `WrongFormatError` where the parser would take more than linear time."""
    depth = 0
    for tag in _TAG.finditer(text):
        if tag[2].lower() not in _UNCOUNTED:
            depth = max(0, depth + (-1 if tag[1] else 1))
            if depth > _DEEPEST:
                raise WrongFormatError(f"expected elements at most {_DEEPEST} deep, found more")


def _blocks(tree: LexborHTMLParser, main: LexborNode | None = None) -> Iterator[Block]:
    for selector in _DROPPED.split():
        for node in tree.css(selector):
            node.decompose()
    root = _main(tree) if main is None else main
    if root is not None:
        yield from _walk(root)


def _main(tree: LexborHTMLParser) -> LexborNode | None:
    for selector in _MAIN:
        found = tree.css(selector)
        if len(found) == 1:
            return found[0]
    return tree.body


def _walk(root: LexborNode) -> Iterator[Block]:
    writer = BlockWriter(Anchors())
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


def _line(tree: LexborHTMLParser, selector: str) -> str:
    node = tree.css_first(selector)
    return " ".join(clean_text(node.text()).split()) if node is not None else ""


def _attribute(tree: LexborHTMLParser, selector: str, name: str) -> str:
    node = tree.css_first(selector)
    value = node.attributes.get(name) if node is not None else None
    return clean_text(value).strip() if value else ""


def _keywords(tree: LexborHTMLParser) -> tuple[str, ...]:
    stated = _attribute(tree, "meta[name=keywords]", "content")
    return tuple(word.strip() for word in stated.split(",")[:64] if word.strip())
