"""Reads the text of a paragraph of Word: what its reader sees when all proposals are accepted."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from knowledge.documents.office.docx_styles import is_typeface_of_code
from knowledge.documents.office.zipped_xml import (
    find_all,
    find_child,
    get_attribute,
    local_name,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_DELETED = frozenset({"del", "moveFrom"})
_LEFT_OUT = frozenset({"pPr", "rPr", "instrText", "delText", "Fallback", "sdtPr", "sdtEndPr"})
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_NOTES = {"footnoteReference": "footnote", "endnoteReference": "endnote"}
_OFF = frozenset({"0", "false", "off", "none"})


@dataclass(slots=True)
class Paragraph:
    """A paragraph; `text` is one line with code in backticks, `raw` keeps spaces and breaks.

    `notes` name footnotes; `deleted` and `hidden` count passages that were left out.
    """

    text: str = ""
    raw: str = ""
    is_bold: bool = False
    is_code: bool = False
    notes: list[str] = field(default_factory=list)
    deleted: int = 0
    hidden: int = 0


@dataclass(slots=True)
class _Run:
    """Text of one typeface."""

    text: str
    is_code: bool
    is_bold: bool


def walk_body(parent: "Element | None", *, inside_tables: bool = False) -> "Iterator[Element]":
    """Yield the paragraphs and tables of a body or a cell in order, also those in controls.

    Text boxes follow the paragraph that they are anchored at. With `inside_tables` a table is
    replaced by its paragraphs.
    """
    waiting = [parent] if parent is not None else []
    while waiting:
        element = waiting.pop()
        name = local_name(element.tag)
        if name == "p" and element is not parent:
            yield element
            waiting.extend(reversed(list(_text_boxes(element))))
        elif name == "tbl" and element is not parent and not inside_tables:
            yield element
        elif name not in _LEFT_OUT and name not in _DELETED:
            waiting.extend(reversed(list(element)))


def read_paragraph(element: "Element") -> Paragraph:
    """Return what a paragraph shows."""
    paragraph = Paragraph()
    runs: list[_Run] = []
    waiting: list[Element] = list(reversed(list(element)))
    while waiting:
        found = waiting.pop()
        name = local_name(found.tag)
        if name in _DELETED:
            paragraph.deleted += any(True for _ in find_all(found, "delText"))
        elif name == "r":
            _read_run(found, paragraph, runs)
        elif name not in _LEFT_OUT:
            waiting.extend(reversed(list(found)))
    visible = [run for run in runs if run.text.strip()]
    paragraph.is_bold = bool(visible) and all(run.is_bold for run in visible)
    paragraph.is_code = bool(visible) and all(run.is_code for run in visible)
    paragraph.raw = "".join(run.text for run in runs)
    paragraph.text = " ".join(_join(runs, mark_code=not paragraph.is_code).split())
    return paragraph


def _text_boxes(paragraph: "Element") -> "Iterator[Element]":
    waiting = list(reversed(list(paragraph)))
    while waiting:
        element = waiting.pop()
        name = local_name(element.tag)
        if name == "txbxContent":
            yield element
        elif name not in _LEFT_OUT and name not in _DELETED:
            waiting.extend(reversed(list(element)))


def _read_run(run: "Element", paragraph: Paragraph, runs: list[_Run]) -> None:
    properties = find_child(run, "rPr")
    if _is_on(properties, "vanish"):
        paragraph.hidden += 1
        return
    parts: list[str] = []
    for child in run:
        name = local_name(child.tag)
        if name == "t":
            parts.append(child.text or "")
        elif name in _SIGNS:
            parts.append(_SIGNS[name])
        elif name in _NOTES:
            paragraph.notes.append(f"{_NOTES[name]} {get_attribute(child, 'id')}")
    if parts:
        is_code = is_typeface_of_code(properties)
        runs.append(_Run("".join(parts), is_code, _is_on(properties, "b")))


def _is_on(properties: "Element | None", name: str) -> bool:
    found = find_child(properties, name)
    return found is not None and (get_attribute(found, "val") or "true").lower() not in _OFF


def _join(runs: list[_Run], *, mark_code: bool) -> str:
    """Return the text of runs, each stretch of code in backticks."""
    text = ""
    code = ""
    for run in [*runs, _Run("", False, False)]:
        if run.is_code and mark_code:
            code += run.text
            continue
        text += _mark(code) + run.text
        code = ""
    return text


def _mark(code: str) -> str:
    bare = code.strip()
    if not bare or "`" in bare:
        return code
    start = code.index(bare)
    return f"{code[:start]}`{bare}`{code[start + len(bare) :]}"
