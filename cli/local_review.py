"""A review in the terminal, in which local files become documents of the conversation."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from pydantic import JsonValue

from agents.review.cost_estimate import ReviewCost
from broker.keys import record_of
from deploy.assembly.gateways.documents import documents_of, make_attachments, make_catalog
from deploy.assembly.gateways.report_rendering import (
    Report,
    StoredReports,
    read_passage,
    render_report,
)
from deploy.assembly.model_choice import vendor_access
from deploy.assembly.models import estimate_review
from deploy.assembly.recording import make_conversations
from deploy.assembly.runtime import Runtime
from deploy.errors import CommandError
from envelope.question import Question
from gateway.conversations import Conversations
from gateway.desk import erase
from gateway.http.review_documents import (
    MOST_FOUND,
    NamedDocumentFinder,
    StoredAttachments,
)
from gateway.review_ports import DocumentEntry, DocumentRefusedError, ReportForm
from knowledge.documents.decoding import MAX_BYTES
from knowledge.documents.folder import FolderListing, make_sort_key, walk
from knowledge.sections import document_of
from memory.work_store import RedisWorkStore

_MOST_DOCUMENTS = 2 * MOST_FOUND
"""Maximum number of documents in the folders of a review."""


@dataclass(slots=True)
class LocalReview:
    """The documents of one review, by the names that the user typed."""

    runtime: Runtime
    question: Question
    groups: tuple[str, ...]
    attachments: StoredAttachments
    finder: NamedDocumentFinder
    reports: StoredReports
    conversations: Conversations
    files: dict[str, Path] = field(default_factory=dict)
    """The files that were read, by document id."""
    anchors: dict[str, str] = field(default_factory=dict)
    """The anchors of the passages in these files, by passage id."""
    skipped: list[str] = field(default_factory=list)
    """Files in a folder that were skipped because their format is not supported."""

    async def find(self, name: str, *, is_rule: bool = False) -> Sequence[DocumentEntry]:
        """Return the documents for a name: files on this machine or, if there are none, documents
        in the index.

        Every file of a supported format in a folder and its subfolders is a document; the documents
        are sorted by the numbers in their names. Raises `CommandError` for a file that is too large
        and for a folder that cannot be read completely, and the errors in `gateway.review_ports`.
        """
        path = Path(name)
        if await asyncio.to_thread(path.is_file):
            return (await self._attach_named(path, path.name),)
        if await asyncio.to_thread(path.is_dir):
            return await self._attach_folder(path)
        return await self.finder.find(self.question, name, self.groups, is_rule=is_rule)

    async def read_report(self, reply: Mapping[str, JsonValue]) -> Report | None:
        """Return the report that a reply refers to, or None."""
        report = reply.get("review_report")
        return await self.reports.read(self.question, report) if isinstance(report, dict) else None

    async def read_checklist(self, reply: Mapping[str, JsonValue]) -> bytes:
        """Return the checklist of a reply as JSON; raises `CommandError` if there is none."""
        checklist = reply.get("checklist")
        written = None
        if isinstance(checklist, dict):
            written = await self.reports.read_checklist(self.question, checklist)
        if written is None:
            raise CommandError("no checklist was written, because no rules were read")
        return written

    async def estimate(
        self, model: str, against: Sequence[DocumentEntry], documents: Sequence[DocumentEntry]
    ) -> ReviewCost:
        """Return the estimated cost of a review before it starts."""
        client = self.runtime.endpoint.client()
        access = vendor_access(self.runtime.settings)
        rules, own = (sum(entry.chunks for entry in group) for group in (against, documents))
        try:
            return await estimate_review(model, access, client, rules, own)
        finally:
            await client.aclose()

    def render(self, report: Report, form: ReportForm) -> bytes:
        """Return the file of a report, with links to the locations in the files on this machine."""
        return render_report(report, form, self._open_link)

    async def erase(self) -> None:
        """Erase the conversation together with its documents."""
        await erase(self.runtime.broker.eraser, self.conversations, self.question)

    async def _attach_folder(self, folder: Path) -> Sequence[DocumentEntry]:
        listing = await asyncio.to_thread(walk, folder)
        _refuse_incomplete(folder, listing)
        self.skipped += [str(place) for place, _ in (*listing.skipped, *listing.warnings)]
        files = sorted(listing.files, key=lambda item: make_sort_key(str(item.path)))
        by_id: dict[str, DocumentEntry] = {}
        for file in files:
            # An unread part of a law must not look like a part without requirements.
            entry = await self._attach_named(file.location, str(file.path))
            by_id[entry.id] = entry
        return tuple(by_id.values())

    async def _attach_named(self, path: Path, shown: str) -> DocumentEntry:
        try:
            return await self._attach(path)
        except DocumentRefusedError as error:
            raise CommandError(f"{shown}: {error}") from error

    async def _attach(self, path: Path) -> DocumentEntry:
        size = (await asyncio.to_thread(path.stat)).st_size
        if size > MAX_BYTES:
            raise CommandError(
                f"expected a file of at most {MAX_BYTES:,} bytes, found {size:,} in {path.name!r}"
            )
        data = await asyncio.to_thread(path.read_bytes)
        entry = await self.attachments.attach(self.question, path.name, data, self.groups)
        self.files[entry.id] = await asyncio.to_thread(path.resolve)
        self.anchors |= await self.attachments.list_anchors(self.question, entry.id)
        return entry

    def _open_link(self, link: str) -> str:
        """Return a URL that opens the file at the passage, or an empty string if the document is in
        the index.
        """
        passage = read_passage(link)
        path = self.files.get(document_of(passage))
        if path is None:
            return ""
        anchor = quote(self.anchors.get(passage, ""), safe="=")
        return f"{path.as_uri()}#{anchor}" if anchor else path.as_uri()


@asynccontextmanager
async def open_local_review(
    runtime: Runtime, question: Question, groups: Sequence[str]
) -> AsyncIterator[LocalReview]:
    """Provide the documents of a review that answers `question`."""
    settings, client = runtime.settings, runtime.endpoint.client()
    attachments = make_attachments(settings, client, most_documents=_MOST_DOCUMENTS)
    opened = documents_of(runtime)
    try:
        yield LocalReview(
            runtime,
            question,
            tuple(groups),
            attachments,
            NamedDocumentFinder(attachments, make_catalog(settings, runtime.broker, opened)),
            StoredReports(
                RedisWorkStore(
                    client, shards=settings.shards, record_of=record_of(settings.shards)
                ).get
            ),
            make_conversations(settings, runtime.broker, client),
        )
    finally:
        await attachments.close()
        if opened is not None:
            await opened.close()
        await client.aclose()


def _refuse_incomplete(folder: Path, listing: FolderListing) -> None:
    """Raise `CommandError` for a folder that contains a document which cannot be read."""
    name = str(folder)
    if listing.failures:
        place, reason = listing.failures[0]
        raise CommandError(f"the folder {name!r} cannot be read: {place}: {reason}")
    if listing.archives:
        raise CommandError(
            f"expected a folder of files, found the archive {str(listing.archives[0].path)!r} in "
            f"{name!r}: unpack it"
        )
    if not listing.files:
        raise CommandError(f"the folder {name!r} contains no documents")
    if len(listing.files) > MOST_FOUND:
        raise CommandError(
            f"expected a folder of at most {MOST_FOUND} documents, found {len(listing.files)} in "
            f"{name!r}: ingest it, or review against parts of it"
        )
