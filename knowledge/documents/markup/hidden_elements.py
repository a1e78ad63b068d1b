"""Removes elements that a reader of the page does not see."""

from dataclasses import replace

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from knowledge.documents.markup.appearance import (
    STRUCK,
    Appearance,
    Declarations,
    appearance_inside,
    is_struck,
    parse_declarations,
    parse_rules,
)
from knowledge.documents.markup.controls import find_controlled
from knowledge.documents.notation import NUMBERINGS
from knowledge.documents.page import LeftOut, LeftOutCounts

_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_SCRIPTS = ("super", "sub")
_WHOLE = frozenset({"html", "body"})
_DISPLAYS = {"table": "table", "table-row": "row", "table-cell": "cell"}
_NUMBERED = frozenset({"ol", "li"})
_TABS_AROUND = 3
_MOST_PANELS = 200
_UNREAD = frozenset({"script", "style", "svg", "canvas"})
_EMBEDDED = frozenset({"iframe", "object", "embed", "video", "audio"})
_NOT_READ = "pages, recordings and programs inside a page are not read"
_NO_SIZE = ("0", "1")
_LEAST_WORDS = 5
_LONGEST_NAME = 100


class _Removal:
    """Walks a tree with an explicit stack, which allows nesting of any depth."""

    def __init__(self, tree: LexborHTMLParser, *, is_book: bool) -> None:
        self.left_out = LeftOutCounts()
        self.words = 0
        self._tree = tree
        self._is_book = is_book
        self._ruled = _apply_stylesheets(tree)
        self._has_stylesheets = tree.css_first("link[rel~=stylesheet]") is not None
        self._controlled = find_controlled(tree)
        self._panels: list[tuple[LexborNode, Appearance]] = []

    def walk(self, top: LexborNode, appearance: Appearance) -> None:
        hidden: list[LexborNode] = []
        stack = [(top, appearance)]
        while stack:
            node, outer = stack.pop()
            if node.tag == "-text":
                if not outer.shows_text:
                    hidden.append(node)
            elif (inner := self._inside(node, outer)) is not None:
                stack.extend((child, inner) for child in node.iter(include_text=True))
            elif node.tag != "head":
                self._keep_or_hide(node, outer, hidden)
        for node in hidden:
            self._remove(node)

    def open_panels(self) -> None:
        """Process the panels whose tabs still exist after hidden tabs have been removed."""
        panels, self._panels = self._panels, []
        controlled = find_controlled(self._tree) if panels else frozenset()
        for panel, outer in panels:
            if _has_tab(panel) or panel.attributes.get("id") in controlled:
                for child in panel.iter(include_text=True):
                    self.walk(child, outer)
            else:
                self._remove(panel)
        for panel, _ in self._panels:
            self._remove(panel)

    def _inside(self, node: LexborNode, outer: Appearance) -> Appearance | None:
        ruled = self._ruled.get(node.mem_id, {})
        stated = f"text-decoration:{STRUCK};" if is_struck(ruled) else ""
        if ruled.get("vertical-align") in _SCRIPTS:
            stated += f"vertical-align:{ruled['vertical-align']};"
        if stated:
            node.attrs["style"] = f"{stated}{node.attributes.get('style') or ''}"
        if node.tag in _NUMBERED:
            _state_numbering(node, ruled)
        if (role := _DISPLAYS.get(ruled.get("display", ""))) and "role" not in node.attributes:
            node.attrs["role"] = role
        is_heading = node.tag in _HEADINGS or (node.parent and node.parent.tag in _HEADINGS)
        inner = appearance_inside(
            outer,
            node.tag or "",
            node.attributes,
            ruled,
            has_stylesheets=self._has_stylesheets,
            may_be_moved=self._is_book and bool(is_heading),
        )
        if node.tag in _WHOLE:
            # A script shows a page that is hidden as a whole.
            return outer if inner is None else replace(inner, is_invisible=False)
        return outer if inner is None and _stands_for_formula(node) else inner

    def _keep_or_hide(self, node: LexborNode, outer: Appearance, hidden: list[LexborNode]) -> None:
        stated = node.attributes
        self._count_embedded(node)
        is_panel = stated.get("role") == "tabpanel" or stated.get("id") in self._controlled
        if is_panel and len(self._panels) < _MOST_PANELS:
            self._panels.append((node, outer))
        else:
            hidden.append(node)

    def _count_embedded(self, node: LexborNode) -> None:
        stated = node.attributes
        address = stated.get("src") or stated.get("data") or ""
        is_shown = "none" not in (stated.get("style") or "") and stated.get("width") not in _NO_SIZE
        if node.tag in _EMBEDDED and is_shown and (address or "srcdoc" in stated):
            self.left_out.add("embedded element", _NOT_READ, name=address[:_LONGEST_NAME])
        elif node.tag == "svg" and any(text.text(strip=True) for text in node.css("text")):
            self.left_out.add("drawing", "text in drawings (SVG) is not read")

    def _remove(self, node: LexborNode) -> None:
        if node.tag not in _UNREAD:
            is_text = node.tag == "-text"
            text = node.text_content if is_text else node.text(separator=" ")
            self.words += len((text or "").split())
        node.decompose()


def remove_hidden(tree: LexborHTMLParser, *, is_book: bool = False) -> tuple[LeftOut, ...]:
    """Remove hidden elements and text, and elements with content of another kind; return what was
    left out.

    Hidden tab panels are kept if the page shows a tab for each of them, and so is content that a
    labelled control expands. The headings of a book are kept if its style sheet moves them off
    screen, because they are the titles of its sections.
    """
    removal = _Removal(tree, is_book=is_book)
    root = tree.root
    if root is not None:
        removal.walk(root, Appearance())
    removal.open_panels()
    if removal.words >= _LEAST_WORDS:
        removal.left_out.add("word", "hidden from readers of the page", removal.words)
    return removal.left_out.list()


def _state_numbering(node: LexborNode, ruled: Declarations) -> None:
    """State the numbering that styles give to a list as its `type`."""
    styles = {**ruled, **parse_declarations(node.attributes.get("style") or "")}
    words = f"{styles.get('list-style', '')} {styles.get('list-style-type', '')}".split()
    for name in words:
        if name in NUMBERINGS or name in ("none", "decimal"):
            node.attrs["type"] = name


def _stands_for_formula(node: LexborNode) -> bool:
    """Return whether a hidden element is the formula that an element beside it draws."""
    formula = next(iter(node.iter()), None)
    if formula is None or formula.tag != "math" or node.parent is None:
        return False
    return any(
        part.tag == "img" or part.attributes.get("aria-hidden") for part in node.parent.iter()
    )


def _apply_stylesheets(tree: LexborHTMLParser) -> dict[int, dict[str, str]]:
    """Return the styles that the page's embedded style sheets assign to its elements."""
    css = "\n".join(node.text() for node in tree.css("style"))
    stylesheets: dict[int, dict[str, str]] = {}
    for rule in sorted(parse_rules(css), key=lambda rule: rule.rank) if css else ():
        try:
            nodes = tree.css(rule.selector)
        except SelectolaxError:
            continue
        for node in nodes:
            stylesheets.setdefault(node.mem_id, {}).update(rule.declarations)
    return stylesheets


def _has_tab(panel: LexborNode) -> bool:
    """Return whether the page shows a tab for each panel near this one."""
    around = panel.parent
    for _ in range(_TABS_AROUND):
        if around is None:
            return False
        tabs = sum(1 for tab in around.css("[role=tab]") if tab.text(strip=True))
        if tabs:
            return tabs >= len(around.css("[role=tabpanel]"))
        around = around.parent
    return False
