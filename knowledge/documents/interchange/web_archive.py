"""Reads a web page saved with its files (MHTML, RFC 2557), as browsers and Word write it."""

from dataclasses import replace

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.interchange.mail_parsing import list_content
from knowledge.documents.markup import html
from knowledge.documents.page import LeftOut, Page


def read(data: bytes, source: str) -> Page:
    """Return the page, styled by the style sheets in the archive.

    Raises `WrongFormatError` if the archive contains no page.
    """
    parts = list_content(data)
    texts = [part.text for part in parts if part.kind == "html"]
    files = {part.location: part.data for part in parts if part.kind == "file"}
    if not texts:
        raise WrongFormatError("expected a web archive with a page in HTML, found none")
    page = html.read(texts[0].encode(), source, files.get)
    frames = len(texts) - 1
    frame = LeftOut("frame", frames, "only the main page of a web archive is read")
    return replace(page, left_out=(*page.left_out, frame)) if frames else page
