"""Finds title and content in a page of a Confluence export (HTML)."""

from selectolax.lexbor import LexborHTMLParser, LexborNode

from knowledge.documents.decoding import clean_text

_CONTENT = "#main-content"
_TITLE = "#title-text"
_BREADCRUMBS = "#breadcrumbs li a"
_FURNITURE = (".toc-macro", ".hidden", ".expand-control-icon")


def find_exported_page(tree: LexborHTMLParser) -> tuple[str, LexborNode] | None:
    """Return title and content of an exported page; None where the page is none.

    The export puts the name of the space before the title ("Operations : Backups"), and the path of
    the page, its author, its attachments and its date around the content: they are left out, as is
    the generated list of the page's headings.
    """
    content, title = tree.css_first(_CONTENT), tree.css_first(_TITLE)
    if content is None or title is None:
        return None
    for selector in _FURNITURE:
        for node in content.css(selector):
            node.decompose()
    stated = " ".join(clean_text(title.text()).split())
    _, separator, name = stated.partition(" : ")
    return (name if separator and name else stated), content


def find_ancestors(tree: LexborHTMLParser) -> tuple[str, ...]:
    """Return the titles of the space and of the pages above an exported page."""
    if tree.css_first(_CONTENT) is None:
        return ()
    texts = (" ".join(clean_text(node.text()).split()) for node in tree.css(_BREADCRUMBS))
    return tuple(text for text in texts if text)
