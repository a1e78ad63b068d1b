"""Finds the reader of a format by the file suffix, for files and for embedded files."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath

from knowledge.documents.errors import ReadingError, SkippedError
from knowledge.documents.page import Block, LeftOutCounts, Page

Reader = Callable[[bytes, str], Page]

READERS: Mapping[str, str] = {
    ".md": "markup.markdown",
    ".markdown": "markup.markdown",
    ".mdx": "markup.markdown",
    ".rst": "markup.restructuredtext",
    ".adoc": "markup.asciidoc",
    ".asciidoc": "markup.asciidoc",
    ".html": "markup.html",
    ".htm": "markup.html",
    ".xhtml": "markup.html",
    ".aspx": "markup.html",
    ".mht": "interchange.web_archive",
    ".mhtml": "interchange.web_archive",
    ".ipynb": "interchange.notebook",
    ".txt": "plain_text",
    ".text": "plain_text",
    ".pdf": "pdf.pdf_reader",
    ".docx": "office.docx",
    ".docm": "office.docx",
    ".xlsx": "office.xlsx",
    ".xlsm": "office.xlsx",
    ".xls": "office.xls",
    ".odt": "office.opendocument",
    ".ods": "office.opendocument",
    ".odp": "office.opendocument",
    ".fodt": "office.opendocument",
    ".fods": "office.opendocument",
    ".fodp": "office.opendocument",
    ".pptx": "office.pptx",
    ".pptm": "office.pptx",
    ".epub": "office.epub",
    ".csv": "interchange.delimited",
    ".tsv": "interchange.delimited",
    ".eml": "interchange.mail",
    ".mbox": "interchange.mail",
    ".msg": "interchange.msg",
}
"""The module that reads each format; it is imported on first use, in the reader process."""

DEEPEST_FILES = 2
"""Maximum depth of embedded files, such as a workbook in a document in a message."""
_depth: ContextVar[int] = ContextVar("depth", default=0)


@cache
def find_reader(module: str) -> Reader:
    """Return the reader of a module of this package."""
    reader: Reader = import_module(f"knowledge.documents.{module}").read
    return reader


def read_inner_file(
    data: bytes,
    name: str,
    left_out: LeftOutCounts,
    *,
    what: str = "embedded file",
    levels: int = 2,
) -> tuple[Block, ...]:
    """Return the blocks of a file embedded in another file, with headings `levels` lower.

    Unreadable content is counted as left out.
    """
    module = READERS.get(PurePosixPath(name).suffix.lower())
    before = _depth.set(_depth.get() + 1)
    try:
        if module is None:
            raise SkippedError("the format is not read inside other files")
        if _depth.get() > DEEPEST_FILES:
            raise SkippedError(f"embedded files are read at most {DEEPEST_FILES} levels deep")
        page = find_reader(module)(data, name)
    except ReadingError as error:
        left_out.add(what, str(error), name=name)
        return ()
    finally:
        _depth.reset(before)
    if not page.blocks and not page.left_out:
        left_out.add(what, "it contains no text", name=name)
    left_out.take(page.left_out)
    # Places in the inner file are not places in the outer one.
    return tuple(
        replace(block, anchor=None, level=min(block.level + levels, 6) if block.level else 0)
        for block in page.blocks
    )
