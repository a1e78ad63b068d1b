"""Editors look at documents, and write pages that close gaps."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from gateway.console.access import ConsoleRole
from gateway.console.frame import Frame
from gateway.console.writing_pages import WritingPages
from gateway.port import CatalogEntry, CatalogUpload
from knowledge.library.shown import LibraryDocument, LibraryFindings
from records.gaps import WRITING, GapFinder
from records.record import Record
from records.store import RecordStore
from tests.support.console import (
    DESK,
    HOSTILE,
    FakeSessions,
    browser_of,
    make_console,
    open_records,
    owner_of,
    post,
    send_form,
    sign_in,
)
from tests.support.http_server import FakeCatalog

REFUSED = Record("acme", "desk", "c1", "m1", 1_000.0, 1_002.0, question="Is there parental leave?",
                 outcome="refused", reason="insufficient_context", language="en")  # fmt: skip
FORM = "/console/documents/write"
PAGE = {"title": "Parental leave", "text": "It lasts **14 months**."}


@dataclass
class FakeShelf(FakeCatalog):
    """Files that were written, and their documents."""

    files: dict[str, str] = field(default_factory=dict)
    result: CatalogUpload = field(default_factory=lambda: CatalogUpload(written=1))

    def __post_init__(self) -> None:
        super().__init__()

    async def write(self, tenant: str, assistant: str, name: str, data: bytes) -> CatalogUpload:
        self.files[name] = data.decode()
        return self.result

    def read_file(self, assistant: tuple[str, str], name: str) -> str | None:
        return self.files.get(name)

    async def read(
        self, tenant: str, assistant: str, document_id: str, *, groups: Sequence[str]
    ) -> LibraryDocument | None:
        return LibraryDocument(id=document_id, title="Leave", text=f"30 days {HOSTILE} {groups}")

    async def search(
        self, tenant: str, assistant: str, query: str, *, groups: Sequence[str], limit: int
    ) -> LibraryFindings:
        return LibraryFindings()

    async def browse(
        self, tenant: str, assistant: str, *, groups: Sequence[str], after: str, limit: int
    ) -> Sequence[LibraryDocument]:
        return ()


async def embed(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0, 0.0] for _ in texts]


@dataclass
class Editor:
    client: httpx.AsyncClient
    shelf: FakeShelf
    gaps: GapFinder
    pages: WritingPages


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    with open_records(tmp_path, REFUSED) as opened:
        yield opened


@pytest.fixture
async def editor(store: RecordStore) -> AsyncIterator[Editor]:
    shelf = FakeShelf()
    gaps = GapFinder(store, embed, "equal", ["one", "two"], clock=lambda: 2_000.0)
    pages = WritingPages(Frame(store, 90.0), shelf, shelf, shelf, gaps)
    async with owner_of(make_console(store, parts=[pages])) as client:
        yield Editor(client, shelf, gaps, pages)


async def test_a_page_for_a_gap_is_read_and_leads_back_to_the_gap(editor: Editor) -> None:
    [gap] = await editor.gaps.find(DESK)
    form = await editor.client.get(f"{FORM}?tenant=acme&assistant=desk&gap={gap.id}")

    sent = await send_form(editor.client, FORM, FORM, **PAGE, gap=gap.id)

    assert "Is there parental leave?" in form.text
    assert editor.shelf.files == {
        "pages/parental-leave.md": "# Parental leave\n\nIt lasts **14 months**.\n"
    }
    assert sent.headers["location"].startswith("/console/gap?")
    assert (await editor.gaps.find(DESK))[0].state == WRITING


async def test_a_page_that_was_written_here_is_changed_and_never_replaced_by_another(
    editor: Editor,
) -> None:
    await send_form(editor.client, FORM, FORM, **PAGE)
    again = await send_form(editor.client, FORM, FORM, **{**PAGE, "text": "Another page."})
    form = await editor.client.get(f"{FORM}?file=uploads/pages/parental-leave.md")
    changed = await send_form(
        editor.client, FORM, FORM, title="Leave of parents", text="New.",
        file="uploads/pages/parental-leave.md",
    )  # fmt: skip

    assert again.status_code == 400
    assert "Another page." in again.text
    assert "It lasts **14 months**." in form.text
    assert changed.status_code == 303
    assert list(editor.shelf.files.values()) == ["# Leave of parents\n\nNew.\n"]


@pytest.mark.parametrize(
    ("fields", "result", "says"),
    [
        ({"title": " "}, CatalogUpload(written=1), "Enter both a title and a text"),
        ({}, CatalogUpload(failures=(("a.md", "the disk is full"),)), "the disk is full"),
    ],
)
async def test_after_an_error_the_text_is_still_in_the_form(
    editor: Editor, fields: dict[str, str], result: CatalogUpload, says: str
) -> None:
    editor.shelf.result = result

    refused = await send_form(editor.client, FORM, FORM, **{**PAGE, **fields})

    assert refused.status_code == 400
    assert says in refused.text
    assert "It lasts **14 months**." in refused.text


async def test_a_document_is_shown_as_text_with_the_groups_that_may_read_it(editor: Editor) -> None:
    editor.shelf.kept[DESK] = {"d1": CatalogEntry("d1", HOSTILE, "d1.md", "en", 1, groups=("hr",))}

    shown = await editor.client.get("/console/document?tenant=acme&assistant=desk&id=d1")
    missing = await editor.client.get("/console/document?tenant=acme&assistant=desk&id=d2")

    assert "30 days" in shown.text
    assert "read by <bdi>hr</bdi>" in shown.text
    assert "<script" not in shown.text
    assert missing.status_code == 404


async def test_a_viewer_neither_reads_nor_writes_documents(editor: Editor) -> None:
    sessions = FakeSessions()
    roles = {DESK: {"ada": ConsoleRole.VIEWER}}
    async with browser_of(make_console(None, sessions, roles=roles, parts=[editor.pages])) as one:
        await sign_in(one, sessions, "ada")
        named = {"tenant": "acme", "assistant": "desk"}
        statuses = [
            (await one.get(FORM)).status_code,
            (await one.get("/console/document", params={**named, "id": "d1"})).status_code,
            (await post(one, FORM, {**named, **PAGE})).status_code,
        ]

    assert statuses == [403, 403, 403]
    assert editor.shelf.files == {}
