"""Reads values entered into the forms of a PDF and annotations on its pages."""

import ctypes
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from knowledge.documents.page import LeftOutCounts
from knowledge.documents.pdf.page_objects import is_hidden, shift_page
from knowledge.documents.pdf.page_text import Segment

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

COMMENT = ("comment", "comments on pages are not part of the text")
HIDDEN = ("hidden word", "not visible on the page")
_MOST_ANNOTATIONS = 5_000
_LONGEST = 20_000
_SIZE = 10.0
_FURTHER_ABOVE = 3.0
"""How much nearer a label beside a field is than one above it."""


def take_annotations(
    document: "PdfDocument", page: "PdfPage", segments: list[Segment], left_out: LeftOutCounts
) -> list[Segment]:
    """Return the values of form fields and texts on a page; comments and hidden values are counted.

    A value is on the same line as the text beside its field.
    """
    from pypdfium2 import raw

    taken: list[Segment] = []
    for at in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page, at)
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        shown = ""
        if kind == raw.FPDF_ANNOT_WIDGET and document.formenv is not None:
            shown = _read_field(raw, document.formenv, annotation)
        elif kind == raw.FPDF_ANNOT_FREETEXT:
            shown = _read_contents(raw, annotation)
        elif kind not in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_WIDGET):
            left_out.add(*COMMENT, count=bool(_read_contents(raw, annotation)))
        if is_hidden(raw, annotation):
            left_out.add(*HIDDEN, count=len(shown.split()))
        elif shown:
            taken += _place(raw, page, annotation, shown, segments)
        raw.FPDFPage_CloseAnnot(annotation)
    return taken


def _read_field(raw: Any, form: Any, annotation: Any) -> str:
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        return "[x]" if raw.FPDFAnnot_IsChecked(form, annotation) else "[ ]"
    if kind in (
        raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX
    ):  # fmt: skip
        return _read_text(
            lambda buffer, size: raw.FPDFAnnot_GetFormFieldValue(form, annotation, buffer, size)
        )
    return ""


def _read_contents(raw: Any, annotation: Any) -> str:
    return _read_text(
        lambda buffer, size: raw.FPDFAnnot_GetStringValue(annotation, b"Contents", buffer, size)
    )


def _read_text(fill: Callable[[Any, int], int]) -> str:
    size = min(fill(None, 0), 2 * _LONGEST)
    buffer = ctypes.create_string_buffer(max(size, 2))
    fill(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[:size].decode("utf-16-le", "replace").rstrip("\0").strip()


def _place(
    raw: Any, page: "PdfPage", annotation: Any, text: str, segments: list[Segment]
) -> Iterator[Segment]:
    box = raw.FS_RECTF()
    raw.FPDFAnnot_GetRect(annotation, box)
    shown = shift_page(page).on_rect(box.left, box.bottom, box.right, box.top)
    box.left, box.bottom, box.right, box.top = shown
    beside = [segment for segment in segments if box.bottom <= segment.base <= box.top]
    nearest = min(beside, key=lambda one: abs(one.base - box.bottom), default=None)
    label = min(segments, key=lambda one: _find_distance(one, box), default=None)
    lines = text.splitlines()
    size = _SIZE if nearest is None else nearest.size
    first = box.top - size if nearest is None or len(lines) > 1 else nearest.base
    for at, line in enumerate(lines):
        base = first - at * 1.2 * size
        yield Segment(
            line, box.left, box.right, base, size, tag=None if label is None else label.tag
        )


def _find_distance(segment: Segment, box: Any) -> float:
    """Return how far a text is from a field, in points; text on the same line is nearer."""
    across: float = max(segment.left - box.right, box.left - segment.right, 0.0)
    above: float = max(segment.base - box.top, box.bottom - segment.base, 0.0)
    return across + _FURTHER_ABOVE * above
