"""Removes elements that a reader of the page does not see."""

import re
from dataclasses import replace
from unicodedata import bidirectional

from selectolax.lexbor import LexborHTMLParser, LexborNode

from knowledge.documents.markup.appearance import (
    Appearance,
    appearance_inside,
    compute_styles,
)
from knowledge.documents.markup.controls import (
    PHRASES,
    find_button,
    find_controlled,
    pair_by_place,
)
from knowledge.documents.markup.generated_text import Counters
from knowledge.documents.markup.style_sheets import (
    AT_FIRST,
    SPACING,
    AppliedSheets,
    Declarations,
    FindFile,
)
from knowledge.documents.notation import NUMBERINGS
from knowledge.documents.page import LeftOut, LeftOutCounts

_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
# What is read of styles after this module.
_STATED = ("text-decoration", "vertical-align", "display")
_LINES = {"y", "dy"}
_WHOLE = frozenset({"html", "body"})
_DISPLAYS = {"table": "table", "table-row": "row", "table-cell": "cell"}
_NUMBERED = frozenset({"ol", "li"})
_MOST_PANELS = 200
_UNREAD = frozenset({"script", "style", "svg", "canvas"})
_DRAWN_TEXT = "text, foreignObject"
_FLEXIBLE = ("flex", "grid", "inline-flex", "inline-grid")
_BLOCKS = ("block", "flex", "grid", "list-item", "table")
_INLINE = PHRASES.union(("a", "label"))
_BEGINS = re.compile(r"[.,;:!?)\]}>\u201d]")
_ENDS = re.compile(r"[(\[{<\u201c]\Z")
_NOT_ZERO = re.compile(r"[1-9]")
_BULLETS = tuple("•◦▪‣·■●○–—-")
_EMPTY = frozenset({"area", "br", "col", "hr", "img", "input", "wbr"})
_EMBEDDED = frozenset({"iframe", "object", "embed", "video", "audio"})
_NOT_READ = "pages, recordings and programs inside a page are not read"
_NOT_APPLIED = "comparing it with all elements takes too long, so text that it hides is shown"
_NO_SIZE = ("0", "1")
_LEAST_WORDS = 5
_MIRRORED = str.maketrans("()[]{}<>", ")(][}{><")
_LONGEST_NAME = 100


class _Removal:
    """Walks a tree with an explicit stack, which allows nesting of any depth."""

    def __init__(self, tree: LexborHTMLParser, find_file: FindFile, *, is_book: bool) -> None:
        self.left_out = LeftOutCounts()
        self.words = 0
        self._tree = tree
        self._is_book = is_book
        self._sheets = AppliedSheets(tree, find_file, is_book=is_book)
        self.left_out.add("style rule", _NOT_APPLIED, self._sheets.unapplied)
        self._counters = Counters()
        self._controlled = find_controlled(tree)
        self._panels: list[tuple[LexborNode, Appearance]] = []

    def walk(self, top: LexborNode, appearance: Appearance) -> None:
        hidden: list[LexborNode] = []
        stack = [(top, appearance, 0, False)]
        while stack:
            node, outer, depth, is_left = stack.pop()
            if is_left:
                self._generate(node, "after", outer, depth)
            elif node.tag == "-text":
                self._keep_or_hide_text(node, outer, hidden)
            elif (inner := self._inside(node, outer, depth)) is not None:
                children = list(node.iter(include_text=True))
                if self._sheets.generates_text:
                    self._generate(node, "before", inner, depth)
                    stack.append((node, inner, depth, True))
                stack.extend((child, inner, depth + 1, False) for child in reversed(children))
            elif node.tag != "head":
                self._keep_or_hide(node, outer, hidden)
        for node in hidden:
            self._remove(node)

    def open_panels(self) -> None:
        """Process the panels whose tabs still exist after hidden tabs have been removed."""
        panels, self._panels = self._panels, []
        controlled = find_controlled(self._tree) if panels else set()
        paired = {panel.mem_id for panel in pair_by_place(self._tree).values()} if panels else ()
        for panel, outer in panels:
            button = find_button(panel)
            if button is not None:
                button.attrs["aria-expanded"] = "false"
            is_open = panel.mem_id in paired or panel.attributes.get("id") in controlled
            if button or is_open:
                for child in panel.iter(include_text=True):
                    self.walk(child, outer)
            else:
                self._remove(panel)
        for panel, _ in self._panels:
            self._remove(panel)

    def _inside(self, node: LexborNode, outer: Appearance, depth: int) -> Appearance | None:
        tag, attributes = node.tag or "", node.attributes
        styles = compute_styles(tag, attributes, self._sheets.find(node))
        is_heading = tag in _HEADINGS or (node.parent and node.parent.tag in _HEADINGS)
        inner = appearance_inside(
            outer,
            tag,
            attributes,
            styles,
            has_stylesheets=not self._sheets.is_complete,
            may_be_moved=self._is_book and bool(is_heading),
        )
        if tag in _WHOLE:
            # A script shows a page that is hidden as a whole.
            inner = outer if inner is None else replace(inner, is_invisible=False)
        elif inner is None and _stands_for_formula(node):
            inner = outer
        if inner is None or (tag == "svg" and node.css_first(_DRAWN_TEXT) is None):
            return None
        if styles:
            _state_styles(node, styles)
        if not outer.is_code:
            self._set_apart(node, styles)
        if self._sheets.generates_text:
            self._counters.enter(depth, tag, attributes, styles)
        return inner

    def _set_apart(self, node: LexborNode, styles: Declarations) -> None:
        """Separate the text of an element that is set apart from the text around it."""
        display = styles.get("display", "inline")
        if styles.get("unicode-bidi", "").endswith("override"):
            _put_in_order(node, styles.get("direction"))
        if node.tag == "svg":
            self.left_out.add("drawing", "only the text of drawings (SVG) is read")
        elif node.tag == "tspan" and "x" in node.attributes and _LINES & set(node.attributes):
            node.insert_before(" ")
        elif node.tag in _INLINE and display in _BLOCKS:
            node.insert_before(_make_break())
            node.insert_after(_make_break())
        elif display.startswith("inline-") and _has_space(styles):
            _separate(node)
        for child in node.iter() if display in _FLEXIBLE else ():
            _separate(child)

    def _generate(self, node: LexborNode, place: str, outer: Appearance, depth: int) -> None:
        """Insert the text that style sheets generate before or after the content of an element."""
        styles = compute_styles("", {}, self._sheets.find(node, place))
        if not styles or outer.is_code or node.tag in _EMPTY:
            return
        inner = appearance_inside(outer, "", {}, styles)
        around = compute_styles("", {}, self._sheets.find(node, AT_FIRST))
        element = appearance_inside(outer, "", {}, around)
        is_hidden = element is None or not element.shows_text
        if is_hidden or inner is None or styles.get("content", "none") in ("none", "normal"):
            return
        self._counters.enter(depth + 1, "", {}, styles)
        text = self._counters.write(styles["content"], node.attributes)
        is_bullet = node.tag == "li" and text.strip() in _BULLETS
        is_named = node.prev is not None and (node.prev.text_content or "").strip() == text.strip()
        if not text or not inner.shows_text or is_bullet or is_named:
            return
        is_apart = styles.get("display", "inline") in _BLOCKS or _has_space(styles)
        text = f" {text} " if is_apart else text
        first = next(node.iter(include_text=True), None) if place == "before" else None
        if first is not None:
            first.insert_before(text)
        else:
            node.insert_child(text)

    def _keep_or_hide_text(
        self, text: LexborNode, outer: Appearance, hidden: list[LexborNode]
    ) -> None:
        first, *others = (text.text_content or "").split("\n")
        if not outer.shows_text:
            hidden.append(text)
        elif others and outer.keeps_lines and not outer.is_code:
            text.insert_before(first)
            for line in others:
                text.insert_before(_make_break())
                text.insert_before(line)
            text.decompose()

    def _keep_or_hide(self, node: LexborNode, outer: Appearance, hidden: list[LexborNode]) -> None:
        stated = node.attributes
        address = stated.get("src") or stated.get("data") or ""
        is_shown = "none" not in (stated.get("style") or "") and stated.get("width") not in _NO_SIZE
        if node.tag in _EMBEDDED and is_shown and (address or "srcdoc" in stated):
            self.left_out.add("embedded element", _NOT_READ, name=address[:_LONGEST_NAME])
        is_panel = stated.get("role") == "tabpanel" or stated.get("id") in self._controlled
        if (is_panel or find_button(node) is not None) and len(self._panels) < _MOST_PANELS:
            self._panels.append((node, outer))
        else:
            hidden.append(node)

    def _remove(self, node: LexborNode) -> None:
        if node.tag not in _UNREAD:
            is_text = node.tag == "-text"
            text = node.text_content if is_text else node.text(separator=" ")
            self.words += len((text or "").split())
        node.decompose()


def remove_hidden(
    tree: LexborHTMLParser, find_file: FindFile = lambda _: None, *, is_book: bool = False
) -> tuple[LeftOut, ...]:
    """Remove hidden elements and text, and elements with content of another kind; return what was
    left out.

    Hidden tab panels are kept if the page shows a tab for each of them, and so is content that a
    labelled control expands. The headings of a book are kept if its style sheet moves them off
    screen, because they are the titles of its sections.
    """
    removal = _Removal(tree, find_file, is_book=is_book)
    root = tree.root
    if root is not None:
        removal.walk(root, Appearance())
    removal.open_panels()
    if removal.words >= _LEAST_WORDS:
        removal.left_out.add("word", "hidden from readers of the page", removal.words)
    return removal.left_out.list()


def _make_break() -> LexborNode:
    return LexborHTMLParser("<br>").css("br")[0]


def _put_in_order(node: LexborNode, direction: str | None) -> None:
    """Reverse letters that are shown against their direction, as people read them."""
    text = node.text()
    is_right_to_left = any(bidirectional(letter) in ("R", "AL") for letter in text)
    if is_right_to_left is not (direction == "rtl"):
        for part in list(node.iter(include_text=True)):
            part.decompose()
        node.insert_child(text[::-1].translate(_MIRRORED))


def _separate(node: LexborNode) -> None:
    """Separate the text of an element from the text around it, except from punctuation."""
    before, first, after = (
        (part.text_content or "") if part is not None and part.tag == "-text" else ""
        for part in (node.prev, node.first_child, node.next)
    )
    if _BEGINS.match(first) is None and _ENDS.search(before) is None:
        node.insert_before(" ")
    if _BEGINS.match(after) is None:
        node.insert_after(" ")


def _state_styles(node: LexborNode, styles: Declarations) -> None:
    """State in the attributes of an element what its styles say, and the numbering of a list as its
    `type`.
    """
    stated = ";".join(f"{name}:{styles[name]}" for name in _STATED if name in styles)
    if stated or "style" in node.attributes:
        node.attrs["style"] = stated
    display = styles.get("display", "")
    if (role := _DISPLAYS.get(display)) and "role" not in node.attributes:
        node.attrs["role"] = role
    if node.tag in _NUMBERED:
        words = f"{styles.get('list-style', '')} {styles.get('list-style-type', '')}".split()
        for name in words:
            if name in NUMBERINGS or name in ("none", "decimal"):
                node.attrs["type"] = name
    if node.tag == "li" and (display in _BLOCKS or display.startswith("inline")):
        # Only list items have a marker.
        node.attrs["type"] = "none"


def _has_space(styles: Declarations) -> bool:
    """Return whether an element has a margin, padding or border at its sides."""
    return any(SPACING.match(name) and _NOT_ZERO.search(value) for name, value in styles.items())


def _stands_for_formula(node: LexborNode) -> bool:
    """Return whether a hidden element is the formula that an element beside it draws."""
    formula = next(iter(node.iter()), None)
    if formula is None or formula.tag != "math" or node.parent is None:
        return False
    return any(
        part.tag == "img" or part.attributes.get("aria-hidden") for part in node.parent.iter()
    )
