"""Extracts from an HTML page its links, its canonical URL and its robots directives."""

from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser

from knowledge.documents.decoding import decode
from knowledge.documents.markup.html import find_charset, read_attribute, refuse_depth

MOST_LINKS = 5000
"""Maximum number of links of one page that are followed."""
MOST_PICTURES = 10
"""Maximum number of pictures of one page that are fetched."""
_LONGEST_LINK = 4000


@dataclass(frozen=True, slots=True)
class PageLinks:
    """The links and pictures of a page as written, relative to `base` or to the URL of the page.

    `robots` are the directives in its `robots` elements in lower case, such as `noindex`.
    """

    links: tuple[str, ...] = ()
    base: str = ""
    canonical: str = ""
    robots: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()


def read_links(data: bytes) -> PageLinks:
    """Return the links of a page; raises a `ReadingError` if the data are not text."""
    text, _ = decode(data, find_charset(data))
    refuse_depth(text)
    tree = LexborHTMLParser(text)
    links = (node.attributes for node in tree.css("a[href], area[href]")[:MOST_LINKS])
    followed = dict.fromkeys(
        href
        for attributes in links
        if (href := (attributes.get("href") or "").strip())
        and len(href) <= _LONGEST_LINK
        and "nofollow" not in (attributes.get("rel") or "").lower().split()
    )
    shown = ((node.attributes.get("src") or "").strip() for node in tree.css("img[src]"))
    pictures = dict.fromkeys(src for src in shown if 0 < len(src) <= _LONGEST_LINK)
    return PageLinks(
        links=tuple(followed),
        pictures=tuple(src for src in pictures if not src.startswith("data:"))[:MOST_PICTURES],
        base=read_attribute(tree, "base[href]", "href", _LONGEST_LINK),
        canonical=read_attribute(tree, "link[rel=canonical]", "href", _LONGEST_LINK),
        robots=tuple(
            word.strip()
            for node in tree.css("meta[name=robots i], meta[name=refdesk i]")
            for word in (node.attributes.get("content") or "").lower()[:500].split(",")
        ),
    )
