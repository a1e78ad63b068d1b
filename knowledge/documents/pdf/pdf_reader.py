"""Reads PDF files by their layout: headings, paragraphs, tables and code, with an anchor for each
page.

PDFium extracts the text with positions, sizes and typefaces. The text of scanned pages is
recognised if the extra `ocr` is installed; if not, these pages are listed.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from pypdfium2 import PdfDocument, PdfiumError, PdfPage, PdfTextPage, raw

from knowledge.documents.decoding import MAX_BYTES, clean_text
from knowledge.documents.errors import PicturesError, SkippedError, TooLargeError, WrongFormatError
from knowledge.documents.office.zipped_xml import LOCKED, choose_title
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page, first_heading
from knowledge.documents.pdf.annotations import HIDDEN, take_annotations
from knowledge.documents.pdf.page_furniture import remove_furniture
from knowledge.documents.pdf.page_layout import LaidOutPage, lay_out
from knowledge.documents.pdf.page_pictures import PagePicture, insert_pictures, take_pictures
from knowledge.documents.pdf.segments import take_text
from knowledge.documents.pdf.structure import Outline, bare, write_blocks
from knowledge.documents.pdf.text_lines import Line, settle_hyphens
from knowledge.documents.pdf.turned_cells import place_turned
from knowledge.documents.pictures import MOST_PICTURES
from knowledge.documents.recognition import Recognise, load_recogniser, recognise_page

MOST_PAGES = 10_000
_MOST_CHARACTERS = 32_000_000
_MOST_NAMED = 10
_UNREADABLE = (
    "unreadable letter", "the file states no meaning; in words, each is shown as \ufffd",
)  # fmt: skip
_ORDER = ("reading order", "unclear: texts beside each other are not in rows")
_NO_TEXT = "a picture, or mostly unreadable letters"
_ENCRYPTED = (
    "it is encrypted for certain people or programs: save it without protection and ingest it again"
)
_DEEPEST_OUTLINE = 6
_LARGER_TITLE = 1.2
_SIGNATURES = {
    b"PK\x03\x04": "a zip archive",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8": "a JPEG image",
}


class _PageReader:
    """Reads the pages of a document, and counts those that it leaves out.

    `recognised` contains the texts of pages that were recognised, by page number, `pictures` the
    numbers of the others without text that can be read; `reason` states why. `shown` are the
    figures on pages with text.
    """

    def __init__(self, document: PdfDocument, recognise: Recognise | None) -> None:
        self.pictures: list[int] = []
        self.recognised: dict[int, str] = {}
        self.shown: list[PagePicture] = []
        self.reason = ""
        self.left_out = LeftOutCounts()
        self._recognise = recognise
        self._document = document

    def read(self) -> Iterator[LaidOutPage]:
        """Yield the pages with text; repeated pages are left out."""
        seen: set[str] = set()
        left = _MOST_CHARACTERS
        for number in range(1, len(self._document) + 1):
            try:
                page = self._document[number - 1]
                text_page = page.get_textpage()
                whole = text_page.get_text_bounded()
            except PdfiumError:
                self.left_out.add("page", "damaged", name=f"page {number}")
                continue
            # Forms with the same labels have values of their own.
            if whole in seen and whole.strip() and self._document.formenv is None:
                self.left_out.add("page", "the same as an earlier one", name=f"page {number}")
                continue
            seen.add(whole)
            left -= len(whole)
            if left < 0:
                raise TooLargeError(
                    f"a document can have at most {_MOST_CHARACTERS} characters of text"
                )
            with self.left_out.contain("page", f"page {number}"):
                yield from list(self._read_page(page, text_page, number))
            text_page.close()
            page.close()

    def _read_page(
        self, page: PdfPage, text_page: PdfTextPage, number: int
    ) -> Iterator[LaidOutPage]:
        taken = take_text(page, text_page)
        self.left_out.add(*HIDDEN, count=taken[0].hidden_words)
        with self.left_out.contain("annotation list", f"page {number}"):
            taken[0].segments += take_annotations(
                self._document, number, page, taken[0].segments, self.left_out
            )
        letters = sum(len(one.text) for text in taken for one in text.segments)
        unreadable = taken[0].unreadable_letters
        if unreadable > letters or (taken[0].has_pictures and not letters):
            self._read_picture(page, number)
            if number in self.recognised:
                return
        self.left_out.add(*_UNREADABLE, count=unreadable)
        with self.left_out.contain("table structure", f"page {number}"):
            place_turned(taken)
        for text in taken if letters else ():
            # In the order of the file, no text is mixed with that of another column.
            lines = [Line([one], page=number) for one in text.segments if one.text.strip()]
            laid_out = LaidOutPage(number, text, lines)
            with self.left_out.contain("page layout", f"page {number}"):
                laid_out = lay_out(number, text)
                if laid_out.is_unclear:
                    self.left_out.add(*_ORDER, name=f"page {number}")
            yield laid_out
        if letters and taken[0].has_pictures and len(self.shown) < MOST_PICTURES:
            with self.left_out.contain("page picture", f"page {number}"):
                self.shown += take_pictures(page, number, self.left_out)

    def _read_picture(self, page: PdfPage, number: int) -> None:
        recognise = load_recogniser() if self._recognise is None else self._recognise
        if isinstance(recognise, str):
            text, self.reason = "", recognise
        else:
            text, self.reason = recognise_page(page, recognise)
        if text:
            self.recognised[number] = text
        else:
            self.pictures.append(number)
            self.left_out.add("page", f"{_NO_TEXT}; {self.reason}", name=f"page {number}")


def read(data: bytes, source: str, recognise: Recognise | None = None) -> Page:
    """Return the page; raises `SkippedError` if the file is locked, and `WrongFormatError` if it is
    damaged or not a PDF.

    `recognise` recognises the text of pictures; by default the extra `ocr` is used, if it is
    installed. Raises `PicturesError` if all pages are pictures without recognised text.
    """
    if len(data) > MAX_BYTES:
        raise TooLargeError(
            f"a document can have at most {MAX_BYTES} bytes; this one has {len(data)}"
        )
    _refuse_other_kinds(data)
    try:
        document = PdfDocument(data)
        document.init_forms()
    except PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            is_password = error.err_code == raw.FPDF_ERR_PASSWORD
            raise SkippedError(LOCKED if is_password else _ENCRYPTED) from error
        raise WrongFormatError(f"the PDF is damaged: {error!s:.120}") from error
    try:
        return _read_document(document, source, recognise)
    finally:
        document.close()


def _refuse_other_kinds(data: bytes) -> None:
    if b"%PDF-" in data[:1024]:
        return
    kinds = (kind for signature, kind in _SIGNATURES.items() if data.startswith(signature))
    raise WrongFormatError(f"expected a PDF, found {next(kinds, 'something else')}")


def _read_document(document: PdfDocument, source: str, recognise: Recognise | None) -> Page:
    if len(document) > MOST_PAGES:
        raise TooLargeError(
            f"a document can have at most {MOST_PAGES} pages; this one has {len(document)}"
        )
    if not len(document):
        raise WrongFormatError("the PDF is damaged: it has no pages")
    reading = _PageReader(document, recognise)
    pages = list(reading.read())
    left_out = remove_furniture(pages)
    left_out.take(reading.left_out.list())
    laid_out = settle_hyphens(list(write_blocks(pages, _read_outline(document), left_out)))
    shown = insert_pictures(list(laid_out), pages, reading.shown)
    recognised = (
        Block(BlockKind.TEXT, text, anchor=f"page={number}")
        for number, text in reading.recognised.items()
    )
    blocks = tuple(sorted((*shown, *recognised), key=_find_page))
    if not blocks and reading.pictures:
        raise PicturesError(
            f"its pages have mostly unreadable letters or are pictures ({len(reading.pictures)} of "
            f"{len(document)}); {reading.reason}"
        )
    note = (
        f"the text of {_name_pages(list(reading.recognised))} was recognised and may have mistakes"
    )
    stated = choose_title(clean_text(document.get_metadata_value("Title")))
    return Page(
        source,
        stated or _find_title(blocks, pages),
        blocks,
        warnings=(note,) if reading.recognised else (),
        left_out=left_out.list(),
    )


def _find_title(blocks: tuple[Block, ...], pages: Sequence[LaidOutPage]) -> str:
    """Return the first heading if it is also the highest one, or a larger line on its page.

    Without the larger line, outlines that name the first page "Front cover" would determine the
    title.
    """
    highest = first_heading(blocks)
    first = next((block for block in blocks if block.level), None)
    if first is None or first.text != highest:
        return ""
    lines = next((page.lines for page in pages if f"page={page.number}" == first.anchor), [])
    own = next((line.size for line in lines if highest.startswith(line.text)), None)
    largest = max((line.size for line in lines if len(bare(line.text)) > 1), default=0.0)
    if own is None or largest < _LARGER_TITLE * own:
        return highest
    at = next(at for at, line in enumerate(lines) if line.size == largest)
    return " ".join(line.text for line in takewhile(lambda line: line.size == largest, lines[at:]))


def _find_page(block: Block) -> int:
    return int((block.anchor or "page=0").removeprefix("page="))


def _name_pages(numbers: Sequence[int]) -> str:
    named = ", ".join(map(str, numbers[:_MOST_NAMED]))
    left = len(numbers) - _MOST_NAMED
    return f"page{'s'[: len(numbers) > 1]} {named}{f' and {left} more' if left > 0 else ''}"


def _read_outline(document: PdfDocument) -> Outline:
    """Return the outline headings of each page."""
    outline: dict[int, dict[str, int]] = {}
    try:
        for entry in document.get_toc(max_depth=_DEEPEST_OUTLINE):
            target = entry.get_dest()
            title = bare(clean_text(entry.get_title()))
            page = target.get_index() if target is not None else None
            if page is not None and title:
                level = min(entry.level + 1, _DEEPEST_OUTLINE)
                outline.setdefault(page + 1, {})[title] = level
    except (PdfiumError, RecursionError, ValueError):
        return {}
    return outline
