"""Reads HTML: the main part of the page, without scripts, styles and navigation."""

from selectolax.lexbor import LexborHTMLParser

_DROPPED = ["script", "style", "noscript", "template", "svg", "iframe", "object", "head"]


def text_of(fragment: str) -> str:
    """Return what a reader sees of a piece of HTML, on one line."""
    tree = LexborHTMLParser(fragment)
    tree.strip_tags(_DROPPED)
    body = tree.body
    return "" if body is None else " ".join(body.text(separator=" ").split())
