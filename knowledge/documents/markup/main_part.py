"""Finds the main part of an HTML page, and removes what is around it."""

from selectolax.lexbor import LexborHTMLParser, LexborNode

from knowledge.documents.decoding import clean_text

_AROUND = (
    "nav, footer, [role=navigation], [role=search], [role=banner], .headerlink, .mw-editsection"
)
_CONTENTS = ("toc", "landmarks", "page-list")
_NAVIGATION = ", ".join(
    rf"nav:is([epub\:type~={name}], [role~=doc-{name}], .{name})" for name in _CONTENTS
)
_LABELS = "[aria-expanded], [aria-controls], h1 button, h2 button, h3 button, h4 button, dt button"
_MAIN = ("main", "[role=main]", "article")
_MainPart = tuple[LexborNode | None, str, tuple[str, ...]]
"""The element with the content of a page; the title that an export states, and those above it."""


def find_main_part(tree: LexborHTMLParser, *, is_book: bool) -> _MainPart:
    """Return the main part of a page, for a part of a book the whole of it without navigation."""
    exported = _find_export(tree)
    remove_elements(tree, _NAVIGATION if is_book else _AROUND)
    labels = {label.mem_id for label in tree.css(_LABELS)}
    for button in tree.css("button"):
        if button.mem_id not in labels:
            button.decompose()
    if exported is not None and not is_book:
        return exported
    return tree.body if is_book else _find_content(tree), "", ()


def remove_elements(top: LexborHTMLParser | LexborNode, selectors: str) -> None:
    """Remove the elements that match one of several selectors."""
    # Each only once, and those in others before them.
    for node in reversed({node.mem_id: node for node in top.css(selectors)}.values()):
        node.decompose()


def _find_export(tree: LexborHTMLParser) -> _MainPart | None:
    """Return the main part of a page that Confluence exported, or None for other pages.

    The export puts the name of the space before the title ("Operations : Backups"), and the path of
    the page, its author, its attachments and its date around the content. These are left out, as is
    the generated list of the page's headings.
    """
    content, title = tree.css_first("#main-content"), tree.css_first("#title-text")
    if content is None or title is None:
        return None
    remove_elements(content, ".toc-macro")
    stated = _read_line(title)
    crumbs = map(_read_line, tree.css("#breadcrumbs li a"))
    return content, stated.partition(" : ")[2] or stated, tuple(filter(None, crumbs))


def _read_line(node: LexborNode) -> str:
    return " ".join(clean_text(node.text()).split())


def _find_content(tree: LexborHTMLParser) -> LexborNode | None:
    for selector in _MAIN:
        nodes = tree.css(selector)
        if len(nodes) == 1 and _is_main(tree, nodes[0]):
            return nodes[0]
    return tree.body


def _is_main(tree: LexborHTMLParser, part: LexborNode) -> bool:
    """Return whether an element contains all of the content, or is an article with most of the
    text.
    """
    if part.tag != "article":
        return True
    headings = len(tree.css("h1")), len(part.css("h1"))
    if any(headings):
        return headings[1] > 0
    whole = tree.body.text() if tree.body is not None else ""
    return 2 * len(part.text().split()) >= len(whole.split())
