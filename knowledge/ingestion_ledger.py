"""Counts the documents in an ingestion: found, new, changed, and removed."""

from collections import Counter
from collections.abc import Mapping

from citations.addresses import host_and_port
from knowledge.document import Document
from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import TooSlowError
from knowledge.documents.page import LeftOut
from knowledge.ingestion_report import IngestionResult, Report
from knowledge.isolation.messages import ReadingLimits

MOST_HOSTS = 20


class Ledger:
    """The counts of one ingestion; call `open` and `close` before and after each ingested path."""

    def __init__(self, report: Report, present: Mapping[str, str]) -> None:
        self._report = report
        self._present = set(present)
        self._failed: list[tuple[str, str]] = []
        self._warned: list[tuple[str, str]] = []
        self._left_out: list[tuple[str, LeftOut]] = []
        self._skipped: list[tuple[str, str]] = []
        self._linked_hosts: Counter[str] = Counter()
        self._owners: dict[str, tuple[str, str]] = {}
        self._known: dict[str, str] = {}
        self._own: frozenset[str] = frozenset()
        self._kept_names: set[str] = set()
        self._keeps_all = False
        self._files = self._documents = self._chunks_here = 0
        self._added = self._changed = self._unchanged = self._removed = self._chunks = 0
        self._root = ""

    def open(self, root: str, known: Mapping[str, str], files: int) -> None:
        """Start a path; `known` contains the content hashes of its indexed documents, by id."""
        self._root = root
        self._known = {content_hash: identity for identity, content_hash in known.items()}
        self._own = frozenset(known)
        self._kept_names = set()
        self._keeps_all = False
        self._files = self._documents = self._chunks_here = 0
        self._report.start(root, files)

    def knows(self, content_hash: str) -> bool:
        """Return whether the index contains a document with this hash."""
        return content_hash in self._known

    def count_unchanged(self, content_hash: str, source: str) -> None:
        """Count a document that is already in the index."""
        if self._is_first(self._known[content_hash], source):
            self._unchanged += 1

    def claim(self, identity: str, source: str) -> bool:
        """Register a document before it is written; return False if its id was already found."""
        if not self._is_first(identity, source):
            return False
        if identity in self._present and identity not in self._own:
            self.warn(
                source,
                f"the document replaces {identity!r}, which was ingested from another location",
            )
        return True

    def wrote(self, document: Document) -> None:
        """Count a document that was written to the index, and the hosts that it links to."""
        identity, chunks = document.id, len(document.chunks)
        hosts = {host_and_port(address) for chunk in document.chunks for _, address in chunk.links}
        self._linked_hosts.update(hosts - {""})
        if identity in self._present:
            self._changed += 1
        else:
            self._added += 1
        self._present.add(identity)
        self._documents += 1
        self._chunks += chunks
        self._chunks_here += chunks

    def advance(self) -> None:
        """Count a file that was read."""
        self._files += 1
        self._report.advance(self._files, self._documents, self._chunks_here)

    def fail(self, source: str, reason: str) -> None:
        """Record a source that could not be read."""
        self._failed.append((_one_line(source), _one_line(reason)))

    def warn(self, source: str, reason: str) -> None:
        """Record a problem in a source that was read anyway."""
        self._warned.append((_one_line(source), _one_line(reason)))

    def leave_out(self, source: str, left_out: LeftOut) -> None:
        """Record content of a file that is missing from the page of a document."""
        self._left_out.append((_one_line(source), left_out))

    def skip(self, source: str, reason: str) -> None:
        """Record a file that is not a document."""
        self._skipped.append((_one_line(source), _one_line(reason)))

    def keep(self, name: str) -> None:
        """Keep the indexed versions of a page that exists but cannot be read."""
        self._kept_names.add(name)

    def keep_all(self) -> None:
        """Keep all documents in this path, because a part of it could not be listed."""
        self._keeps_all = True

    def gone(self) -> list[str]:
        """Return the indexed documents in this path that were not found."""
        missing = sorted(self._own.difference(self._owners))
        missing = [identity for identity in missing if not self._is_kept(identity)]
        if missing and self._keeps_all:
            self.warn(
                self._root,
                "no documents were removed, because part of the source could not be read",
            )
            return []
        return missing

    def close(self, removed: list[str]) -> None:
        """Finish a path; `removed` contains the documents that were removed from the index."""
        self._removed += len(removed)
        self._present.difference_update(removed)

    def result(self, seconds: float) -> IngestionResult:
        """Return the result of the ingestion."""
        return IngestionResult(
            added=self._added,
            changed=self._changed,
            unchanged=self._unchanged,
            removed=self._removed,
            failed=tuple(self._failed),
            warned=tuple(self._warned),
            skipped=tuple(self._skipped),
            left_out=tuple(self._left_out),
            chunks=self._chunks,
            seconds=seconds,
            linked_hosts=tuple(self._linked_hosts.most_common(MOST_HOSTS)),
        )

    def _is_first(self, identity: str, source: str) -> bool:
        owner = self._owners.setdefault(identity, (self._root, source))
        if owner == (self._root, source):
            return True
        self.fail(source, f"the id {identity!r} is already used by {owner[1]}")
        return False

    def _is_kept(self, identity: str) -> bool:
        return identity in self._kept_names or identity.rpartition("@")[0] in self._kept_names


class ReadingAllowance:
    """The processor time left for a file of `size` bytes, and the number of its documents.

    `is_shared` is true if several documents in the file share the time.
    """

    def __init__(self, limits: ReadingLimits, size: int, *, is_shared: bool = True) -> None:
        self.documents = 0
        self._is_shared = is_shared
        self._each = limits.seconds
        self._all = self._left = limits.seconds_for(size)

    @property
    def next_seconds(self) -> float:
        """How many seconds reading the next document may take."""
        return min(self._each, self._left)

    @property
    def is_spent(self) -> bool:
        """Whether there is no time left for another document."""
        return self._is_shared and self._left <= 0

    def spend(self, seconds: float) -> None:
        """Add the time spent processing a document."""
        self._left -= seconds

    def error(self) -> TooSlowError:
        """Return the error for documents that were not read because there was no time left."""
        return TooSlowError(f"took longer than {self._all:.3g} s to read; the rest was left out")


def _one_line(text: str) -> str:
    """Return a text on one line without control characters, because it may quote a document."""
    return " ".join(clean_text(text).split())
