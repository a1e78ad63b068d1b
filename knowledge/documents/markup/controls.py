"""Converts controls and symbols to text: labels of tabs, values of forms, names of icons."""

import re
from collections.abc import Iterator
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from knowledge.documents.page import LeftOut
from knowledge.documents.symbols import replace_symbols

_PHRASED = "abbr b bdi bdo cite del em font i ins mark q s samp small span strong sub sup time u"
PHRASES = frozenset(_PHRASED.split())
"""Elements of text in a line, except links and labels."""
_CONTROLS = "[aria-controls], [data-bs-target], [data-target], [data-bs-toggle], [data-toggle]"
_TABS = ":is([role=tab], [data-bs-toggle=tab], [data-toggle=tab], [data-bs-toggle=pill])"
_CHOICES = ":is(:not(form) > [type=radio] ~ label[for], [type=radio] ~ * > label[for])"
_LABELLED_FIELDS = "input:has(+ label[for]:not(:has(+ div, + section, + pre)))"
_EXPANDED = ".expand-container > .expand-content[id]"
"""What the control before it expands in exports of Confluence."""
_SYMBOLS = ":is([style*=ingdings], font[face])"
_WINGDINGS = re.compile(
    r"(?:\A|[;\s])(?:mso-symbol-)?font-family\s{0,9}:\s{0,9}[\"']?wingdings[\"']?\s{0,9}(?:[;,]|\Z)",
    re.IGNORECASE,
)
_ICONS = "td :is(svg, i, span, img, [role=img])"
_EDITS = ":is(del, ins, s)[aria-hidden=true]"
_SIGNS = PHRASES.union(("img", "svg"))
_PANELS = frozenset({"div", "section", "article", "p", "ul", "ol", "dl", "table"})
_SPOKEN_IN_CELLS = "td :is([class*=sr-only], [class*=visually], [class*=screen-reader])"
_READ_ALOUD = re.compile(r"sr-only|visually-?hidden|screen-reader|off-?screen")
_ICON_FONT = re.compile(r"icon|katex")
_FORMULAS = "mjx-container"
_DRAWN_FORMULA = "svg, mjx-script, mjx-frac, mjx-sqrt, mjx-over, mjx-under, mjx-row"
_UNNAMED = "\0"
_EMOJI = re.compile(r":[\w+-]{1,60}:|\([\w+-]{1,20}\)|[^\w\s\x00-\x7f]{1,20}")
_MOST = 2000
_MOST_NODES = 50
_MOST_AROUND = 20
_MOST_AROUND_NOTE = 3
_LONGEST_LABEL = 200
_NOTE_MARK = re.compile(r"[(\[]?(?:\w{1,4}|[*\u2020\u2021\u00a7]{1,3}|[^\w\s]{1,3})[)\]]?")
_ARROW = re.compile(r"[\^\u2190-\u21ff\u2b00-\u2bff\u2934\u2935]")
_FIELDS = " text search number email tel url date time month week datetime-local"
_TYPED = frozenset(_FIELDS.split(" "))
_LABELLED = frozenset({"li", "label", "p", "td", "dd"})
# In exports of Notion and Confluence.
_BOXES = ".checkbox-on, .checkbox-off"
_TASKS = ".inline-task-list > li"
_BOX, _EMPTY_BOX = "\u2612", "\u2610"
_CHECKED = frozenset({"checkbox", "radio"})


def write_signs(tree: LexborHTMLParser) -> tuple[LeftOut, ...]:
    """Replace what a page draws with its text: formulas, emojis, icons, symbols; return the number
    of those without a text.
    """
    unread = _write_formulas(tree)
    _show_spoken(tree)
    _show_alternatives(tree)
    unnamed = _name_icons(tree)
    _name_markers(tree)
    _write_symbols(tree)
    counted = (
        LeftOut("formula", unread, "its page draws it without stating it"),
        LeftOut("icon", unnamed, "its page states no name for it"),
    )
    return tuple(part for part in counted if part.count)


def list_ancestors(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the nearest elements around an element, the innermost first."""
    around = node.parent
    for _ in range(_MOST_AROUND):
        if around is not None:
            yield around
            around = around.parent


def find_controlled(tree: LexborHTMLParser) -> set[str]:
    """Return the ids of the elements that a labelled control expands."""
    labelled = filter(_read_start, tree.css(_CONTROLS)[:_MOST])
    expanded = {node.attributes.get("id") or "" for node in tree.css(_EXPANDED)[:_MOST]}
    return expanded.union(target for control in labelled for target in _list_targets(control))


def find_button(panel: LexborNode) -> LexborNode | None:
    """Return the labelled button directly above an element, which scripts expand."""
    button = _find_beside(panel, is_next=False)
    is_label = button is not None and button.tag == "button" and bool(_read_start(button))
    return button if is_label and panel.tag in _PANELS else None


def pair_by_place(tree: LexborHTMLParser) -> dict[int, LexborNode]:
    """Return the panel of each tab, by its id in memory, where lists of tabs, or of the labels of
    radio buttons outside of forms, are followed by as many panels.
    """
    pairs: dict[int, LexborNode] = {}
    choices: dict[int, list[LexborNode]] = {}
    for label in tree.css(_CHOICES)[:_MOST]:
        choices.setdefault(label.parent.mem_id if label.parent else 0, []).append(label)
    for labels in choices.values():
        below = _find_beside(labels[0].parent, is_next=True) if labels[0].parent else None
        shown = list(below.iter()) if below is not None else []
        if len(labels) == len(shown) > 1:
            pairs.update((label.mem_id, panel) for label, panel in zip(labels, shown, strict=True))
    tabs: list[LexborNode] = []
    panels: list[LexborNode] = []
    for node in (*tree.css("[role=tablist], [role=tab], [role=tabpanel]")[: 3 * _MOST], None):
        if node is None or node.attributes["role"] == "tablist":
            if len(tabs) == len(panels):
                pairs.update((tab.mem_id, panel) for tab, panel in zip(tabs, panels, strict=True))
            tabs, panels = [], []
        else:
            (tabs if node.attributes["role"] == "tab" else panels).append(node)
    return pairs


def place_tabs(tree: LexborHTMLParser) -> None:
    """Insert the label of each tab above its panel, and remove the tabs."""
    tabs = tree.css(f"{_TABS}, {_CHOICES}")[:_MOST]
    panels: dict[str, LexborNode] = {}
    for panel in tree.css("[id], [aria-labelledby]") if tabs else ():
        for name in ("id", "aria-labelledby"):
            if stated := panel.attributes.get(name):
                panels.setdefault(f"{name} {stated}", panel)
    placed: list[LexborNode] = []
    labelled: set[tuple[int, str]] = set()
    by_place = pair_by_place(tree)
    for tab in tabs:
        names = [f"id {name}" for name in _list_targets(tab)]
        names.append(f"aria-labelledby {tab.attributes.get('id')}")
        node = next((panels[name] for name in names if name in panels), by_place.get(tab.mem_id))
        label = _read_start(tab)
        if label and node is not None:
            # Some pages repeat the tabs for small screens.
            if (node.mem_id, label) not in labelled:
                node.insert_before(f" {label} ")
            labelled.add((node.mem_id, label))
            placed.append(tab)
    for tab in reversed(placed):
        tab.decompose()


def write_note_marks(tree: LexborHTMLParser) -> None:
    """State the role of the marks of notes, which are links between two places, and remove links
    back to them that have no text.
    """
    links = [
        (link, address[1:], _list_names(link))
        for link in tree.css("a[href^='#']")
        if (address := link.attributes["href"] or "")
        and _NOTE_MARK.fullmatch("".join(_read_start(link).split()))
    ]
    targets = {(name, address) for _, address, names in links for name in names}
    for link, address, names in links:
        if all((address, name) not in targets for name in names):
            continue
        mark = _read_start(link)
        if any(map(str.isalnum, mark)) or not _ARROW.search(mark):
            link.attrs["role"], link.inner_html = "doc-noteref", f"[{mark.strip('()[] ')}]"
            if link.prev is None and link.parent and link.parent.tag not in PHRASES:
                link.insert_after(" ")
        else:
            link.decompose()


def write_form_values(tree: LexborHTMLParser) -> None:
    """Replace form fields with the values that they show."""
    labelled = {field.mem_id for field in tree.css(_LABELLED_FIELDS)}
    for field in tree.css("input, select, textarea, meter, progress"):
        around = field.parent.tag if field.parent is not None else ""
        is_labelled = around in _LABELLED or field.mem_id in labelled
        value = _find_value(field, is_labelled=is_labelled)
        if value:
            field.replace_with(f" {value} ")
        else:
            field.decompose()
    for box in tree.css(_BOXES):
        box.replace_with(_BOX if "checkbox-on" in _read_class(box) else _EMPTY_BOX)
    for text in filter(None, (task.first_child for task in tree.css(_TASKS))):
        is_done = text.parent is not None and "checked" in _read_class(text.parent).split()
        text.insert_before(f"{_BOX if is_done else _EMPTY_BOX} ")


def _write_formulas(tree: LexborHTMLParser) -> int:
    """Replace the formulas that MathJax draws with MathML or TeX; return the number of those for
    which the page has neither.
    """
    unread = 0
    for drawn in tree.css(_FORMULAS)[:_MOST]:
        formula, stated = drawn.css_first("math"), drawn.css_first("[data-latex]")
        if formula is not None:
            drawn.replace_with(formula)
        elif stated is not None:
            drawn.replace_with(f"${stated.attributes['data-latex']}$")
        elif drawn.css_first(_DRAWN_FORMULA) is not None:
            drawn.decompose()
            unread += 1
    return unread


def _show_spoken(tree: LexborHTMLParser) -> None:
    """Show text that screen readers do not read, or the text beside it that only they read."""
    for node in tree.css(_EDITS)[:_MOST]:
        # Their look is their meaning: a price that is struck out, and the one instead of it.
        del node.attrs["aria-hidden"]
        spoken_text = _find_beside(node, is_next=True)
        if spoken_text is not None and _READ_ALOUD.search(_read_class(spoken_text)):
            spoken_text.attrs["hidden"] = ""
    for node in tree.css("[aria-hidden=true]")[:_MOST]:
        if node.tag not in _SIGNS or (node.parent and node.parent.tag in ("a", "button")):
            continue
        text = _read_start(node)
        found = (_find_beside(node, is_next=is_next) for is_next in (True, False))
        beside = [
            other for other in found if other is not None and "hidden" not in other.attributes
        ]
        spoken = [other for other in beside if _READ_ALOUD.search(_read_class(other))]
        is_icon = node.tag == "i" or _ICON_FONT.search(_read_class(node)) is not None
        is_text = bool(text) and not is_icon
        if spoken and not (is_text and next(node.iter(), None) is None):
            # What people see is drawn, or composed by a style sheet.
            node.insert_before(f" {spoken[0].text()} ")
        elif is_text and (spoken or all(_read_start(other) != text for other in beside)):
            del node.attrs["aria-hidden"]
        if spoken:
            spoken[0].attrs["hidden"] = ""


def _show_alternatives(tree: LexborHTMLParser) -> None:
    """Show the text for screen readers in a table cell without other text, and signs, such as
    emojis, for which pictures stand.
    """
    for spoken_text in tree.css(_SPOKEN_IN_CELLS)[:_MOST]:
        cell = _find_cell(spoken_text)
        if cell is not None and _read_start(cell) == _read_start(spoken_text):
            # What the cell shows has no text.
            del spoken_text.attrs["class"]
    for picture in tree.css("img[alt]")[:_MOST]:
        name = (picture.attributes.get("alt") or "").strip()
        if _EMOJI.fullmatch(name):
            picture.replace_with(name)


def _name_icons(tree: LexborHTMLParser) -> int:
    """Replace icons with their names in table cells that contain nothing else; return the number of
    those without a name.
    """
    cells: dict[int, str] = {}
    for icon in tree.css(_ICONS)[:_MOST]:
        cell = _find_cell(icon)
        if cell is None:
            continue
        text, name = cells.setdefault(cell.mem_id, _read_start(cell)), _find_name(icon)
        if text in ("", name):
            is_drawn = icon.tag in ("i", "svg")
            cells[cell.mem_id] = name or (_UNNAMED if is_drawn else "")
            if name:
                icon.insert_before(f" ![{name}] " if icon.tag == "img" else f" {name} ")
    return sum(text == _UNNAMED for text in cells.values())


def _name_markers(tree: LexborHTMLParser) -> None:
    """Name the icons of list items if they differ, such as a check mark and a cross."""
    for around in tree.css("ul:not(:has(ul))")[:_MOST]:
        markers = [item.css_first("i, svg") for item in around.iter() if item.tag == "li"]
        names = [_find_name(marker) if marker is not None else "" for marker in markers]
        if all(names) and len(set(names)) > 1:
            for marker, name in zip(filter(None, markers), names, strict=True):
                marker.insert_before(f" {name} ")


def _write_symbols(tree: LexborHTMLParser) -> None:
    """Replace the letters in Wingdings, as programs such as Word write them, by their symbols.

    The first typeface counts; Wingdings 2 and 3 have other symbols.
    """
    for node in tree.css(_SYMBOLS)[:_MOST]:
        face = (node.attributes.get("face") or "").partition(",")[0].strip("\"' ").lower()
        if face != "wingdings" and not _WINGDINGS.search(node.attributes.get("style") or ""):
            continue
        for text in [part for part in node.iter(include_text=True) if part.tag == "-text"]:
            text.replace_with(replace_symbols(text.text_content or "", "Wingdings"))


def _find_cell(node: LexborNode) -> LexborNode | None:
    """Return the table cell in which an element is, or None."""
    around = next((part for part in list_ancestors(node) if part.tag in ("td", "table")), None)
    return around if around is not None and around.tag == "td" else None


def _read_start(node: LexborNode) -> str:
    """Return the first text in an element on one line: enough for a label, in bounded time."""
    nodes = islice(node.traverse(include_text=True), _MOST_NODES)
    texts = (node.text_content or "" for node in nodes if node.tag == "-text")
    return " ".join("".join(texts).split())[:_LONGEST_LABEL]


def _find_name(icon: LexborNode) -> str:
    stated = [icon.attributes.get(name) for name in ("aria-label", "alt", "title")]
    stated += [*map(_read_start, icon.css("title")[:1]), _find_shape(icon)]
    return " ".join(next(filter(None, stated), "").split())[:_LONGEST_LABEL]


def _find_shape(icon: LexborNode) -> str:
    """Return the name of the letter in an icon font: the text that screen readers do not read, or
    the classes, such as `fa fa-check`, `fa-solid fa-check` or `icon-check`.
    """
    if icon.first_child is not None or icon.tag not in ("i", "span"):
        return _read_start(icon) if icon.attributes.get("aria-hidden") == "true" else ""
    names = _read_class(icon).split()
    for name in names:
        font, _, shape = name.partition("-")
        shapes = [other[len(font) :] for other in names if other.startswith(f"{font}-")]
        is_font = font == "icon" or any(
            other[: len(font)] == font for other in names[:3] if "-" not in other
        )
        if shape and (is_font or (icon.tag == "i" and len(shapes) > 1)):
            return " ".join(dict.fromkeys(" ".join(shapes).replace("-", " ").split()))
    return ""


def _find_beside(node: LexborNode, *, is_next: bool) -> LexborNode | None:
    """Return the next or previous element if only spaces separate it from an element."""
    other = node.next if is_next else node.prev
    if other is not None and other.tag == "-text" and not (other.text_content or "").strip():
        other = other.next if is_next else other.prev
    return other if other is not None and other.tag != "-text" else None


def _list_names(link: LexborNode) -> list[str]:
    """Return the ids of a link and of the nearest elements around it."""
    around = (link, *islice(list_ancestors(link), _MOST_AROUND_NOTE))
    stated = [part.attributes.get("id") for part in around] + [link.attributes.get("name")]
    return list(filter(None, stated))


def _read_class(node: LexborNode) -> str:
    return node.attributes.get("class") or ""


def _list_targets(control: LexborNode) -> list[str]:
    stated = control.attributes
    ids = (stated.get("aria-controls") or "").split()
    for name in ("data-bs-target", "data-target", "href"):
        address = stated.get(name) or ""
        ids += [address[1:]] if address.startswith("#") else []
    return ids


def _find_value(field: LexborNode, *, is_labelled: bool) -> str:
    if field.tag == "textarea":
        return field.text()
    if field.tag == "select":
        first = field.css("option")[: "multiple" not in field.attributes]
        options = field.css("option[selected]") or first
        return ", ".join(option.text(strip=True) for option in options)
    if field.tag in ("meter", "progress"):
        stated = filter(None, (field.attributes.get(name) for name in ("value", "max")))
        return field.text(strip=True) or "/".join(stated)
    kind = (field.attributes.get("type") or "").lower()
    if kind in _CHECKED:
        mark = _BOX if "checked" in field.attributes else _EMPTY_BOX
        return mark if is_labelled else ""
    return (field.attributes.get("value") or "") if kind in _TYPED else ""
