"""Reads the slides of OpenDocument files: each is a section headed by its title."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from xml.etree.ElementTree import Element

from knowledge.documents.office.opendocument_styles import PLAIN, ColouredSpan
from knowledge.documents.office.opendocument_text import DRAWN, HIDDEN, WHITE, BodyReader
from knowledge.documents.office.shapes import Box, find_backgrounds, order_shapes
from knowledge.documents.office.zipped_xml import to_length, write_page_headers
from knowledge.documents.page import Block, BlockKind

_LINES = frozenset({"line", "polyline", "connector"})
_SHOWN_BY_SLIDES: dict[str | None, tuple[str, tuple[str | None, ...]]] = {
    None: ("background-objects-visible", ("true", None)),
    **{kind: (f"display-{kind}", ("true",)) for kind in ("footer", "date-time")},
}
"""What a slide shows of its master: by kind of shape, an attribute of the slide and its values."""
_NOT_ON_SCREEN = ("none", "printer")
_FURNITURE = frozenset({"page-number", "date-time", "header", "footer"})


class SlideReader(BodyReader):
    """Reads slides one after the other."""

    def read(self, body: Element) -> Iterator[Block]:
        """Yield the blocks of the visible slides, below the lines that they repeat."""
        declared = {(part.tag, part.get("name")): part.text or "" for part in body}
        self._signs["page-number"] = ""
        repeated: list[str] = []
        blocks: list[Block] = []
        for number, slide in enumerate(body.findall("page"), start=1):
            if self._styles.hides("drawing-page", slide.get("style-name")):
                self.left_out.add("hidden slide", HIDDEN, name=str(number))
                continue
            repeated += self._read_shared(slide, declared)
            blocks += self._slide(slide, number)
        yield from (*write_page_headers(repeated), *blocks)

    def _slide(self, slide: Element, number: int) -> Iterator[Block]:
        shown = [child for child in slide if child.tag != "notes"]
        bases = self._find_bases(slide, shown)
        notes = chain.from_iterable(slide.findall("notes"))
        titles: list[str] = []
        below: list[Block] = []
        for shape in (
            *order_shapes(shown, _find_box),
            *(child for child in notes if child.get("class") not in _FURNITURE),
        ):
            self._base = bases.get(shape, PLAIN)
            if shape.get("class") == "title":
                titles += map(self._line, shape.iter("p"))
            else:
                below += self._block(shape)
        title = " ".join(filter(None, titles))
        if title or below:
            yield Block(BlockKind.HEADING, title or f"Slide {number}", 2, f"slide={number}")
            yield from below

    def _read_shared(
        self, slide: Element, declared: Mapping[tuple[str, str | None], str]
    ) -> Iterator[str]:
        """Yield the lines that a slide shows of its master, and its footer."""
        self._base = PLAIN
        master = slide.get("master-page-name")
        for kind, (name, shown) in _SHOWN_BY_SLIDES.items():
            if self._styles.find("drawing-page", slide.get("style-name"), name) not in shown:
                continue
            yield declared.get((f"{kind}-decl", slide.get(f"use-{kind}-name")), "")
            for shape in self._masters.get(master, ()):
                is_shown = shape.tag in DRAWN and shape.get("display") not in _NOT_ON_SCREEN
                if is_shown and shape.get("class") == kind:
                    yield from map(self._line, shape.iter("p"))

    def _find_bases(self, slide: Element, shapes: Sequence[Element]) -> dict[Element, ColouredSpan]:
        """Return the colour of the text of each shape, and the colour behind it."""
        master = self._masters.get(slide.get("master-page-name"), ())
        page: str | None = WHITE
        for part in (slide, master):
            style = part.get("style-name") if isinstance(part, Element) else None
            # A slide without a fill has that of its master.
            if self._styles.find("drawing-page", style, "fill") not in (None, "none"):
                page = self._styles.find_fill(style, "drawing-page")
                break
        below = [
            _find_box(shape)
            for shape in master
            if shape.get("class") is None and self._find_fill(shape) != ""
        ]
        places = ((self._find_fill(shape), _find_box(shape)) for shape in shapes)
        backgrounds = find_backgrounds(places, page, below)
        return {
            shape: ColouredSpan(
                colour=self._styles.find_colour("graphic", shape.get("style-name"), "color"),
                background=background or "",
            )
            for shape, background in zip(shapes, backgrounds, strict=True)
        }

    def _find_fill(self, shape: Element) -> str | None:
        """Return the fill of a shape: empty for none, None if it is not known."""
        if shape.tag not in DRAWN or shape.tag in _LINES:
            return ""
        if shape.tag == "g" or (shape.tag == "frame" and shape.find("text-box") is None):
            return None
        return self._styles.find_fill(shape.get("style-name"), "graphic", "presentation")


def _find_box(shape: Element) -> Box | None:
    """Return the box of a shape, or None if it does not state one."""
    lengths = [shape.get(name) for name in ("x", "y", "width", "height")]
    return None if None in lengths else Box(*map(to_length, lengths))
