"""Reads Jupyter notebooks: cells of Markdown, and cells of code with the text of their output."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.markup import html, markdown
from knowledge.documents.page import Block, LeftOutCounts, Page, first_heading, make_code

_EXPECTED = "a Jupyter notebook"
_CONTROL_SEQUENCE = re.compile(r"\x1b\[[\d;]{0,40}[A-Za-z]")


def read(data: bytes, source: str) -> Page:
    """Return the page; graphical outputs are counted as left out."""
    try:
        notebook = orjson.loads(data)
        cells = notebook["cells"]
        language = notebook.get("metadata", {}).get("language_info", {}).get("name", "")
        left_out = LeftOutCounts()
        blocks = [block for cell in cells for block in _read_cell(cell, str(language), left_out)]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise WrongFormatError(f"expected {_EXPECTED}, found another format") from error
    return Page(source, first_heading(blocks), tuple(blocks), left_out=left_out.list())


def _read_cell(cell: dict[str, object], language: str, left_out: LeftOutCounts) -> Iterator[Block]:
    text = _join(cell["source"])
    if cell.get("cell_type") == "markdown":
        yield from (replace(block, anchor=None) for block in markdown.blocks_of(text))
    elif text.strip():
        yield make_code(text, language if cell.get("cell_type") == "code" else "")
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        yield from _read_output(output, left_out)


def _read_output(output: Mapping[str, Any], left_out: LeftOutCounts) -> Iterator[Block]:
    """Yield an output as it is displayed: Markdown or HTML instead of plain text, if possible."""
    shown = output.get("data", {})
    written = _join(output.get("text", shown.get("text/plain", "")))
    if output.get("output_type") == "error":
        written = _join(f"{output.get('ename')}: {output.get('evalue')}")
    page = html.read(_join(shown.get("text/html", "")).encode(), "")
    left_out.take(page.left_out)
    rich = markdown.blocks_of(_join(shown.get("text/markdown", ""))) or page.blocks
    if any(kind.startswith("image/") for kind in shown):
        left_out.add("picture", "pictures in notebooks are not read")
    elif rich:
        yield from (replace(block, anchor=None) for block in rich)
    elif written.strip():
        yield make_code(written.rstrip())


def _join(text: object) -> str:
    """Return text that a notebook stores as a string or as a list of lines, without colours."""
    joined = "".join(text) if isinstance(text, list) else str(text)
    return clean_text(_CONTROL_SEQUENCE.sub("", joined))
