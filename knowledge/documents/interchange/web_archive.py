"""Reads a web page saved with its files (MHTML, RFC 2557), as browsers and Word write it."""

from dataclasses import replace

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.interchange.mail_parsing import list_content
from knowledge.documents.markup import html
from knowledge.documents.page import LeftOut, Page


def read(data: bytes, source: str) -> Page:
    """Return the page; raise `WrongFormatError` if the archive contains none."""
    texts = [part.text for part in list_content(data) if part.kind == "html"]
    if not texts:
        raise WrongFormatError("expected a web archive with a page in HTML, found none")
    page = html.read(texts[0].encode(), source)
    frames = len(texts) - 1
    frame = LeftOut("frame", frames, "only the main page of a web archive is read")
    return replace(page, left_out=(*page.left_out, frame)) if frames else page
