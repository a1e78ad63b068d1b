"""Reads graphical parts of a document: charts, diagrams (SmartArt), formulas and shapes."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from xml.etree.ElementTree import Element

from knowledge.documents.notation import (
    Formula,
    Script,
    Span,
    join_spans,
    keep_lines,
    write_formula,
)
from knowledge.documents.office.number_format import format_number
from knowledge.documents.office.zipped_xml import (
    ZippedXml,
    find_all,
    find_child,
    find_first,
    get_value,
    is_on,
    to_number,
)
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, make_item
from knowledge.documents.readers import read_inner_file
from knowledge.documents.symbols import replace_symbols
from knowledge.documents.tables import Cell, write_table

NO_VALUES = "the file stores no values"
"""The reason for which a chart is counted as left out."""
_MOST_POINTS = 5000
_DEEPEST_DIAGRAM = 20
_EMBEDDED = frozenset({"OLEObject", "oleObj", "altChunk", "subDoc"})
_GRAPHICS = {"chart": "id", "relIds": "dm", **dict.fromkeys(_EMBEDDED, "id")}
"""Elements that refer to another part, with the attributes that name its relationship."""
_STRUCK = frozenset({"sngStrike", "dblStrike"})
_OMML = {
    "f": ("mfrac", "num", "den"),
    "sSup": ("msup", "e", "sup"),
    "sSub": ("msub", "e", "sub"),
    "sSubSup": ("msubsup", "e", "sub", "sup"),
    "rad": ("mroot", "e", "deg"),
    "func": ("function", "fName", "e"),
    "limLow": ("munder", "e", "lim"),
    "limUpp": ("mover", "e", "lim"),
    "eqArr": ("mtable",),
    "m": ("mtable",),
    "mr": ("mtr",),
}
_DEEPEST = 60


def read_graphics(
    parent: Element, archive: ZippedXml, part: str, left_out: LeftOutCounts
) -> Iterator[Block]:
    """Yield the charts, diagrams and embedded files to which a drawing in a part refers."""
    controls = sum(1 for _ in parent.iter("control"))
    left_out.add("form control", "ActiveX controls are not read", controls)
    relations = archive.relationships(part)
    # Programs that do not know an element read an alternative one.
    seen: set[str] = set()
    for element in parent.iter():
        name = element.get(_GRAPHICS.get(element.tag, ""))
        if name is None or name in seen:
            continue
        seen.add(name)
        relation = relations.get(name)
        if relation is None or relation.target not in archive:
            if element.tag in _EMBEDDED:
                left_out.add("embedded file", "linked, and not part of this file")
        elif element.tag in _EMBEDDED:
            data, levels = archive.read(relation.target), 0 if element.tag == "altChunk" else 2
            yield from read_inner_file(data, relation.target, left_out, levels=levels)
        elif element.tag == "chart":
            yield from _write_chart(archive.parse(relation.target), left_out)
        else:
            yield from _write_diagram(archive.parse(relation.target))


def read_drawing_text(paragraph: Element, styles: Iterable[Element] = ()) -> str:
    """Return the text of a paragraph of a slide or a shape, with its tabs and line breaks.

    Its runs inherit from `styles`, the nearest one first.
    """
    inherited = [part for style in styles for part in style.findall("defRPr")]
    spans: list[Span] = []
    for element in paragraph:
        name = element.tag
        if name in ("r", "fld"):
            spans += _read_run(element, inherited)
        elif name == "br":
            spans.append(Span("\n"))
        else:
            spans += (Span(write_omml(formula)) for formula in element.iter("oMath"))
    return join_spans(spans)


def read_mathml(element: Element, depth: int = 0) -> Formula:
    """Return a formula in MathML without its alternative representations."""
    if depth > _DEEPEST or element.tag.startswith("annotation"):
        return Formula("mrow")
    parts = tuple(read_mathml(child, depth + 1) for child in element)
    return Formula(element.tag, element.text or "", parts)


def write_omml(element: Element) -> str:
    """Return a formula of an office file on one line."""
    return write_formula(_read_omml(element))


def _read_run(run: Element, inherited: Sequence[Element]) -> Iterator[Span]:
    properties = [*run.findall("rPr"), *inherited]
    stated = {name: value for part in reversed(properties) for name, value in part.items()}
    baseline = stated.get("baseline", "0")
    script = Script.LINE
    if baseline.strip("-%").isdecimal() and int(baseline.strip("-%")):
        script = Script.LOWERED if baseline.startswith("-") else Script.RAISED
    for element in run:
        if element.tag == "t":
            typefaces = (_find_typeface(properties, script) for script in ("latin", "sym"))
            text = replace_symbols(element.text or "", *typefaces)
            shown = text.upper() if stated.get("cap") == "all" else text
            yield Span(shown, script, stated.get("strike") in _STRUCK)
        elif element.tag in ("tab", "br"):
            yield Span(" ")


def _find_typeface(properties: Iterable[Element], script: str) -> str:
    stated = (typeface for part in properties for typeface in part.findall(script))
    return next((typeface.get("typeface", "") for typeface in stated), "")


def _write_chart(root: Element, left_out: LeftOutCounts) -> Iterator[Block]:
    """Yield the title of a chart, and its series as the columns of tables."""
    chart = root.find("chart")
    title = " ".join(
        text
        for paragraph in find_all(find_child(chart, "title"), "p")
        if (text := keep_lines(read_drawing_text(paragraph)))
    )
    if title:
        yield Block(BlockKind.TEXT, title)
    series = list(find_all(find_child(chart, "plotArea"), "ser"))
    values = [
        _read_points(find_first(element, "val", "yVal"), element.find("dLbls"))
        for element in series
    ]
    if not any(values):
        reason = NO_VALUES if series else "this kind of chart is not read"
        left_out.add("chart", reason, name=title)
    sizes = sum(element.find("bubbleSize") is not None for element in series)
    left_out.add("series of sizes", "a chart shows them as bubbles, not as numbers", sizes)
    names = (" ".join(_read_points(element.find("tx")).values()) for element in series)
    header = [name or f"Series {at}" for at, name in enumerate(names, start=1)]
    stated = [_read_points(find_first(element, "cat", "xVal")) for element in series]
    first = next(filter(None, stated), {})
    columns = zip(header, values, (own or first for own in stated), strict=True)
    # The points of a scatter chart have their own places for each series.
    for categories, group in groupby(columns, key=itemgetter(2)):
        shown = list(group)
        rows = [
            [categories.get(at, str(at + 1)), *(points.get(at, "") for _, points, _ in shown)]
            for at in sorted({*categories, *(at for _, points, _ in shown for at in points)})
        ]
        if rows:
            cells = [[Cell(text, is_header=True) for text in ("", *(name for name, *_ in shown))]]
            yield from write_table([*cells, *([Cell(text) for text in row] for row in rows)])


def _read_points(parent: Element | None, labels: Element | None = None) -> dict[int, str]:
    """Return the data points stored in a chart, by number, as their labels display them."""
    code = next((child.text or "" for child in find_all(parent, "formatCode")), "")
    stated = find_child(labels, "numFmt")
    if stated is not None and is_on(labels, "showVal") and stated.get("sourceLinked") != "1":
        code = stated.get("formatCode", code)
    points: dict[int, str] = {}
    # Each level of categories, from the innermost one on, is above several of the one before.
    for level in (*find_all(parent, "lvl"),) or (parent,):
        own = _read_level(level, code)
        last = ""
        for at in sorted({*points, *own}):
            last = own.get(at, last)
            points[at] = f"{last} {points.get(at, '')}".strip()
    if not points and parent is not None and (value := parent.find("v")) is not None:
        points[0] = value.text or ""
    return points


def _read_level(parent: Element | None, code: str) -> dict[int, str]:
    points: dict[int, str] = {}
    for point in find_all(parent, "pt"):
        number, value = point.get("idx", ""), point.find("v")
        if number.isdecimal() and value is not None and len(points) < _MOST_POINTS:
            own = point.get("formatCode", code)
            points[int(number)] = format_number(value.text or "", own) if own else value.text or ""
    return points


def _write_diagram(root: Element) -> Iterator[Block]:
    """Yield the texts of a diagram as a list; subordinate texts are indented."""
    texts = {
        point.get("modelId", ""): " ".join(
            text
            for paragraph in point.iter("p")
            if (text := keep_lines(read_drawing_text(paragraph)))
        )
        for point in find_all(root.find("ptLst"), "pt")
        if point.get("type", "node") in ("node", "asst", "doc")
    }
    below: dict[str, list[tuple[int, str]]] = {}
    for connection in find_all(root.find("cxnLst"), "cxn"):
        if connection.get("type", "parOf") == "parOf":
            entry = (to_number(connection.get("srcOrd")), connection.get("destId", ""))
            below.setdefault(connection.get("srcId", ""), []).append(entry)
    children = {name for entries in below.values() for _, name in entries}
    waiting = [(name, 0) for name in reversed(texts) if name not in children]
    seen: set[str] = set()
    while waiting:
        name, depth = waiting.pop()
        if name in seen or depth > _DEEPEST_DIAGRAM:
            continue
        seen.add(name)
        text = texts.get(name, "")
        if text:
            yield make_item("-", text, depth)
        inner = depth + 1 if text else depth
        waiting += [(child, inner) for _, child in sorted(below.get(name, []), reverse=True)]


def _read_omml(element: Element, depth: int = 0) -> Formula:
    name = element.tag
    if depth > _DEEPEST or name.endswith("Pr"):
        return Formula("mrow")
    if name == "t":
        return Formula("mi", element.text or "")
    if name == "nary":
        return _read_sum(element, depth)
    if name == "d":
        return _read_brackets(element, depth)
    known = _OMML.get(name, ("mrow",))
    if name == "f" and get_value(element, "fPr", "type") == "noBar":
        known = ("binomial", *known[1:])
    if len(known) > 1:
        named = (element.find(name) for name in known[1:])
        parts = [Formula("mrow") if name is None else _read_omml(name, depth + 1) for name in named]
    else:
        parts = [_read_omml(child, depth + 1) for child in element]
    return Formula(known[0], "", tuple(parts))


def _read_sum(element: Element, depth: int) -> Formula:
    sign = get_value(element, "naryPr", "chr") or "\u222b"
    limits = (element.find(name) for name in ("sub", "sup"))
    parts = [Formula("mrow") if limit is None else _read_omml(limit, depth + 1) for limit in limits]
    head = Formula("msubsup", "", (Formula("mo", sign), *parts))
    inner = element.find("e")
    tail = () if inner is None else (Formula("mspace"), _read_omml(inner, depth + 1))
    return Formula("mrow", "", (head, *tail))


def _read_brackets(element: Element, depth: int) -> Formula:
    begin = get_value(element, "dPr", "begChr")
    end = get_value(element, "dPr", "endChr")
    inner = [_read_omml(child, depth + 1) for child in element.findall("e")]
    separated = [part for argument in inner for part in (Formula("mo", "|"), argument)][1:]
    first = Formula("mo", "(" if begin is None else begin)
    last = Formula("mo", ")" if end is None else end)
    return Formula("mrow", "", (first, *separated, last))
