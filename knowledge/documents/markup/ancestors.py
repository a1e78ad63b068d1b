"""Lists the elements around an element of an HTML page."""

from collections.abc import Iterator

from selectolax.lexbor import LexborNode


def list_ancestors(node: LexborNode, most: int = 2000) -> Iterator[LexborNode]:
    """Yield the elements around an element, at most some of them, the nearest first."""
    around = node.parent
    while around is not None and most > 0:
        yield around
        around, most = around.parent, most - 1
