"""Reads the text of paragraphs in a Word document, with the styles that apply to it.

Proposed insertions are read and proposed deletions are not; hidden runs and field instructions are
left out. The result of a field is the one that the file stores.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from string import hexdigits
from xml.etree.ElementTree import Element

from knowledge.documents.notation import Script, Span, join_spans, keep_lines
from knowledge.documents.office.drawings import write_omml
from knowledge.documents.office.zipped_xml import (
    BACKGROUND,
    find_child,
    find_children,
    get_value,
    is_on,
    to_length,
    to_number,
)
from knowledge.documents.page import LeftOutCounts
from knowledge.documents.symbols import find_symbol, replace_symbols

DELETED = frozenset({"del", "moveFrom"})
DELETED_REASON = "marked as deleted"
HIDDEN = "formatted as hidden text"
NOTES = {"footnoteReference": "footnote", "endnoteReference": "endnote"}
"""The elements that refer to notes, with the kinds of these notes."""

_LEFT_OUT = frozenset(
    {"pPr", "rPr", "instrText", "delText", "Fallback", "sdtPr", "sdtEndPr", "rt", "rubyPr"}
)
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_DRAWN = frozenset({"drawing", "object", "pict"})
_SCRIPTS = {"superscript": Script.RAISED, "subscript": Script.LOWERED}
_NO_STOPS = ("clear", "bar")
_DEEPEST = 12
_USUAL_SIZE = 20
"""The size of type that no style states, in half points."""
_TYPEFACES_OF_CODE = (
    "consolas", "courier", "menlo", "monaco", "mono", "source code", "lucida console", "fira code",
)  # fmt: skip
_STYLES_OF_CODE = ("code", "preformatted", "listing", "verbatim")
_LONGEST_INSTRUCTION = 1000
_FIELDS = frozenset(
    {"pgNum"} | {f"{part}{form}" for part in ("day", "month", "year") for form in ("Short", "Long")}
)
"""Elements that show the current date or page."""
_BUTTONS = frozenset({"MACROBUTTON", "GOTOBUTTON"})
_FIELDS_WITHOUT_TEXT = frozenset(
    {"ADVANCE", "ASK", "FORMCHECKBOX", "FORMDROPDOWN", "NEXT", "NEXTIF", "PRIVATE", "RD", "SET"}
    | {"SKIPIF", "TA", "TC", "XE"}
)


@dataclass(frozen=True, slots=True)
class ParagraphStyle:
    """The meaning of a paragraph style; `level` is 0 for text, and `list_id` is empty outside of
    lists.

    `name` is the id of the style. `list_level` is None if the style does not state one.
    `tab_stops` are the positions of its tab stops.
    """

    level: int = 0
    list_id: str = ""
    list_level: int | None = None
    is_code: bool = False
    is_contents: bool = False
    is_caption: bool = False
    tab_stops: frozenset[str] = frozenset()
    name: str = ""


class Styles:
    """The styles of a document by id; unset properties are inherited from the base style."""

    def __init__(self, root: Element | None) -> None:
        self._defaults = find_child(root, "docDefaults", "rPrDefault", "rPr")
        self._styles = {style.get("styleId", ""): style for style in find_children(root, "style")}
        self._found: dict[str, ParagraphStyle] = {}
        self._merged: dict[tuple[str, str], Element] = {}

    def find(self, style_id: str) -> ParagraphStyle:
        """Return the definition of a style, or an empty one if the style is unknown."""
        if style_id not in self._found:
            self._found[style_id] = self._read(style_id)
        return self._found[style_id]

    def is_on(self, properties: Element | None, name: str, paragraph_style: str) -> bool:
        """Return whether a property is set for a run, by its own properties or by styles.

        The styles of a run and of its paragraph cancel each other out if both set the property
        (ECMA-376 part 1, 17.7.3).
        """
        if find_child(properties, name) is not None:
            return is_on(properties, name)
        styles = (get_value(properties, "rStyle") or "", paragraph_style)
        by_run, by_paragraph = (is_on(self._merge(style, "rPr"), name) for style in styles)
        return by_run != by_paragraph

    def find_property(
        self, properties: Element | None, name: str, paragraph_style: str
    ) -> Element | None:
        """Return a property of a run, or that of its own style or of the style of its paragraph."""
        styles = (get_value(properties, "rStyle") or "", paragraph_style)
        parts = (properties, *(self._merge(style, "rPr") for style in styles))
        return next((stated for part in parts for stated in find_children(part, name)), None)

    def is_smaller(self, properties: Element | None, paragraph_style: str) -> bool:
        """Return whether the type of a run is smaller than that of its paragraph."""
        usual = self.find_property(None, "sz", paragraph_style)
        if usual is None:
            usual = find_child(self._defaults, "sz")
        own = self.find_property(properties, "sz", paragraph_style)
        sizes = (None if size is None else size.get("val") for size in (own, usual))
        smaller, larger = (to_number(size, _USUAL_SIZE) for size in sizes)
        return smaller < larger

    def is_white(self, properties: Element | None, paragraph: Element | None) -> bool:
        """Return whether a run is white, and neither it nor its paragraph has a background."""
        style = get_value(paragraph, "pStyle") or ""
        colour = self.find_property(properties, "color", style)
        backgrounds = (
            find_child(paragraph, "shd"),
            self.find_property(properties, "shd", style),
            self.find_property(properties, "highlight", style),
            self._merge(style, "pPr").find("shd"),
        )
        is_white = colour is not None and colour.get("val", "").upper() == "FFFFFF"
        return is_white and all(background is None for background in backgrounds)

    def _merge(self, style_id: str, part: str) -> Element:
        """Return the properties of a style, before those of its base styles."""
        if (style_id, part) not in self._merged:
            merged = self._merged[style_id, part] = Element(part)
            for style in self._chain(style_id):
                merged.extend(style.findall(f"{part}/*"))
        return self._merged[style_id, part]

    def _read(self, style_id: str) -> ParagraphStyle:
        chain = self._chain(style_id)
        names = [(get_value(style, "name") or "").lower() for style in chain]
        properties = self._merge(style_id, "pPr")
        list_level = get_value(properties, "numPr", "ilvl")
        typefaces = map(_find_typeface, self._merge(style_id, "rPr").findall("rFonts"))
        return ParagraphStyle(
            level=_find_level(names, [style.find("pPr") for style in chain]),
            list_id=get_value(properties, "numPr", "numId") or "",
            list_level=int(list_level) if list_level and list_level.isdecimal() else None,
            is_code=any(word in name for name in names[:1] for word in _STYLES_OF_CODE)
            or any(map(_is_monospaced, typefaces)),
            is_contents=any(name.startswith(("toc ", "table of figures")) for name in names),
            is_caption="caption" in names,
            tab_stops=add_tab_stops(frozenset(), properties),
            name=style_id,
        )

    def _chain(self, style_id: str) -> list[Element]:
        chain: list[Element] = []
        following: str | None = style_id
        while following in self._styles and len(chain) < _DEEPEST:
            chain.append(self._styles[following])
            following = get_value(chain[-1], "basedOn")
        return chain


@dataclass(slots=True)
class Paragraph:
    """A paragraph; `raw` keeps all spaces.

    `spaced` is the text with its tabs and outer spaces, and code in backticks. `is_joined`: its end
    is deleted, so that the next paragraph continues it. `is_counted`: a list counts it. `notes` are
    the kinds and ids of its notes, and `drawings` the elements with pictures, charts or objects.
    `style`, `label` and `list_level` are its context, which the reader of the document adds.
    """

    raw: str = ""
    spaced: str = ""
    is_joined: bool = False
    is_bold: bool = False
    is_code: bool = False
    is_counted: bool = True
    notes: list[str] = field(default_factory=list)
    drawings: list[Element] = field(default_factory=list)
    style: ParagraphStyle = field(default_factory=ParagraphStyle)
    label: str | None = None
    list_level: int = 0

    @property
    def text(self) -> str:
        """The text in its lines, with single spaces."""
        return keep_lines(self.spaced)


@dataclass(frozen=True, slots=True)
class _Run(Span):
    """Text in one typeface."""

    is_bold: bool = False
    is_formula: bool = False


@dataclass(slots=True)
class _Reading:
    """A paragraph while it is read: the id of its style, its runs, and its open fields.

    A field is its instruction, or None after the separator before its result. `instructions`
    counts those without a separator; their text is not shown. `is_on_page`: nothing but the page
    is behind it.
    """

    paragraph: Paragraph
    style: str
    properties: Element | None = None
    is_on_page: bool = False
    runs: list[_Run] = field(default_factory=list)
    fields: list[str | None] = field(default_factory=list)
    instructions: int = 0
    is_hidden: bool = False


class TextReader:
    """Reads the visible text of paragraphs, and counts what is left out.

    `marks` are the marks of footnotes and endnotes by kind and id.
    """

    def __init__(self, styles: Styles, left_out: LeftOutCounts, marks: Mapping[str, str]) -> None:
        self._styles = styles
        self._left_out = left_out
        self.marks = marks

    def read(self, element: Element, *, is_on_page: bool = False) -> Paragraph:
        """Return the text of a paragraph, or of a link in it.

        With `is_on_page`, white text is hidden unless it or its paragraph has a background.
        """
        properties = element.find("pPr")
        end = find_child(properties, "rPr")
        style = get_value(properties, "pStyle") or ""
        is_joined = any(find_child(end, name) is not None for name in DELETED)
        # A style separator hides the end of a heading that keeps its number.
        is_hidden = self._styles.is_on(end, "vanish", style) and not is_on(end, "specVanish")
        is_counted = not is_joined and not is_hidden
        paragraph = Paragraph(is_joined=is_joined, is_counted=is_counted)
        reading = _Reading(paragraph, style, properties, is_on_page)
        waiting: list[Element] = list(reversed(list(element)))
        while waiting:
            waiting.extend(reversed(list(self._read_node(waiting.pop(), reading))))
        return _finish(reading)

    def _read_node(self, node: Element, reading: _Reading) -> Iterable[Element]:
        """Add the text of an element; return the elements in it that are still to be read."""
        name = node.tag
        if name in DELETED:
            is_text = any(True for _ in node.iter("delText"))
            self._left_out.add("deleted passage", DELETED_REASON, is_text)
        elif name == "oMath":
            border = " " if reading.runs and reading.runs[-1].is_formula else ""
            reading.runs.append(_Run(border + write_omml(node), is_formula=True))
        elif name == "fldSimple" and node.find("r") is None:
            reading.runs.append(_Run(self._end_field(node.get("instr", ""))))
        elif name == "subDoc":
            reading.paragraph.drawings.append(node)
        elif name == "r":
            self._read_run(node, reading)
            inner = find_child(node, "ruby", "rubyBase")
            self._left_out.add("reading", "written above words", inner is not None)
            return () if inner is None else inner
        elif name not in _LEFT_OUT:
            return node
        return ()

    def _read_run(self, run: Element, reading: _Reading) -> None:
        properties = run.find("rPr")
        fonts = self._styles.find_property(properties, "rFonts", reading.style)
        typeface = _find_typeface(fonts)
        notes = len(reading.paragraph.notes)
        pieces = [piece for piece in self._read_pieces(run, reading, fonts) if piece[0]]
        # White spaces still indent the text.
        has_text = reading.is_on_page and any(text.strip() for text, _ in pieces)
        is_white = has_text and self._styles.is_white(properties, reading.properties)
        is_hidden = is_white or self._styles.is_on(properties, "vanish", reading.style)
        if pieces:
            is_begun = is_hidden and not reading.is_hidden
            self._left_out.add("hidden passage", BACKGROUND if is_white else HIDDEN, is_begun)
            reading.is_hidden = is_hidden
        if is_hidden:
            del reading.paragraph.notes[notes:]
            return
        reading.paragraph.drawings += walk_shown(run, _DRAWN)
        script = self._find_script(properties, reading.style)
        is_struck = any(
            self._styles.is_on(properties, name, reading.style) for name in ("strike", "dstrike")
        )
        # A raised or lowered sign would lose its position in code.
        is_code = _is_monospaced(typeface) and script is Script.LINE
        is_bold = is_on(properties, "b")
        is_upper = self._styles.is_on(properties, "caps", reading.style)
        for stated, is_mark in pieces:
            text = stated.upper() if is_upper else stated
            position = Script.NOTE if is_mark else script
            reading.runs.append(_Run(text, position, is_struck, is_code, is_bold=is_bold))

    def _find_script(self, properties: Element | None, style: str) -> Script:
        """Return the position of a run; smaller type that is moved up or down has one, too."""
        position = self._styles.find_property(properties, "vertAlign", style)
        if position is not None:
            return _SCRIPTS.get(position.get("val", ""), Script.LINE)
        moved = to_length(get_value(properties, "position"))
        if not moved or not self._styles.is_smaller(properties, style):
            return Script.LINE
        return Script.RAISED if moved > 0 else Script.LOWERED

    def _read_pieces(
        self, run: Element, reading: _Reading, fonts: Element | None
    ) -> Iterator[tuple[str, bool]]:
        """Yield the visible pieces of a run, and whether each is the mark of a note."""
        is_mark = False
        for child in run:
            name = child.tag
            if name == "fldChar":
                yield self._read_field(child, reading), False
            elif name == "instrText" and reading.fields and reading.fields[-1] is not None:
                reading.fields[-1] = f"{reading.fields[-1]}{child.text or ''}"[
                    :_LONGEST_INSTRUCTION
                ]
            elif reading.instructions:
                continue
            elif name in _FIELDS:
                yield self._end_field(name), False
            elif name in NOTES:
                key = name_note(child)
                reading.paragraph.notes.append(key)
                is_mark = has_own_mark(child)
                yield self.marks.get(key, "[*]"), True
            elif text := _read_sign(child, name, fonts):
                yield (f"[{text}]" if is_mark and text[0] not in "[(" else text), is_mark

    def _read_field(self, sign: Element, reading: _Reading) -> str:
        """Follow the beginning, the separator or the end of a field; return what a person sees."""
        kind = sign.get("fldCharType")
        if kind == "begin":
            shown = "" if reading.instructions else _read_form_field(sign)
            reading.fields.append("")
            reading.instructions += 1
            return shown
        if kind not in ("separate", "end") or not reading.fields:
            return ""
        instruction = reading.fields.pop()
        reading.instructions -= instruction is not None
        if kind == "separate":
            reading.fields.append(None)
        elif instruction and not reading.instructions:
            return self._end_field(instruction)
        return ""

    def _end_field(self, instruction: str) -> str:
        """Return what a person sees of a field for which the file stores no result."""
        words = instruction.split()
        name = words[0].upper() if words else ""
        if name in _BUTTONS:
            return " ".join(words[2:])
        if name and name not in _FIELDS_WITHOUT_TEXT:
            reason = "the file stores no result: update the fields in Word and save the file"
            self._left_out.add("field", reason, name=name)
        return ""


def walk_shown(parent: Element | None, ends: Collection[str]) -> Iterator[Element]:
    """Yield the first elements with these names on each branch, without invisible content."""
    waiting = list(reversed(parent)) if parent is not None else []
    while waiting:
        element = waiting.pop()
        name = element.tag
        if name in ends:
            yield element
        elif name not in _LEFT_OUT and name not in DELETED:
            waiting.extend(reversed(element))


def add_tab_stops(stops: frozenset[str], properties: Element | None) -> frozenset[str]:
    """Return the positions of tab stops with those that properties, the last first, change."""
    for tabs in reversed(list(find_children(properties, "tabs"))):
        for tab in tabs.findall("tab"):
            own = {tab.get("pos", "")}
            stops = stops - own if tab.get("val") in _NO_STOPS else stops | own
    return stops


def read_outline(properties: Element | None) -> int | None:
    """Return the level of a heading, 0 for text, or None if properties state none."""
    outline = get_value(properties, "outlineLvl")
    if outline is None or not outline.isdecimal():
        return None
    return min(int(outline) + 1, 6) if int(outline) < 9 else 0


def name_note(reference: Element) -> str:
    """Return the kind and id of the note to which an element refers."""
    return f"{NOTES[reference.tag]} {reference.get('id')}"


def has_own_mark(reference: Element) -> bool:
    """Return whether the author wrote the mark of a note, in the text and in the note."""
    return reference.get("customMarkFollows") in ("1", "true", "on")


def _find_typeface(fonts: Element | None, *, is_ascii: bool = True) -> str:
    stated = {} if fonts is None else fonts.attrib
    return stated.get("ascii", "") if is_ascii else stated.get("hAnsi") or stated.get("ascii", "")


def _is_monospaced(typeface: str) -> bool:
    return any(name in typeface.lower() for name in _TYPEFACES_OF_CODE)


def _finish(reading: _Reading) -> Paragraph:
    paragraph, runs = reading.paragraph, reading.runs
    visible = [run for run in runs if run.text.strip() and run.script is not Script.NOTE]
    paragraph.is_bold = bool(visible) and all(run.is_bold for run in visible)
    paragraph.is_code = bool(visible) and all(run.is_code for run in visible)
    paragraph.raw = join_spans(replace(run, is_code=True) for run in runs)
    paragraph.spaced = paragraph.raw if paragraph.is_code else join_spans(_mark_code(runs))
    return paragraph


def _read_form_field(sign: Element) -> str:
    """Return the check box, or the chosen entry, of a form field."""
    if (box := find_child(sign, "ffData", "checkBox")) is not None:
        stated = "checked" if box.find("checked") is not None else "default"
        return "\u2612" if is_on(box, stated) else "\u2610"
    entries = find_child(sign, "ffData", "ddList")
    chosen = to_number(get_value(entries, "result") or get_value(entries, "default"))
    shown = [entry.get("val", "") for entry in find_children(entries, "listEntry")]
    return shown[chosen] if chosen < len(shown) else ""


def _read_sign(child: Element, name: str, fonts: Element | None) -> str:
    """Return the visible part of a run: text, a symbol, or decorated text (WordArt)."""
    if name == "t":
        parts = groupby((child.text or "").replace("\n", " "), key=str.isascii)
        return "".join(
            replace_symbols("".join(part), _find_typeface(fonts, is_ascii=is_ascii))
            for is_ascii, part in parts
        )
    if name == "sym":
        code = child.get("char", "")
        is_code = len(code) <= 4 and all(digit in hexdigits for digit in code or "-")
        return find_symbol(int(code, 16), child.get("font", "")) if is_code else ""
    if name == "pict":
        texts = (path.get("string", "") for path in child.iter("textpath"))
        return " ".join(texts)
    return _SIGNS.get(name, "")


def _mark_code(runs: Iterable[_Run]) -> Iterator[Span]:
    """Yield the runs, each stretch of code as one in backticks."""
    for is_code, group in groupby(runs, key=lambda run: run.is_code and not run.is_struck):
        if not is_code:
            yield from group
            continue
        code = "".join(run.text for run in group)
        bare = code.strip()
        shown = code.replace(bare, f"`{bare}`", 1) if bare and "`" not in bare else code
        yield Span(shown, is_code=True)


def _find_level(style_names: list[str], properties: list[Element | None]) -> int:
    for name, element in zip(style_names, properties, strict=True):
        if (outline := read_outline(element)) is not None:
            return outline
        if name.startswith("heading ") and name[8:].isdecimal():
            return max(1, min(int(name[8:]), 6))
        if name == "title":
            return 1
    return 0
