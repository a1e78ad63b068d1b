"""Ingests documents into the index: reads, describes, splits, embeds, and writes them.

Files are read ahead, one in each reader process; in the meantime, the results are described,
embedded and written in the order of the files.

Only changed documents are read again. The content hash of a document covers its bytes, its
location, and the versions of all steps that process it. Each document is written completely or not
at all, soon after it was read. After a kill, the next ingestion reads only the documents that were
not written. Documents that no longer exist in an ingested path are removed from the index; for
unreadable documents, the last version is kept.
"""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Protocol

from knowledge import chunking, composing
from knowledge.document import Document
from knowledge.document_writer import DocumentWriter, Vectors, measure
from knowledge.documents import formats, furniture
from knowledge.documents.errors import (
    NoDocumentError,
    NoTextError,
    ReadingError,
    SkippedError,
    explain_failure,
)
from knowledge.documents.folder import FolderListing, FoundFile
from knowledge.documents.formats import Item
from knowledge.documents.front_matter import find_stated_language, make_sample
from knowledge.documents.location import Location
from knowledge.documents.page import Page, write_count
from knowledge.documents.snippets import load_beside, read_with_snippets
from knowledge.documents.survey import Survey
from knowledge.errors import ConnectorError
from knowledge.index.listing import ListedDocument
from knowledge.index.overlap import SurveySource, find_owned, survey_part
from knowledge.index.page_kind import recognise_kind
from knowledge.index.port import WrittenDocument
from knowledge.ingestion_ledger import Ledger, ReadingAllowance
from knowledge.ingestion_report import IngestionResult, Report
from knowledge.isolation.preparation import Preparation
from knowledge.isolation.reader_pool import ReaderPool
from knowledge.isolation.reader_process import ReaderProcess
from knowledge.ordered_tasks import OrderedTasks, Room, open_tasks
from knowledge.rule_descriptions import Description

READING_VERSION = "17"
HASH_SEPARATOR = "-"
"""Separator between content hash and location hash."""
AHEAD_PER_READER = 4
"""The number of documents, and file ends, per reader that are read or wait for their turn."""
AHEAD_PER_CALL = 4
"""The number of pages per concurrent model call that are described or wait, because some take
long.
"""
PROVISIONAL = "provisional:"
"""Marks the hash of a document whose description should be generated again."""
MOST_FAILURES = 100
"""Maximum number of reasons that are reported for the lines of one file; further lines are only
counted.
"""
_MOST_NAMED = 5


BeforeChange = Callable[[], Awaitable[None]]


class Describer(Protocol):
    """Describes a page; `concurrency` is the number of pages that can be described concurrently.

    `by_rules` is the rule-based description. `name` is the name and version of the method; if it
    changes, all pages are described again. A describer that uses a model handles its failures with
    the rules in `knowledge.rule_descriptions`.
    """

    name: str
    concurrency: int

    async def describe(self, page: Page, language: str, by_rules: Description) -> Description: ...


class WritableIndex(Protocol):
    """The part of an index that ingestion uses; `knowledge.index.port` documents the methods."""

    async def put(
        self, document: Document, vectors: Sequence[Sequence[float]], root: str
    ) -> None: ...

    async def remove(self, document_ids: Sequence[str]) -> None: ...

    async def versions(self) -> Mapping[str, str]: ...

    async def read_written(self, document_id: str) -> WrittenDocument | None: ...

    async def list_documents(self) -> Sequence[ListedDocument]: ...

    async def connect(self) -> int: ...


class NamedEmbedder(Protocol):
    """Embeds texts; `name` is the name of the model, and `forms` describes how it embeds
    documents.
    """

    name: str
    forms: str

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


class DocumentReading(Protocol):
    """Reads up to `at_once` documents concurrently, here or in other processes."""

    at_once: int

    async def read(
        self, item: Item, file: PurePosixPath, place: Location, allowance: ReadingAllowance
    ) -> Preparation | None:
        """Return the preparation, or None if there is no time left for its file. Raises a
        `ReadingError`.
        """
        ...


class DocumentWriting(Protocol):
    """Embeds and writes documents with up to `most_chunks` chunks in total, here or in other
    processes.
    """

    most_chunks: int

    async def write(self, document: Document, vectors: Vectors, root: str) -> None:
        """Return once the document is in the index; errors of the embedder and the index
        propagate.
        """
        ...


@dataclass(slots=True)
class _OpenFile:
    """A file whose documents are being read; `failures` counts the reasons for failures."""

    file: FoundFile
    place: Location
    root: str
    allowance: ReadingAllowance
    failures: Counter[str] = field(default_factory=Counter)
    is_cut: bool = False
    """Whether documents were omitted because earlier ones used up the time allowed for the file."""


@dataclass(frozen=True, slots=True)
class _ReadDocument:
    """A document without its bytes. If it has neither a preparation nor an error, it is already in
    the index.
    """

    place: str
    source: str
    content_hash: str
    preparation: Preparation | None = None
    kind: str = ""
    error: ReadingError | None = None


class _Ingestion:
    """Ingests paths one after the other."""

    def __init__(
        self,
        index: WritableIndex,
        embedder: NamedEmbedder,
        describer: Describer,
        reader: ReaderProcess,
        pool: ReaderPool,
        reading: DocumentReading,
        writing: DocumentWriting,
        ledger: Ledger,
        tasks: asyncio.TaskGroup,
        language_of: Callable[[str], str],
        default_language: str,
        before_change: BeforeChange | None,
    ) -> None:
        self._index = index
        self._embedder = embedder
        self._describer = describer
        self._reader = reader
        self._pool = pool
        self._documents = reading
        self._writer = writing
        self._ledger = ledger
        self._tasks = tasks
        self._language_of = language_of
        self._default_language = default_language
        self._before_change = before_change
        self._reading: OrderedTasks[_ReadDocument | None] = OrderedTasks(
            tasks, at_once=reading.at_once, most=AHEAD_PER_READER * reading.at_once
        )
        self._room = Room(writing.most_chunks)
        self._describing: OrderedTasks[Description] = OrderedTasks(
            tasks, at_once=describer.concurrency, most=AHEAD_PER_CALL * describer.concurrency
        )
        self._hashes: Mapping[str, str] = {}
        self._chosen: Mapping[str, tuple[str, ...]] = {}
        self._missing_files: list[tuple[str, str]] = []

    async def bring(self, path: Path | SurveySource, replaced: Sequence[ListedDocument]) -> None:
        listed = await self._index.list_documents()
        try:
            survey = await asyncio.to_thread(self._survey, path, listed)
        except OSError as error:
            reason = f"the file or folder cannot be read: {error.strerror}"
            self._ledger.fail(str(path), reason)
            return
        except ReadingError as error:
            self._ledger.fail(str(path), f"the source could not be read: {error}")
            return
        except ConnectorError as error:
            self._ledger.fail(error.source, str(error))
            return
        self._hashes = {document.id: document.content_hash for document in listed}
        self._chosen = {
            listed_document.id: listed_document.groups
            for listed_document in replaced
            if listed_document.groups_chosen
        }
        self._ledger.open(survey.root, find_owned(listed, survey), len(survey.walk.files))
        self._note(survey.walk)
        repeated: dict[str, tuple[str, ...]] = {}
        for family in (furniture.WEBSITES, furniture.MARKUP):
            texts = await asyncio.to_thread(self._find_repeated, survey, family)
            repeated.update(dict.fromkeys(family, texts))
        for file in survey.walk.files:
            place = survey.locations[file.path]
            if texts := repeated.get(file.path.suffix.lower(), ()):
                place = replace(place, repeated=texts)
            await self._file(file, place, survey.root)
        await self._reading.finish()
        self._note_missing_files(survey.root)
        await self._describing.finish()
        await self._room.wait_until_empty()
        gone = self._ledger.gone()
        if gone:
            await self._announce_change()
            await self._index.remove(gone)
        self._ledger.close(gone)

    def _survey(self, path: Path | SurveySource, listed: Sequence[ListedDocument]) -> Survey:
        """Return the files at a path; if the path is part of an ingested folder, they are surveyed
        as that part.
        """
        if not isinstance(path, Path):
            return path(listed, self._reader.title, self._language_of)
        return survey_part(path, listed, self._reader.title, self._language_of)

    def _find_repeated(self, survey: Survey, family: frozenset[str]) -> tuple[str, ...]:
        """Return the texts that most pages in some formats have in common; see
        `knowledge.documents.furniture`.

        Pages restricted to groups are not compared.
        """
        files = [
            file
            for file in survey.walk.files
            if file.path.suffix.lower() in family and not survey.locations[file.path].groups
        ]
        step = max(1, len(files) // furniture.MOST_SAMPLED)
        pages = []
        for file in files[::step][: furniture.MOST_SAMPLED]:
            try:
                item = Item(str(file.path), file.read(), str(file.path))
                place = survey.locations[file.path]
                pages.append(self._reader.prepare(item, file.path, place).page)
            except (OSError, ReadingError):
                # The file is reported when it is read as a document.
                continue
        return furniture.find_repeated(pages)

    def _note(self, listing: FolderListing) -> None:
        for place, reason in listing.skipped:
            self._ledger.skip(str(place), reason)
        for place, reason in listing.warnings:
            self._ledger.warn(str(place), reason)
        for place, reason in listing.failures:
            self._ledger.fail(str(place), reason)
            self._ledger.keep_all()
        for name, reason in listing.unreachable:
            self._ledger.fail(name, reason)
            self._ledger.keep(name)
        if listing.is_partial:
            self._ledger.keep_all()

    async def _file(self, file: FoundFile, place: Location, root: str) -> None:
        """Have the documents in a file read; the results are recorded in the order of the files."""
        items: Iterable[Item] = ()
        beside: Mapping[str, bytes] = {}
        error: Exception | None = None
        size = 0
        try:
            data = await self._load(file, place.groups)
            beside = await asyncio.to_thread(load_beside, file, data, place.groups)
            items, size = await self._split(file, place, data), len(data)
        except (OSError, ReadingError) as raised:
            error = raised
        allowance = ReadingAllowance(
            self._reader.limits, size, is_shared=formats.holds_many(file.path)
        )
        opened = _OpenFile(file, place, root, allowance)
        for item in items:
            opened.allowance.documents += 1
            item = replace(item, beside=beside) if beside else item
            await self._reading.put(
                partial(self._read, item, opened), partial(self._receive, opened=opened)
            )
            if opened.is_cut:
                break
        await self._reading.put(_read_nothing, partial(self._close, opened=opened, error=error))

    async def _read(self, item: Item, opened: _OpenFile) -> _ReadDocument | None:
        """Read a document unless the index contains it; return None if there is no time left for
        its file.
        """
        place = opened.place
        read = _ReadDocument(item.place, item.source, self._hash(item, place))
        if self._ledger.knows(read.content_hash):
            return read
        try:
            prepared = await self._documents.read(item, opened.file.path, place, opened.allowance)
        except ReadingError as error:
            return replace(read, error=error)
        if prepared is None:
            return None
        return replace(read, preparation=prepared, kind=recognise_kind(prepared.page, item.data))

    async def _receive(self, read: _ReadDocument | None, opened: _OpenFile) -> None:
        if read is None:
            opened.is_cut = True
            return
        error = read.error
        if error is None:
            try:
                await self._describe(read, opened)
            except ReadingError as raised:
                error = raised
        if error is not None:
            reason = explain_failure(error)
            opened.failures[reason] += 1
            if opened.failures[reason] == 1 and len(opened.failures) <= MOST_FAILURES:
                self._lose(opened.file, opened.place, read.place, error)

    async def _close(self, _: None, opened: _OpenFile, error: Exception | None) -> None:
        """Record the result of a file."""
        file, place, source = opened.file, opened.place, str(opened.file.path)
        if isinstance(error, NoDocumentError):
            self._ledger.skip(source, str(error))
        elif error is not None:
            self._lose(file, place, source, error)
        else:
            if opened.is_cut:
                self._lose(file, place, source, opened.allowance.error())
            self._count_repeated(file, opened.failures)
            if not opened.allowance.documents:
                empty = NoTextError("the file contains no lines of JSON")
                self._lose(file, place, source, empty)
        self._ledger.advance()

    def _count_repeated(self, file: FoundFile, failures: Counter[str]) -> None:
        """Report how many more lines of a file failed; many failures with the same reason become
        one note.
        """
        for reason, count in list(failures.items())[:MOST_FAILURES]:
            if count > 1:
                more = write_count(count - 1, "further line")
                more = f"{more} could not be read for this reason: {reason}"
                self._ledger.fail(str(file.path), more)
        left = sum(list(failures.values())[MOST_FAILURES:])
        if left:
            self._ledger.fail(
                str(file.path), f"{write_count(left, 'further line')} could not be read"
            )

    def _note_missing_files(self, root: str) -> None:
        """Record missing files to which pages refer; if there are many, record one note that states
        what to ingest.
        """
        missing, self._missing_files = self._missing_files, []
        if len(missing) <= _MOST_NAMED:
            for page, name in missing:
                self._ledger.warn(
                    page,
                    f"the page refers to {name!r}, which is not a text file in the folder, so "
                    "its text is missing",
                )
            return
        page, name = missing[0]
        names = len({name for _, name in missing})
        self._ledger.warn(
            root,
            f"{names} files to which {len({page for page, _ in missing})} pages refer were not "
            f"found, such as {name!r} in {page}: their text is missing there. Ingest the folder "
            "that contains both, or the repository: refdesk ingest git:REPOSITORY --folder DOCS",
        )

    async def _load(self, file: FoundFile, groups: Sequence[str]) -> bytes:
        warnings: list[str] = []
        missing: list[str] = []
        data = await asyncio.to_thread(
            read_with_snippets, file, warnings.append, missing.append, groups
        )
        self._missing_files += [(str(file.path), name) for name in missing]
        for warning in warnings[:MOST_FAILURES]:
            self._ledger.warn(str(file.path), warning)
        return data

    async def _split(self, file: FoundFile, place: Location, data: bytes) -> Iterable[Item]:
        if not formats.needs_splitting(file.path):
            return formats.items_of(file.path, data)
        formats.refuse_other_data(data)
        return await self._pool.split(file.path, data, place)

    def _lose(self, file: FoundFile, place: Location, source: str, error: Exception) -> None:
        is_line = formats.holds_many(file.path)
        if isinstance(error, SkippedError):
            self._ledger.skip(source, str(error))
            self._keep(place)
            return
        if isinstance(error, NoTextError) and not is_line:
            self._ledger.warn(source, str(error))
            return
        self._ledger.fail(source, explain_failure(error))
        if is_line:
            self._ledger.keep_all()
        else:
            self._keep(place)

    def _keep(self, place: Location) -> None:
        for name in (place.name, f"{place.name}{place.ending}"):
            self._ledger.keep(name)

    async def _describe(self, read: _ReadDocument, opened: _OpenFile) -> None:
        prepared, content_hash, source = read.preparation, read.content_hash, read.place
        if prepared is None:
            self._ledger.count_unchanged(content_hash, source)
            return
        page = prepared.page
        for warning in page.warnings:
            self._ledger.warn(source, warning)
        for left_out in page.left_out:
            self._ledger.leave_out(source, left_out)
        language = find_stated_language(page) or self._language_of(make_sample(page))
        place = opened.place
        is_shared = place.language is None or language == self._default_language
        if is_shared and language in place.other_languages and page.name.startswith(place.name):
            rest = page.name.removeprefix(place.name)
            page = replace(page, name=f"{place.name}{place.ending}{rest}")
        identity = composing.document_id(page, language, self._default_language)
        if not self._ledger.claim(identity, source):
            return
        written = await self._find_written(identity, content_hash)
        compose = partial(
            composing.compose,
            page,
            prepared.passages,
            identity=identity,
            language=language,
            path=read.source,
            kind=read.kind,
        )

        async def finish(description: Description) -> None:
            if description.problem:
                self._ledger.warn(source, description.problem)
            # A hash that no text has: the page is read and described again.
            mark = PROVISIONAL if description.is_provisional else ""
            document = await asyncio.to_thread(
                compose, description=description, content_hash=mark + content_hash
            )
            document = self._restrict(document)
            size = measure(document)
            await self._room.enter(size)
            await self._announce_change()
            vectors = _find_vectors(document, written)
            self._tasks.create_task(self._write(document, vectors, opened.root, size))

        describe = partial(self._describer.describe, page, language, prepared.by_rules)
        await self._describing.put(describe, finish)

    async def _write(self, document: Document, vectors: Vectors, root: str, size: int) -> None:
        await self._writer.write(document, vectors, root)
        self._ledger.wrote(document)
        await self._room.leave(size)

    async def _announce_change(self) -> None:
        announce, self._before_change = self._before_change, None
        if announce is not None:
            await announce()

    async def _find_written(self, identity: str, content_hash: str) -> WrittenDocument | None:
        """Return the written document if its text is unchanged and was read in the same way."""
        is_same = _text_part(self._hashes.get(identity, "")) == _text_part(content_hash)
        return await self._index.read_written(identity) if is_same else None

    def _hash(self, item: Item, place: Location) -> str:
        """Return the hash of a document's text and processing, followed by the hash of its
        location.
        """
        shaped_by = (
            READING_VERSION,
            chunking.VERSION,
            self._describer.name,
            self._embedder.name,
            self._default_language,
        )
        prefix = hashlib.sha256("\0".join(shaped_by).encode()).digest()
        text = hashlib.sha256(prefix + item.data)
        for address, data in item.beside.items():
            text.update(address.encode() + hashlib.sha256(data).digest())
        located = hashlib.sha256(
            f"{replace(place, repeated=())!r}\0{item.source}".encode()
        ).hexdigest()
        return f"{text.hexdigest()}{HASH_SEPARATOR}{located}"

    def _restrict(self, document: Document) -> Document:
        """Return a document restricted to the groups that the owner set for it."""
        if document.id not in self._chosen:
            return document
        chosen = {"groups": self._chosen[document.id], "groups_chosen": True}
        return document.model_copy(update=chosen)


async def ingest(
    paths: Iterable[Path | SurveySource],
    index: WritableIndex,
    embedder: NamedEmbedder,
    describer: Describer,
    readers: Sequence[ReaderProcess],
    report: Report,
    *,
    language_of: Callable[[str], str],
    default_language: str = "en",
    replaced: Sequence[ListedDocument] = (),
    before_change: BeforeChange | None = None,
    reading: DocumentReading | None = None,
    writing: DocumentWriting | None = None,
) -> IngestionResult:
    """Ingest files, folders, and other sources into the index, and remove those that no longer
    exist.

    Each of the `readers` reads one document at a time, unless `reading` has other processes read
    them. Documents are embedded and written here, unless `writing` has other processes do so.
    `language_of` returns the ISO 639-1 code of a text, for pages that do not state their language.
    `replaced` contains the documents of the index that is being replaced, so that groups set by the
    owner are kept. `before_change` is called once, before the first change to the index. Errors of
    the index and the embedder propagate; documents written before an error are kept.
    """
    started = time.monotonic()
    ledger = Ledger(report, await index.versions())
    pool = ReaderPool(readers)
    async with open_tasks() as tasks:
        ingestion = _Ingestion(
            index,
            embedder,
            describer,
            readers[0],
            pool,
            pool if reading is None else reading,
            DocumentWriter(index, embedder) if writing is None else writing,
            ledger,
            tasks,
            language_of,
            default_language,
            before_change,
        )
        for path in paths:
            await ingestion.bring(path, replaced)
    await index.connect()
    return ledger.result(time.monotonic() - started)


async def _read_nothing() -> None:
    """Follow the documents of a file, so that its end is recorded after them."""


def _text_part(content_hash: str) -> str:
    return content_hash.removeprefix(PROVISIONAL).partition(HASH_SEPARATOR)[0]


def _find_vectors(document: Document, written: WrittenDocument | None) -> Vectors:
    """Return the vector of each chunk, or None if its text has to be embedded.

    A chunk keeps its vector if the text to embed, which begins with its breadcrumbs, has not
    changed.
    """
    if written is None or len(written.chunks) != len(document.chunks):
        return [None] * len(document.chunks)
    before = document.model_copy(update={"title": written.title, "crumbs": written.crumbs})
    return [
        vector
        if chunking.text_to_embed(before, old) == chunking.text_to_embed(document, chunk)
        else None
        for chunk, (old, vector) in zip(document.chunks, written.chunks, strict=True)
    ]
