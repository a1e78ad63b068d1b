"""Finds title and content in a page of a Confluence export (HTML)."""

from selectolax.lexbor import LexborHTMLParser, LexborNode

from knowledge.documents.decoding import clean_text

_CONTENT = "#main-content"
_TITLE = "#title-text"
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
