"""Reads values entered into the forms of a PDF and annotations on its pages."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from pypdfium2 import PdfDocument, PdfPage, PdfTextPage, raw

from knowledge.documents.decoding import clean_text
from knowledge.documents.page import LeftOutCounts
from knowledge.documents.pdf.page_objects import Box, read_text, shift_page
from knowledge.documents.pdf.page_text import Segment

COMMENT = ("comment", "comments on pages are not part of the text")
HIDDEN = ("hidden word", "not visible on the page")
_MOST_ANNOTATIONS = 5_000
_MOST_CHARACTERS = 1_000_000
_TOO_MANY = (
    f"a page can have at most {_MOST_ANNOTATIONS} of them, with {_MOST_CHARACTERS} characters"
)
_AS_STORED = ("drawn form", "too many characters; its values are shown as stored")
_MOST_OPTIONS = 1_000
_DRAWN = (
    raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_STAMP, raw.FPDF_ANNOT_WATERMARK,
)  # fmt: skip
"""Annotations that may be drawn as text."""
_MOST_COMPARED = 100_000_000
_SIZE = 10.0
_WIDEST_LETTER = 0.7
_FURTHER_ABOVE = 3.0
"""How much nearer a label beside a field is than one above it."""


def take_annotations(
    document: PdfDocument, number: int, page: PdfPage, segments: list[Segment],
    left_out: LeftOutCounts,
) -> list[Segment]:  # fmt: skip
    """Return the values of form fields, signatures, stamps and texts on page `number` from 1.

    Comments and hidden values are counted. A value is on the same line as the text beside its
    field, and follows the nearest text in the drawing order.
    """
    taken: list[Segment] = []
    left = _MOST_CHARACTERS
    count = raw.FPDFPage_GetAnnotCount(page)
    drawn = _draw_alone(document, number, page, left_out)
    for annotation in _list_annotations(page):
        if left < 0:
            break
        count -= 1
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        shown = ""
        if kind == raw.FPDF_ANNOT_WIDGET:
            shown = _read_field(document.formenv, annotation, drawn)
        elif kind == raw.FPDF_ANNOT_FREETEXT:
            shown = _read_contents(annotation) or _read_drawn(annotation, drawn)
        elif kind not in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP):
            shown = _read_drawn(annotation, drawn) if kind in _DRAWN else ""
            contents = _read_contents(annotation)
            left_out.add(*COMMENT, count=_join(contents) not in _join(shown))
        left -= len(shown)
        if _is_hidden(annotation):
            left_out.add(*HIDDEN, count=len(shown.split()))
        elif shown:
            taken += _place(page, annotation, shown, segments)
    left_out.add("annotation", _TOO_MANY, count=count)
    return taken


def take_strikes(page: PdfPage) -> Iterator[Box]:
    """Yield the lines with which annotations strike text out."""
    shift = shift_page(page)
    quad = raw.FS_QUADPOINTSF()
    for annotation in _list_annotations(page):
        is_strike = raw.FPDFAnnot_GetSubtype(annotation) == raw.FPDF_ANNOT_STRIKEOUT
        if not is_strike or _is_hidden(annotation):
            continue
        for number in range(raw.FPDFAnnot_CountAttachmentPoints(annotation)):
            raw.FPDFAnnot_GetAttachmentPoints(annotation, number, quad)
            xs = quad.x1, quad.x2, quad.x3, quad.x4
            middle = (quad.y1 + quad.y2 + quad.y3 + quad.y4) / 4
            yield shift.on_rect(min(xs), middle, max(xs), middle)


def _draw_alone(
    document: PdfDocument, number: int, page: PdfPage, left_out: LeftOutCounts
) -> PdfTextPage | None:
    """Return the text of a copy of a page on which only its annotations are drawn, if any is."""
    kinds = [raw.FPDFAnnot_GetSubtype(one) for one in _list_annotations(page)]
    if not any(kind in _DRAWN for kind in kinds):
        return None
    copy = PdfDocument.new()
    copy.import_pages(document, [number - 1])
    alone = copy[0]
    for one in list(alone.get_objects(max_depth=1)):
        alone.remove_obj(one)
    alone.gen_content()
    raw.FPDFPage_Flatten(alone, raw.FLAT_NORMALDISPLAY)
    text = copy[0].get_textpage()
    if len(kinds) * text.count_chars() <= _MOST_COMPARED:
        return text
    left_out.add(*_AS_STORED, name=f"page {number}")
    return None


def _read_drawn(annotation: Any, drawn: PdfTextPage | None) -> str:
    rect = raw.FS_RECTF()
    raw.FPDFAnnot_GetRect(annotation, rect)
    if drawn is None:
        return ""
    text = drawn.get_text_bounded(rect.left, rect.bottom, rect.right, rect.top)
    return clean_text(text).strip()


def _join(text: str) -> str:
    return "".join(text.split())


def _read_field(form: Any, annotation: Any, drawn: PdfTextPage | None) -> str:
    """Return the value of a form field as the page shows it; selected options by their labels.

    Of a page that was taken out of its form, which is None, only texts are stated.
    """
    if form is None:
        is_text = raw.FPDFAnnot_GetValueType(annotation, b"V") == raw.FPDF_OBJECT_STRING
        stored = partial(raw.FPDFAnnot_GetStringValue, annotation, b"V")
        return read_text(stored) if is_text else ""
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        # PDFium does not know the name of a mark that is drawn in one appearance only.
        state = read_text(partial(raw.FPDFAnnot_GetStringValue, annotation, b"AS"))
        is_drawn = state not in ("", "Off") and _read_drawn(annotation, drawn)
        return "[x]" if is_drawn or raw.FPDFAnnot_IsChecked(form, annotation) else "[ ]"
    if kind == raw.FPDF_FORMFIELD_SIGNATURE:
        return _read_drawn(annotation, drawn)
    is_choice = kind in (raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX)
    if not is_choice and kind != raw.FPDF_FORMFIELD_TEXTFIELD:
        return ""
    options = raw.FPDFAnnot_GetOptionCount(form, annotation) if is_choice else 0
    selected = [
        read_text(partial(raw.FPDFAnnot_GetOptionLabel, form, annotation, at))
        for at in range(options if options <= _MOST_OPTIONS else 0)
        if raw.FPDFAnnot_IsOptionSelected(form, annotation, at)
    ]
    value = read_text(partial(raw.FPDFAnnot_GetFormFieldValue, form, annotation))
    # A number may be drawn in another format than it is stored, and a password as stars.
    shown = "" if is_choice else _read_drawn(annotation, drawn)
    return ", ".join(selected) or (value if _join(shown) in _join(value) else shown)


def _read_contents(annotation: Any) -> str:
    return read_text(partial(raw.FPDFAnnot_GetStringValue, annotation, b"Contents"))


def _list_annotations(page: PdfPage) -> Iterator[Any]:
    for at in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page, at)
        try:
            yield annotation
        finally:
            raw.FPDFPage_CloseAnnot(annotation)


def _is_hidden(annotation: Any) -> bool:
    """Return whether a page does not show an annotation."""
    hidden: int = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
    return bool(raw.FPDFAnnot_GetFlags(annotation) & hidden)


def _place(page: PdfPage, annotation: Any, text: str, segments: list[Segment]) -> Iterator[Segment]:
    rect = raw.FS_RECTF()
    raw.FPDFAnnot_GetRect(annotation, rect)
    box = shift_page(page).on_rect(rect.left, rect.bottom, rect.right, rect.top)
    left, bottom, right, top = box
    beside = [segment for segment in segments if bottom <= segment.base <= top]
    nearest = min(beside, key=lambda one: abs(one.base - bottom), default=None)
    tagged = [segment for segment in segments if segment.tag is not None]
    label = min(tagged or segments, key=lambda one: _find_distance(one, box), default=None)
    tag, number = (None, 0) if label is None else (label.tag, label.number)
    lines = text.splitlines()
    size = _SIZE if nearest is None else nearest.size
    first = top - size if nearest is None or len(lines) > 1 else nearest.base
    for at, line in enumerate(lines):
        end = min(right, left + _WIDEST_LETTER * size * len(line))
        yield Segment(line, left, end, first - at * 1.2 * size, size, tag=tag, number=number)


def _find_distance(segment: Segment, box: Box) -> float:
    """Return how far a text is from a field, in points; text on the same line is nearer."""
    across = max(segment.left - box[2], box[0] - segment.right, 0.0)
    above = max(segment.base - box[3], box[1] - segment.base, 0.0)
    return across + _FURTHER_ABOVE * above
