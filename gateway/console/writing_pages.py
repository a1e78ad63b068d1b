"""The pages that show a document, and on which editors write their own documents."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Protocol

import structlog
from fastapi import Query, Request, Response

from gateway.console.access import (
    Assistant,
    ConsoleRefusedError,
    ConsoleRole,
    NotSavedError,
    fields_of,
    require,
    user_of,
)
from gateway.console.frame import ConsolePart, Frame, SentForm, lead, receive
from gateway.port import CatalogSelection, DocumentWriter, SearchableLibrary
from records.gaps import WRITING, Gap, GapFinder

log = structlog.get_logger("gateway")

FOLDER = "pages"
LONGEST_TITLE, LONGEST_TEXT = 200, 100_000
LONGEST_NAME = 60
Text = Annotated[str, Query(max_length=2_000)]
_APART = re.compile(r"[\W_]+")


class WrittenFiles(Protocol):
    """Reads the files that were written for an assistant."""

    def read_file(self, assistant: Assistant, name: str) -> str | None:
        """Return the text of a file; None if there is none."""
        ...


class WritingPages(ConsolePart):
    """Shows documents, and stores those that editors write as files of the assistant."""

    def __init__(
        self,
        frame: Frame,
        catalog: DocumentWriter,
        library: SearchableLibrary,
        files: WrittenFiles,
        gaps: GapFinder | None,
    ) -> None:
        self._frame = frame
        self._catalog = catalog
        self._library = library
        self._files = files
        self._gaps = gaps

    @require(ConsoleRole.EDITOR, get="document")
    async def show(
        self,
        request: Request,
        tenant: Text,
        assistant: Text,
        id: Text,  # noqa: A002 - as the address has it
    ) -> Response:
        """Show the text of a document as stored in the index."""
        name = (tenant, assistant)
        entries, _ = await self._catalog.find(*name, CatalogSelection(ids=(id,)), limit=1)
        if not entries:
            raise self._frame.missing()
        entry = entries[0]
        document = await self._library.read(*name, id, groups=entry.groups)
        return self._frame.show(
            request,
            "document.html",
            named=fields_of(name),
            document=entry,
            text=document.text if document else "",
            is_cut=document is not None and document.is_cut,
            file=entry.source if self._read_own(name, entry.source) else "",
        )

    @require(ConsoleRole.EDITOR, get="documents/write")
    async def write(
        self,
        request: Request,
        tenant: Text = "",
        assistant: Text = "",
        title: Text = "",
        gap: Text = "",
        file: Text = "",
    ) -> Response:
        """Show the form for a new page, optionally for a gap, or for the page in a file."""
        name = user_of(request).choose(tenant, assistant)
        written = self._read_own(name, file) or ""
        heading, _, text = written.partition("\n")
        fields = {
            "title": heading.removeprefix("# ").strip() or title,
            "text": text.strip(),
            "gap": gap,
            "file": file if written else "",
        }
        return await self._show_form(request, name, fields)

    @require(ConsoleRole.EDITOR, post="documents/write")
    async def save(self, request: Request) -> Response:
        """Store a page, ingest it, and redirect to its gap or to the page."""
        form = await receive(request, ConsoleRole.EDITOR)
        try:
            file = await self._save(form)
        except ConsoleRefusedError as refusal:
            return await self._show_form(request, form.assistant, form.fields, refusal)
        log.warning("page_written", file=file, person=user_of(request).identity.shown)
        gap = await self._find_gap(form.assistant, form.read("gap"))
        if self._gaps is None or gap is None:
            return lead("documents", form.assistant, find=form.read("title"), said="written")
        mark = partial(self._gaps.set_state, form.assistant, gap.id, WRITING)
        await self._frame.query(lambda _: mark())
        return lead("gap", form.assistant, id=gap.id, said="ask")

    async def _save(self, form: SentForm) -> str:
        """Write the file of a form and ingest it; return its name."""
        title = " ".join(form.read("title", most=LONGEST_TITLE).split())
        text = form.read("text", most=LONGEST_TEXT)
        if not title or not text:
            raise NotSavedError("Enter both a title and a text.")
        file = find_name(form.read("file", most=2_000))
        if not self._read_own(form.assistant, file):
            file = f"{FOLDER}/{name_file(title)}"
            if self._read_own(form.assistant, file):
                raise NotSavedError(
                    "A page with this title already exists. Choose another title, or change "
                    "that page."
                )
        data = f"# {title}\n\n{text}\n".encode()
        result = await self._catalog.write(*form.assistant, file, data)
        reasons = [reason for _, reason in result.failures]
        if result.refused or not result.written + result.unchanged:
            why = result.refused or "; ".join(reasons) or "the text has no readable content"
            raise ConsoleRefusedError(400, "The page could not be read", why)
        return file

    async def _show_form(
        self,
        request: Request,
        name: Assistant,
        fields: Mapping[str, str],
        refusal: ConsoleRefusedError | None = None,
    ) -> Response:
        gap = await self._find_gap(name, fields.get("gap", ""))
        return self._frame.show(
            request,
            "write.html",
            refusal=refusal,
            named=fields_of(name),
            gap=gap,
            written_title=fields.get("title") or (gap.title if gap else ""),
            text=fields.get("text", ""),
            file=fields.get("file", ""),
            longest_title=LONGEST_TITLE,
            longest_text=LONGEST_TEXT,
        )

    async def _find_gap(self, name: Assistant, gap_id: str) -> Gap | None:
        if self._gaps is None or not gap_id:
            return None
        return next((gap for gap in await self._gaps.find(name) if gap.id == gap_id), None)

    def _read_own(self, name: Assistant, source: str) -> str | None:
        """Return the text of a page that was written here; None for any other source."""
        file = find_name(source)
        return self._files.read_file(name, file) if file else None


def find_name(source: str) -> str:
    """Return the file name of a page that was written here; empty for any other source."""
    folder, _, name = source.rpartition("/")
    is_own = folder.rpartition("/")[2] == FOLDER and name.endswith(".md")
    return f"{FOLDER}/{name}" if is_own else ""


def name_file(title: str) -> str:
    """Return a file name for a title, consisting of its letters and digits."""
    name = _APART.sub("-", title.casefold()).strip("-")[:LONGEST_NAME].strip("-")
    return f"{name or 'page'}.md"
