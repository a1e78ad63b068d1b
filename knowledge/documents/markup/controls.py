"""Converts controls and symbols to text: labels of tabs, values of forms, names of icons."""

import re
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from knowledge.documents.symbols import replace_symbols

_CONTROLS = "[aria-controls], [data-bs-target], [data-target], [data-bs-toggle], [data-toggle]"
_TABS = "[role=tab], [data-bs-toggle=tab], [data-toggle=tab], [data-bs-toggle=pill]"
_EXPANDED = ".expand-container > .expand-content[id]"
"""What the control before it expands in exports of Confluence."""
_SYMBOLS = "[style*=ingdings], font[face]"
_WINGDINGS = re.compile(
    r"(?:\A|[;\s])(?:mso-symbol-)?font-family\s{0,9}:\s{0,9}[\"']?wingdings[\"']?\s{0,9}(?:[;,]|\Z)",
    re.IGNORECASE,
)
_ICONS = "td svg, td i, td span, td img, td [role=img]"
_MOST = 2000
_MOST_NODES = 50
_LONGEST_LABEL = 200
_TYPED = frozenset({"", "text", "number", "email", "tel", "url", "date", "time", "month", "week"})
_LABELLED = frozenset({"li", "label", "p", "td", "dd"})
_CHECKED = frozenset({"checkbox", "radio"})


def name_icons(tree: LexborHTMLParser) -> None:
    """Replace icons with their names in table cells that contain nothing else."""
    empty: dict[int, bool] = {}
    for icon in tree.css(_ICONS)[:_MOST]:
        cell = icon.parent
        while cell is not None and cell.tag not in ("td", "table"):
            cell = cell.parent
        if cell is None or cell.tag != "td" or icon.attributes.get("aria-hidden") == "true":
            continue
        if cell.mem_id not in empty:
            empty[cell.mem_id] = _read_start(cell) in ("", _read_title(icon))
        name = _find_name(icon) if empty[cell.mem_id] else ""
        if name:
            icon.insert_before(f" ![{name}] " if icon.tag == "img" else f" {name} ")


def write_symbols(tree: LexborHTMLParser) -> None:
    """Replace the letters in Wingdings, as programs such as Word write them, by their symbols.

    The first typeface counts; Wingdings 2 and 3 have other symbols.
    """
    for node in tree.css(_SYMBOLS)[:_MOST]:
        face = (node.attributes.get("face") or "").partition(",")[0].strip("\"' ").lower()
        if face != "wingdings" and not _WINGDINGS.search(node.attributes.get("style") or ""):
            continue
        for text in [part for part in node.iter(include_text=True) if part.tag == "-text"]:
            text.insert_before(replace_symbols(text.text_content or "", "Wingdings"))
            text.decompose()


def find_controlled(tree: LexborHTMLParser) -> set[str]:
    """Return the ids of the elements that a labelled control expands."""
    labelled = filter(_read_start, tree.css(_CONTROLS)[:_MOST])
    expanded = {node.attributes.get("id") or "" for node in tree.css(_EXPANDED)[:_MOST]}
    return expanded.union(target for control in labelled for target in _list_targets(control))


def place_tabs(tree: LexborHTMLParser) -> None:
    """Insert the label of each tab above its panel, and remove the tabs."""
    tabs = tree.css(_TABS)[:_MOST]
    panels: dict[str, LexborNode] = {}
    for panel in tree.css("[id], [aria-labelledby]") if tabs else ():
        for name in ("id", "aria-labelledby"):
            if stated := panel.attributes.get(name):
                panels.setdefault(f"{name} {stated}", panel)
    placed: list[LexborNode] = []
    by_place = _pair_by_place(tree)
    for tab in tabs:
        names = [f"id {name}" for name in _list_targets(tab)]
        names.append(f"aria-labelledby {tab.attributes.get('id')}")
        node = next((panels[name] for name in names if name in panels), by_place.get(tab.mem_id))
        label = _read_start(tab)
        if label and node is not None:
            node.insert_before(f" {label} ")
            placed.append(tab)
    for tab in reversed(placed):
        tab.decompose()


def write_form_values(tree: LexborHTMLParser) -> None:
    """Replace form fields with the values that they show."""
    for field in tree.css("input, select, textarea"):
        value = _find_value(field)
        if value:
            field.replace_with(f" {value} ")
        else:
            field.decompose()


def _pair_by_place(tree: LexborHTMLParser) -> dict[int, LexborNode]:
    """Return the panel of each tab, by its id in memory, where lists of tabs are followed by as
    many panels.
    """
    pairs: dict[int, LexborNode] = {}
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


def _read_start(node: LexborNode) -> str:
    """Return the first text in an element on one line: enough for a label, in bounded time."""
    nodes = islice(node.traverse(include_text=True), _MOST_NODES)
    texts = (node.text_content or "" for node in nodes if node.tag == "-text")
    return " ".join("".join(texts).split())[:_LONGEST_LABEL]


def _read_title(icon: LexborNode) -> str:
    title = icon.css_first("title") if icon.tag == "svg" else None
    return _read_start(title) if title is not None else ""


def _find_name(icon: LexborNode) -> str:
    stated = (icon.attributes.get(name) for name in ("aria-label", "alt", "title"))
    return " ".join(next(filter(None, stated), _read_title(icon)).split())[:_LONGEST_LABEL]


def _list_targets(control: LexborNode) -> list[str]:
    stated = control.attributes
    ids = (stated.get("aria-controls") or "").split()
    for name in ("data-bs-target", "data-target", "href"):
        address = stated.get(name) or ""
        ids += [address[1:]] if address.startswith("#") else []
    return ids


def _find_value(field: LexborNode) -> str:
    if field.tag == "textarea":
        return field.text()
    if field.tag == "select":
        options = field.css("option[selected]") or field.css("option")[:1]
        return ", ".join(option.text(strip=True) for option in options)
    kind = (field.attributes.get("type") or "").lower()
    if kind in _CHECKED:
        around = field.parent.tag if field.parent is not None else ""
        if around not in _LABELLED:
            return ""
        return "\u2612" if "checked" in field.attributes else "\u2610"
    return (field.attributes.get("value") or "") if kind in _TYPED else ""
