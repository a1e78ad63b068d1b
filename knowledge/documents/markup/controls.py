"""Writes as text what a page shows by controls: labels of tabs, values of forms, named icons."""

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

_CONTROLS = "[aria-controls], [data-bs-target], [data-target], [data-bs-toggle], [data-toggle]"
_TABS = "[role=tab], [data-bs-toggle=tab], [data-toggle=tab], [data-bs-toggle=pill]"
_ICONS = "td svg, td i, td span, td img, td [role=img]"
_MOST = 2000
_TYPED = frozenset({"", "text", "number", "email", "tel", "url", "date", "time", "month", "week"})
_CHECKED = frozenset({"checkbox", "radio"})


def name_icons(tree: LexborHTMLParser) -> None:
    """Put the names of icons into the cells of tables that show nothing else."""
    for icon in tree.css(_ICONS)[:_MOST]:
        cell = icon.parent
        while cell is not None and cell.tag not in ("td", "table"):
            cell = cell.parent
        if cell is None or cell.tag != "td" or icon.attributes.get("aria-hidden") == "true":
            continue
        if not cell.text(strip=True) or _is_only_title(icon, cell):
            icon.insert_before(f" {_find_name(icon)} ")


def _is_only_title(icon: LexborNode, cell: LexborNode) -> bool:
    return icon.tag == "svg" and icon.text(strip=True) == cell.text(strip=True)


def _find_name(icon: LexborNode) -> str:
    title = icon.css_first("title") if icon.tag == "svg" else None
    stated = (icon.attributes.get(name) for name in ("aria-label", "alt", "title"))
    found = next(filter(None, stated), title.text() if title is not None else "")
    return " ".join(found.split())


def find_controlled(tree: LexborHTMLParser) -> frozenset[str]:
    """Return the ids of the parts that a person opens by a control with a label."""
    found: set[str] = set()
    for control in tree.css(_CONTROLS)[:_MOST]:
        if control.text(strip=True):
            found.update(_list_targets(control))
    return frozenset(found)


def _list_targets(control: LexborNode) -> list[str]:
    stated = control.attributes
    ids = (stated.get("aria-controls") or "").split()
    for name in ("data-bs-target", "data-target", "href"):
        address = stated.get(name) or ""
        ids += [address[1:]] if address.startswith("#") else []
    return ids


def place_tabs(tree: LexborHTMLParser) -> None:
    """Put the label of each tab above the panel that it opens; lists of tabs are removed."""
    for tab in tree.css(_TABS)[:_MOST]:
        label = " ".join(tab.text().split())
        panel = next(filter(None, (_find(tree, name) for name in _list_targets(tab))), None)
        own = tab.attributes.get("id")
        if panel is None and own:
            panel = _find_by(tree, "aria-labelledby", own)
        if label and panel is not None:
            panel.insert_before(f" {label} ")
            tab.decompose()


def _find(tree: LexborHTMLParser, name: str) -> LexborNode | None:
    return _find_by(tree, "id", name)


def _find_by(tree: LexborHTMLParser, attribute: str, value: str) -> LexborNode | None:
    if not value or '"' in value or "\\" in value:
        return None
    try:
        return tree.css_first(f'[{attribute}="{value}"]')
    except SelectolaxError:
        return None


def write_form_values(tree: LexborHTMLParser) -> None:
    """Replace the fields of forms by the values that they show."""
    for field in tree.css("input, select, textarea"):
        value = _find_value(field)
        if value:
            field.replace_with(f" {value} ")
        else:
            field.decompose()


def _find_value(field: LexborNode) -> str:
    if field.tag == "textarea":
        return field.text()
    if field.tag == "select":
        options = field.css("option[selected]") or field.css("option")[:1]
        return ", ".join(option.text(strip=True) for option in options)
    kind = (field.attributes.get("type") or "").lower()
    if kind in _CHECKED:
        return "\u2612" if "checked" in field.attributes else "\u2610"
    return (field.attributes.get("value") or "") if kind in _TYPED else ""
