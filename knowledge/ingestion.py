"""Brings documents into the index: reads, describes, splits, embeds and writes them.

Only changed documents are read again: the content hash of a document covers its bytes, its location
and the versions of all steps that process it. Each document is written completely or not at all,
soon after it was read: after a kill, the next ingestion reads only those that were not written.
Documents that disappeared from an ingested path are removed from the index; documents that cannot
be read keep their last version.
"""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from knowledge import chunking, composing
from knowledge.description_queue import Describer, DescriptionQueue, open_queue
from knowledge.document import Document
from knowledge.documents import formats, furniture
from knowledge.documents.errors import NoDocumentError, NoTextError, ReadingError, SkippedError
from knowledge.documents.folder import FolderListing, FoundFile
from knowledge.documents.formats import Item
from knowledge.documents.front_matter import find_stated_language, make_sample
from knowledge.documents.location import Location
from knowledge.documents.snippets import load_pictures, read_with_snippets
from knowledge.documents.survey import Survey
from knowledge.errors import ConnectorError
from knowledge.index.listing import ListedDocument
from knowledge.index.overlap import SurveySource, find_owned, survey_part
from knowledge.index.page_kind import recognise_kind
from knowledge.index.port import WrittenDocument
from knowledge.ingestion_ledger import Ledger, ReadingAllowance
from knowledge.ingestion_report import IngestionResult, Report
from knowledge.isolation.preparation import Preparation
from knowledge.isolation.reader_process import ReaderProcess
from knowledge.rule_descriptions import Description

READING_VERSION = "13"
HASH_SEPARATOR = "-"
"""What separates the hash of a text from that of its place."""
CHUNKS_PER_BATCH = 256
PICTURE_CHARACTERS_PER_BATCH = 16_000_000
SECONDS_PER_BATCH = 3.0
"""Documents that are ready are written after this time, even if their batch is not full."""
PROVISIONAL = "provisional:"
"""Marks the hash of a document whose description is to be made again."""
MOST_FAILURES = 100
"""The most reasons for which lines of one file are reported; further lines are only counted."""

Vectors = list[Sequence[float] | None]
BeforeChange = Callable[[], Awaitable[None]]


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
    """Embeds texts; `name` is the name of the model, `forms` how it embeds documents."""

    name: str
    forms: str

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


class _Ingestion:
    """Ingests paths one after the other."""

    def __init__(
        self,
        index: WritableIndex,
        embedder: NamedEmbedder,
        describer: Describer,
        queue: DescriptionQueue,
        reader: ReaderProcess,
        ledger: Ledger,
        language_of: Callable[[str], str],
        default_language: str,
        before_change: BeforeChange | None,
    ) -> None:
        self._index = index
        self._embedder = embedder
        self._describer = describer
        self._queue = queue
        self._reader = reader
        self._ledger = ledger
        self._language_of = language_of
        self._default_language = default_language
        self._before_change = before_change
        self._hashes: Mapping[str, str] = {}
        self._chosen: Mapping[str, tuple[str, ...]] = {}
        self._missing_files: list[tuple[str, str]] = []
        self._waiting: list[tuple[Document, Vectors]] = []
        self._waiting_since = 0.0

    async def bring(self, path: Path | SurveySource, replaced: Sequence[ListedDocument]) -> None:
        listed = await self._index.list_documents()
        try:
            found = await asyncio.to_thread(self._survey, path, listed)
        except OSError as error:
            reason = f"expected a file or a folder, found none: {error.strerror}"
            self._ledger.fail(str(path), reason)
            return
        except ReadingError as error:
            self._ledger.fail(str(path), f"nothing of it was read: {error}")
            return
        except ConnectorError as error:
            self._ledger.fail(error.source, str(error))
            return
        self._hashes = {document.id: document.content_hash for document in listed}
        self._chosen = {one.id: one.groups for one in replaced if one.groups_chosen}
        self._ledger.open(found.root, find_owned(listed, found), len(found.walk.files))
        self._note(found.walk)
        repeated: dict[str, tuple[str, ...]] = {}
        for family in (furniture.WEBSITES, furniture.MARKUP):
            texts = await asyncio.to_thread(self._find_repeated, found, family)
            repeated.update(dict.fromkeys(family, texts))
        for file in found.walk.files:
            place = found.locations[file.path]
            if texts := repeated.get(file.path.suffix.lower(), ()):
                place = replace(place, repeated=texts)
            await self._file(file, place, found.root)
            self._ledger.advance()
        self._note_missing_files(found.root)
        await self._queue.finish()
        await self._write(found.root)
        gone = self._ledger.gone()
        if gone:
            await self._announce_change()
            await self._index.remove(gone)
        self._ledger.close(gone)

    def _survey(self, path: Path | SurveySource, listed: Sequence[ListedDocument]) -> Survey:
        """Return the files at a path; a part of an ingested folder is surveyed as its part."""
        if not isinstance(path, Path):
            return path(listed, self._reader.title, self._language_of)
        return survey_part(path, listed, self._reader.title, self._language_of)

    def _find_repeated(self, found: Survey, family: frozenset[str]) -> tuple[str, ...]:
        """Return the texts that most pages of some formats have: `knowledge.documents.furniture`.

        Pages that certain groups alone may read are not compared.
        """
        files = [
            file
            for file in found.walk.files
            if file.path.suffix.lower() in family and not found.locations[file.path].groups
        ]
        step = max(1, len(files) // furniture.MOST_SAMPLED)
        pages = []
        for file in files[::step][: furniture.MOST_SAMPLED]:
            try:
                item = Item(str(file.path), file.read(), str(file.path))
                place = found.locations[file.path]
                pages.append(self._reader.prepare(item, file.path, place).page)
            except (OSError, ReadingError):
                # The file is reported when it is read as a document.
                continue
        return furniture.find_repeated(pages)

    def _note(self, found: FolderListing) -> None:
        for place, reason in found.skipped:
            self._ledger.skip(str(place), reason)
        for place, reason in found.warnings:
            self._ledger.warn(str(place), reason)
        for place, reason in found.failures:
            self._ledger.fail(str(place), reason)
            self._ledger.keep_all()
        for name, reason in found.unreachable:
            self._ledger.fail(name, reason)
            self._ledger.keep(name)
        if found.is_partial:
            self._ledger.keep_all()

    async def _file(self, file: FoundFile, place: Location, root: str) -> None:
        try:
            data = await self._load(file)
            beside = await asyncio.to_thread(load_pictures, file, data, place.groups)
            items = await self._split(file, place, data)
        except NoDocumentError as error:
            self._ledger.skip(str(file.path), str(error))
            return
        except (OSError, ReadingError) as error:
            self._lose(file, place, str(file.path), error)
            return
        allowance = ReadingAllowance(self._reader.limits, len(data))
        failures: Counter[str] = Counter()
        for item in items:
            item = replace(item, pictures=beside) if beside else item
            failure = await self._try_item(item, file, place, root, allowance)
            await self._write_if_due(root)
            if failure is not None:
                reason = _reason(failure)
                failures[reason] += 1
                if failures[reason] == 1 and len(failures) <= MOST_FAILURES:
                    self._lose(file, place, item.place, failure)
            if allowance.is_spent and formats.holds_many(file.path):
                self._lose(file, place, str(file.path), allowance.error())
                break
        self._count_repeated(file, failures)
        if not allowance.documents:
            empty = NoTextError("expected lines of JSON, found none")
            self._lose(file, place, str(file.path), empty)

    def _count_repeated(self, file: FoundFile, failures: Counter[str]) -> None:
        """Report how many more lines of a file failed: many with one reason are one note."""
        for reason, count in list(failures.items())[:MOST_FAILURES]:
            if count > 1:
                more = f"{count - 1} more of its lines could not be read for this reason: {reason}"
                self._ledger.fail(str(file.path), more)
        left = sum(list(failures.values())[MOST_FAILURES:])
        if left:
            self._ledger.fail(str(file.path), f"{left} more of its lines could not be read")

    def _note_missing_files(self, root: str) -> None:
        """Note the files to which pages refer; many become one note that says what to ingest."""
        missing, self._missing_files = self._missing_files, []
        if len(missing) <= formats.MOST_NAMED:
            for page, name in missing:
                self._ledger.warn(
                    page,
                    f"it refers to {name!r}, which is not a text file in the folder, so "
                    f"that text is missing",
                )
            return
        page, name = missing[0]
        names = len({name for _, name in missing})
        self._ledger.warn(
            root,
            f"{names} files to which {len({page for page, _ in missing})} pages refer were not "
            f"found, such as {name!r} in {page}: their text is missing there. Ingest the folder "
            "that holds both, or the repository: refdesk ingest git:REPOSITORY --folder DOCS",
        )

    async def _load(self, file: FoundFile) -> bytes:
        warnings: list[str] = []
        missing: list[str] = []
        data = await asyncio.to_thread(read_with_snippets, file, warnings.append, missing.append)
        self._missing_files += [(str(file.path), name) for name in missing]
        for warning in warnings[:MOST_FAILURES]:
            self._ledger.warn(str(file.path), warning)
        return data

    async def _split(self, file: FoundFile, place: Location, data: bytes) -> Iterable[Item]:
        if not formats.needs_splitting(file.path):
            return formats.items_of(file.path, data)
        formats.refuse_other_data(data)
        return await asyncio.to_thread(self._reader.split, file.path, data, place)

    async def _try_item(
        self, item: Item, file: FoundFile, place: Location, root: str, allowance: ReadingAllowance
    ) -> ReadingError | None:
        allowance.documents += 1
        try:
            await self._item(item, file, place, root, allowance)
        except ReadingError as error:
            return error
        return None

    def _lose(self, file: FoundFile, place: Location, source: str, error: Exception) -> None:
        is_line = formats.holds_many(file.path)
        if isinstance(error, SkippedError):
            self._ledger.skip(source, str(error))
            self._ledger.keep(place.name)
            return
        if isinstance(error, NoTextError) and not is_line:
            self._ledger.warn(source, "it is empty: it has no text")
            return
        self._ledger.fail(source, _reason(error))
        if is_line:
            self._ledger.keep_all()
        else:
            self._ledger.keep(place.name)

    async def _item(
        self, item: Item, file: FoundFile, place: Location, root: str, allowance: ReadingAllowance
    ) -> None:
        content_hash = self._hash(item, place)
        if self._ledger.is_unchanged(content_hash, item.place):
            return
        prepared = await self._prepare(item, file, place, allowance)
        page = prepared.page
        for warning in page.warnings:
            self._ledger.warn(item.place, warning)
        for left_out in page.left_out:
            self._ledger.leave_out(item.place, left_out)
        language = find_stated_language(page) or self._language_of(make_sample(page))
        identity = composing.document_id(page, language, self._default_language)
        if not self._ledger.claim(identity, item.place):
            return
        written = await self._find_written(identity, content_hash)
        compose = partial(
            composing.compose,
            page,
            prepared.passages,
            identity=identity,
            language=language,
            path=item.source,
            kind=recognise_kind(page, item.data),
        )
        source = item.place

        async def finish(description: Description) -> None:
            if description.problem:
                self._ledger.warn(source, description.problem)
            # A hash that no text has: the page is read and described again.
            mark = PROVISIONAL if description.is_provisional else ""
            document = await asyncio.to_thread(
                compose, description=description, content_hash=mark + content_hash
            )
            await self._add(document, _find_vectors(document, written), root)

        await self._queue.put(page, language, prepared.by_rules, finish)

    async def _find_written(self, identity: str, content_hash: str) -> WrittenDocument | None:
        """Return the document as written if its text is the same, and read the same way."""
        is_same = _text_part(self._hashes.get(identity, "")) == _text_part(content_hash)
        return await self._index.read_written(identity) if is_same else None

    async def _prepare(
        self, item: Item, file: FoundFile, place: Location, allowance: ReadingAllowance
    ) -> Preparation:
        try:
            return await asyncio.to_thread(
                self._reader.prepare, item, file.path, place, allowance.next_seconds
            )
        finally:
            # Not the time of the clock: a busy machine would drop the end of a file.
            allowance.spend(self._reader.seconds_used)

    def _hash(self, item: Item, place: Location) -> str:
        """Return the hash of a document's text and of its processing, then that of its place."""
        shaped_by = (
            READING_VERSION,
            chunking.VERSION,
            self._describer.name,
            self._embedder.name,
            self._default_language,
        )
        prefix = hashlib.sha256("\0".join(shaped_by).encode()).digest()
        text = hashlib.sha256(prefix + item.data)
        for address, data in item.pictures.items():
            text.update(address.encode() + hashlib.sha256(data).digest())
        located = hashlib.sha256(
            f"{replace(place, repeated=())!r}\0{item.source}".encode()
        ).hexdigest()
        return f"{text.hexdigest()}{HASH_SEPARATOR}{located}"

    async def _add(self, document: Document, vectors: Vectors, root: str) -> None:
        if document.id in self._chosen:
            chosen = {"groups": self._chosen[document.id], "groups_chosen": True}
            document = document.model_copy(update=chosen)
        if not self._waiting:
            self._waiting_since = time.monotonic()
        self._waiting.append((document, vectors))
        chunks = sum(len(waiting) for _, waiting in self._waiting)
        pictures = sum(len(one.data) for document, _ in self._waiting for one in document.files)
        if chunks >= CHUNKS_PER_BATCH or pictures >= PICTURE_CHARACTERS_PER_BATCH:
            await self._write(root)

    async def _write_if_due(self, root: str) -> None:
        """Write the waiting documents if they have waited long, so that a kill loses few."""
        if self._waiting and time.monotonic() - self._waiting_since >= SECONDS_PER_BATCH:
            await self._write(root)

    async def _announce_change(self) -> None:
        announce, self._before_change = self._before_change, None
        if announce is not None:
            await announce()

    async def _write(self, root: str) -> None:
        waiting, self._waiting = self._waiting, []
        texts = [
            chunking.text_to_embed(document, chunk)
            for document, known in waiting
            for chunk, vector in zip(document.chunks, known, strict=True)
            if vector is None
        ]
        embedded: list[Sequence[float]] = []
        for start in range(0, len(texts), CHUNKS_PER_BATCH):
            part = texts[start : start + CHUNKS_PER_BATCH]
            embedded.extend(await self._embedder.embed_documents(part))
        computed = iter(embedded)
        if waiting:
            await self._announce_change()
        for document, known in waiting:
            own = [next(computed) if vector is None else vector for vector in known]
            await self._index.put(document, own, root)
            self._ledger.wrote(document)


async def ingest(
    paths: Iterable[Path | SurveySource],
    index: WritableIndex,
    embedder: NamedEmbedder,
    describer: Describer,
    reader: ReaderProcess,
    report: Report,
    *,
    language_of: Callable[[str], str],
    default_language: str = "en",
    replaced: Sequence[ListedDocument] = (),
    before_change: BeforeChange | None = None,
) -> IngestionResult:
    """Bring files, folders and other sources into the index; remove those that have disappeared.

    `language_of` returns the ISO 639-1 code of a text, for pages that do not state their language.
    `replaced` are the documents of the index that this one replaces: groups that the owner chose
    stay. `before_change` is called once, before the first change of the index.
    Raises the errors of the index and the embedder; documents written before an error remain.
    """
    started = time.monotonic()
    ledger = Ledger(report, await index.versions())
    async with open_queue(describer) as queue:
        ingestion = _Ingestion(
            index,
            embedder,
            describer,
            queue,
            reader,
            ledger,
            language_of,
            default_language,
            before_change,
        )
        for path in paths:
            await ingestion.bring(path, replaced)
    await index.connect()
    result = ledger.result(time.monotonic() - started)
    report.finish(result)
    return result


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"the file cannot be read: {error.strerror}"
    return str(error)


def _text_part(content_hash: str) -> str:
    return content_hash.removeprefix(PROVISIONAL).partition(HASH_SEPARATOR)[0]


def _find_vectors(document: Document, written: WrittenDocument | None) -> Vectors:
    """Return the vector of each chunk; None where its text must be embedded.

    A chunk keeps its vector if the text to embed, which begins with its crumbs, has not changed.
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
