"""Turns the tree of docutils into blocks."""

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile, takewhile

from docutils import nodes

from knowledge.documents.page import DEEPEST_INDENT, Anchors, Block, BlockKind

_IGNORED = (
    nodes.comment,
    nodes.substitution_definition,
    nodes.target,
    nodes.raw,
    nodes.image,
    nodes.pending,
    nodes.docinfo,
    nodes.meta,
    nodes.footnote_reference,
)
_OPTION = re.compile(r":[\w-]+:(?:\s|\Z)")
_CODE = (nodes.literal_block, nodes.doctest_block, nodes.math_block)


# What they hold is no text of the page, or must not pass.
_LEFT_OUT = frozenset({"toctree", "autosummary", "index", "image", "figure", "raw", "include"})
_LISTINGS = frozenset(
    {"code-block", "code-tab", "sourcecode", "prompt", "parsed-literal", "ipython", "doctest"}
)
VERSION_NOTES = frozenset({"versionadded", "versionchanged", "versionremoved", "deprecated"})
"""What they state of a version is known by their names alone."""
_DEEPEST_DIRECTIVE = 4

Parse = Callable[[str], nodes.document]


def blocks_of(tree: nodes.document, parse: Parse) -> Iterator[Block]:
    """Return the blocks of a page in order; `parse` turns markup into a tree."""
    yield from _DocutilsVisitor(parse, Anchors()).children(tree)


def find_web_links(tree: nodes.document) -> Iterator[tuple[str, str]]:
    """Return the label of each link to the web, and its address."""
    for node in tree.findall(nodes.reference):
        label, address = " ".join(node.astext().split()), node.get("refuri", "")
        if label and label != address and address.startswith(("http://", "https://")):
            yield label, address


class _DocutilsVisitor:
    """Knows how deep in sections and lists it is."""

    def __init__(self, parse: Parse, anchors: Anchors, depth: int = 0) -> None:
        self._parse = parse
        self._anchors = anchors
        self._depth = depth
        self._level = 1
        self._markers: list[str] = []

    def children(self, node: nodes.Node) -> Iterator[Block]:
        for child in node.children:
            yield from self._node(child)

    def _node(self, node: nodes.Node) -> Iterator[Block]:
        for kinds, write in self._writers():
            if isinstance(node, kinds):
                yield from write(node)
                return
        if isinstance(node, nodes.TextElement):
            yield from self._text(node)
        else:
            yield from self.children(node)

    def _writers(
        self,
    ) -> Sequence[tuple[tuple[type, ...], Callable[[nodes.Node], Iterator[Block]]]]:
        return (
            (_IGNORED, lambda _: iter(())),
            ((nodes.system_message,), self._unknown),
            (_CODE, _code),
            ((nodes.section,), self._section),
            ((nodes.title, nodes.subtitle), self._title),
            ((nodes.table,), _table),
            ((nodes.Admonition,), self._admonition),
            ((nodes.bullet_list, nodes.enumerated_list), self._list),
            ((nodes.definition_list_item,), self._definition),
        )

    def _section(self, node: nodes.Node) -> Iterator[Block]:
        self._level += 1
        yield from self.children(node)
        self._level -= 1

    def _title(self, node: nodes.Node) -> Iterator[Block]:
        text, parent = _line(node), node.parent
        if not isinstance(parent, nodes.section | nodes.document):
            yield Block(BlockKind.TEXT, text)
            return
        stated = parent["ids"][0] if parent["ids"] else None
        level = min(self._level, 6)
        yield Block(BlockKind.HEADING, text, level, self._anchors.take(text, stated))

    def _list(self, node: nodes.Node) -> Iterator[Block]:
        for number, item in enumerate(node.children, start=1):
            ordered = isinstance(node, nodes.enumerated_list)
            self._markers.append(f"{number}." if ordered else "-")
            yield from self.children(item)
            self._markers.pop()

    def _admonition(self, node: nodes.Node) -> Iterator[Block]:
        """Read a box; one without a title of its own is headed by its kind, as readers see it."""
        blocks = self.children(node)
        if not isinstance(node.children[0], nodes.title):
            title = f"{type(node).__name__.capitalize()}:"
            first = next(blocks, None)
            if first is not None and first.kind is BlockKind.TEXT:
                yield replace(first, text=f"{title} {first.text}")
            else:
                yield Block(BlockKind.TEXT, title)
                yield from (first,) if first is not None else ()
        yield from blocks

    def _definition(self, node: nodes.Node) -> Iterator[Block]:
        terms = [_line(child) for child in node.children if isinstance(child, nodes.term)]
        texts = [_line(child) for child in node.children if isinstance(child, nodes.definition)]
        plain = all(
            isinstance(part, nodes.paragraph)
            for child in node.children
            if isinstance(child, nodes.definition)
            for part in child.children
        )
        if plain:
            yield Block(BlockKind.TEXT, f"{', '.join(terms)}: {' '.join(texts)}")
        else:
            yield Block(BlockKind.TEXT, ", ".join(terms))
            for child in node.children:
                if isinstance(child, nodes.definition):
                    yield from self.children(child)

    def _unknown(self, node: nodes.Node) -> Iterator[Block]:
        """Return what an unknown directive holds: its argument and its body, read in its turn."""
        for block in node.findall(nodes.literal_block):
            first, _, rest = block.astext().partition("\n")
            if not first.startswith(".. "):
                continue
            name, _, argument = (part.strip() for part in first[3:].partition("::"))
            body = _without_options(rest)
            if name in _LISTINGS:
                yield Block(BlockKind.CODE, f"```{_add_caption(argument, rest)}\n{body}\n```")
            elif name in VERSION_NOTES:
                yield from self._inside(f"{name} {argument}\n\n{body}")
            elif name not in _LEFT_OUT:
                yield from self._inside(f"{argument}\n\n{body}")

    def _inside(self, markup: str) -> Iterator[Block]:
        if self._depth < _DEEPEST_DIRECTIVE:
            inner = _DocutilsVisitor(self._parse, self._anchors, self._depth + 1)
            yield from inner.children(self._parse(markup))

    def _text(self, node: nodes.Node) -> Iterator[Block]:
        text = _line(node)
        if text and self._markers:
            indent = "  " * min(len(self._markers) - 1, DEEPEST_INDENT)
            yield Block(BlockKind.ITEM, f"{indent}{self._markers[-1]} {text}")
            self._markers[-1] = " " * len(self._markers[-1])
        elif text:
            yield Block(BlockKind.TEXT, text)


def _line(node: nodes.Node) -> str:
    parts = (
        f"`{part.astext()}`" if isinstance(part.parent, nodes.literal) else part.astext()
        for part in node.findall(nodes.Text)
        if not isinstance(part.parent, nodes.system_message)
    )
    return " ".join("".join(parts).split())


def _code(node: nodes.Node) -> Iterator[Block]:
    text = node.astext().rstrip()
    classes = node["classes"] if isinstance(node, nodes.Element) else []
    language = next((name for name in classes if name not in ("code", "highlight")), "")
    fence = "````" if "```" in text else "```"
    if text:
        yield Block(BlockKind.CODE, f"{fence}{language}\n{text}\n{fence}")


def _add_caption(info: str, rest: str) -> str:
    """Return what stands behind a fence: its language, and the caption that its options state."""
    options = takewhile(_is_option, textwrap.dedent(rest).split("\n"))
    stated = (line.partition(":caption:")[2].strip() for line in options)
    caption = next(filter(None, stated), "").replace('"', "'")
    return f'{info} title="{caption}"' if caption else info


def _without_options(body: str) -> str:
    lines = textwrap.dedent(body).split("\n")
    return "\n".join(dropwhile(_is_option, lines)).strip()


def _is_option(line: str) -> bool:
    return not line.strip() or _OPTION.match(line) is not None


def _table(node: nodes.Node) -> Iterator[Block]:
    rows = [
        f"| {' | '.join(_line(entry) for entry in row.findall(nodes.entry))} |"
        for row in node.findall(nodes.row)
    ]
    if rows:
        columns = rows[0].count(" | ") + 1
        yield Block(BlockKind.TABLE, "\n".join((rows[0], "|---" * columns + "|", *rows[1:])))
