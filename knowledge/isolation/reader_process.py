"""Passes documents to another process to be read, and kills it if one takes too much time or
memory.

A parser in an endless loop, in Python or in C, does not react to a cancellation, but a process can
be killed. One process reads all documents, one after the other; if it is killed, a new one is
started.
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Self

import knowledge
from knowledge.documents.decoding import MAX_BYTES
from knowledge.documents.errors import (
    ReaderDiedError,
    ReadingError,
    TooLargeError,
    TooMuchMemoryError,
    TooSlowError,
)
from knowledge.documents.formats import Item
from knowledge.documents.interchange.mail_parsing import ParsedMail
from knowledge.documents.location import NOWHERE, Location
from knowledge.documents.markup.page_links import PageLinks
from knowledge.errors import KnowledgeError
from knowledge.isolation.messages import (
    CLOCK_FACTOR,
    HEADER,
    REQUEST_HEADER,
    Kind,
    ReadingLimits,
    ReadRequest,
    decode_error,
    decode_items,
    decode_links,
    decode_mail,
    decode_preparation,
)
from knowledge.isolation.preparation import Preparation

_CHILD = "knowledge.isolation.child"
_START_SECONDS = 300.0
_STARTS = 3
"""How many times to start a process that does not become ready, for example on a machine without
free memory.
"""
_LARGEST_ANSWER = 8 * MAX_BYTES
_PIECE = 1 << 20
# Only these variables of the environment reach the process: it reads foreign data and needs no
# keys.
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "TZ")


class ReaderProcess:
    """Reads documents within limits; used by one thread at a time, while other threads wait.

    It is a context manager: entering starts the process without waiting for it, and leaving ends
    it, even while a thread is waiting for a response.
    """

    def __init__(self, limits: ReadingLimits) -> None:
        self.limits = limits
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._child: _Child | None = None
        self._is_closed = False
        self.seconds_used = 0.0
        """The processor time used by the last request, or all of its allowed time if the process
        was killed.
        """

    def __enter__(self) -> Self:
        self._running()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; a thread that is waiting for it gets a `ReaderDiedError`."""
        with self._starting:
            self._is_closed = True
            child = self._child
            if child is not None:
                child.kill()
        if child is not None:
            with self._lock:
                child.release()

    @property
    def process_id(self) -> int:
        """The id of the reader process, which may already have ended."""
        return self._running().process_id

    def prepare(
        self,
        item: Item,
        path: PurePosixPath,
        location: Location,
        seconds: float | None = None,
        *,
        most_characters: int | None = None,
    ) -> Preparation:
        """Return the preparation of a document, within `seconds` or the default limit.

        Raises a `ReadingError`, either for a problem that the reader found in the document or for
        an exceeded limit.
        """
        allowed = self.limits.seconds if seconds is None else seconds
        request = ReadRequest(item, path, location, most_characters=most_characters)
        kind, body = self._ask(request, allowed)
        try:
            if kind is Kind.PREPARATION:
                return decode_preparation(body)
        except ValueError as error:
            raise _nonsense_error(error) from error
        raise ReaderDiedError(f"expected a page from the process that read it, found {kind.name}")

    def title(self, item: Item, path: PurePosixPath, location: Location) -> str:
        """Return the title that an index page gives its folder; raises the same errors as
        `prepare`.
        """
        request = ReadRequest(item, path, location, Kind.TITLE)
        return self._ask(request, self.limits.seconds)[1].decode("utf-8", "replace")

    def split(self, path: PurePosixPath, data: bytes, location: Location) -> list[Item]:
        """Return the documents in a file that must be parsed; raises the same errors as
        `prepare`.
        """
        whole = Item(str(path), data, str(path))
        request = ReadRequest(whole, path, location, Kind.ITEMS)
        kind, body = self._ask(request, self.limits.seconds_for(len(data)))
        try:
            if kind is Kind.ITEMS:
                return decode_items(body)
        except ValueError as error:
            raise _nonsense_error(error) from error
        raise ReaderDiedError(
            f"expected documents from the process that read it, found {kind.name}"
        )

    def links(self, data: bytes, url: str) -> PageLinks:
        """Return the links in an HTML page; raises the same errors as `prepare`."""
        item = Item(url, data, url)
        request = ReadRequest(item, PurePosixPath("page.html"), NOWHERE, Kind.LINKS)
        kind, body = self._ask(request, self.limits.seconds)
        try:
            if kind is Kind.LINKS:
                return decode_links(body)
        except ValueError as error:
            raise _nonsense_error(error) from error
        raise ReaderDiedError(f"expected links from the process that read it, found {kind.name}")

    def read_mail(self, data: bytes) -> ParsedMail:
        """Return an email with the text of its HTML; raises the same errors as `prepare`."""
        item = Item("mail", data, "mail")
        request = ReadRequest(item, PurePosixPath("mail.eml"), NOWHERE, Kind.MAIL)
        kind, body = self._ask(request, self.limits.seconds)
        try:
            if kind is Kind.MAIL:
                return decode_mail(body)
        except ValueError as error:
            raise _nonsense_error(error) from error
        raise ReaderDiedError(f"expected mail from the process that read it, found {kind.name}")

    def _ask(self, request: ReadRequest, seconds: float) -> tuple[Kind, bytes]:
        with self._lock:
            try:
                kind, body = self._exchange(request, seconds)
            except _ReaderKilledError:
                # It may have been ended on purpose, and not because of its document.
                kind, body = self._exchange(request, seconds)
        if kind is Kind.MEMORY:
            raise TooMuchMemoryError(
                f"needed more than {self.limits.memory_mb} MB of memory to read"
            )
        if kind is Kind.ERROR:
            raise decode_error(body)
        return kind, body

    def _exchange(self, request: ReadRequest, seconds: float) -> tuple[Kind, bytes]:
        child = self._start()
        self.seconds_used = seconds
        try:
            kind, body, self.seconds_used = child.exchange(request.encode(), seconds)
        except TimeoutError as error:
            child.kill()
            raise _slow_error(seconds) from error
        except EOFError as error:
            raise _end_error(child.end(), seconds) from error
        return kind, body

    def _start(self) -> "_Child":
        """Return a process that is ready; raises `KnowledgeError` if none becomes ready."""
        for start in range(1, _STARTS + 1):
            child = self._running()
            try:
                child.wait_until_ready(time.monotonic() + _START_SECONDS)
            except KnowledgeError as error:
                if self._is_closed:
                    raise ReaderDiedError("reading has ended") from error
                if start == _STARTS:
                    raise
                continue
            return child
        raise AssertionError

    def _running(self) -> "_Child":
        with self._starting:
            if self._is_closed:
                raise ReaderDiedError("reading has ended")
            if self._child is None or self._child.is_over:
                if self._child is not None:
                    self._child.kill()
                    self._child.release()
                self._child = _Child(self.limits)
            return self._child


class _ReaderKilledError(ReaderDiedError):
    """The process that was reading a document was killed, for example because the system ran out of
    memory.
    """


class _Child:
    """One process, from its start to its end."""

    def __init__(self, limits: ReadingLimits) -> None:
        self.is_over = False
        self._is_ready = False
        # Lives as long as the process.
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        its_requests, self._requests = os.pipe()
        self._answers, its_answers = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-P", "-m", _CHILD, str(limits.memory_mb)],
                stdin=its_requests,
                stdout=its_answers,
                stderr=self._complaints,
                env=_environment(),
            )
        finally:
            os.close(its_requests)
            os.close(its_answers)
        os.set_blocking(self._requests, False)
        os.set_blocking(self._answers, False)
        self._ending = threading.Lock()

    @property
    def process_id(self) -> int:
        """The id of the process."""
        return self._process.pid

    def wait_until_ready(self, until: float) -> None:
        """Wait until the process has loaded all readers; raises `KnowledgeError` if it cannot."""
        if self._is_ready:
            return
        try:
            self._receive(until)
        except (EOFError, TimeoutError) as error:
            self.kill()
            self._complaints.seek(0)
            written = self._complaints.read()[-500:].decode("utf-8", "replace").strip()
            last = written.rpartition("\n")[2]
            how = last or f"the process was not ready after {_START_SECONDS:.0f} s"
            raise KnowledgeError(
                f"the process that reads documents did not start in {_STARTS} attempts: {how}. "
                "The index was not changed; repeat the ingestion when the machine has enough memory"
            ) from error
        self._is_ready = True

    def exchange(self, request: bytes, seconds: float) -> tuple[Kind, bytes, float]:
        """Return the response and the processor time that it took.

        Raises `TimeoutError` if the time is over, and `EOFError` if the process ends.
        """
        until = time.monotonic() + CLOCK_FACTOR * seconds
        self._send(REQUEST_HEADER.pack(len(request), seconds) + request, until)
        return self._receive(until)

    def end(self) -> int:
        """End the process; return its exit status, or the negated signal number if a signal ended
        it.
        """
        self.kill()
        return self._process.returncode

    def kill(self) -> None:
        """Kill the process, which may already have ended."""
        with self._ending:
            self.is_over = True
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()

    def release(self) -> None:
        """Close the pipes, when the process no longer uses them."""
        os.close(self._requests)
        os.close(self._answers)
        self._complaints.close()

    def _send(self, frame: bytes, until: float) -> None:
        rest = memoryview(frame)
        while rest:
            self._wait(self._requests, select.POLLOUT, until)
            try:
                rest = rest[os.write(self._requests, rest[:_PIECE]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as error:
                raise EOFError from error

    def _receive(self, until: float) -> tuple[Kind, bytes, float]:
        size, kind, ends, seconds = HEADER.unpack(self._exactly(HEADER.size, until))
        if size > _LARGEST_ANSWER:
            self.kill()
            raise TooLargeError(
                f"a page can have at most {_LARGEST_ANSWER} bytes; this one has {size}"
            )
        body = self._exactly(size, until)
        self.is_over = self.is_over or ends
        return Kind(kind), body, seconds

    def _exactly(self, size: int, until: float) -> bytes:
        received = bytearray()
        while len(received) < size:
            self._wait(self._answers, select.POLLIN, until)
            try:
                piece = os.read(self._answers, min(_PIECE, size - len(received)))
            except BlockingIOError:
                continue
            if not piece:
                raise EOFError
            received += piece
        return bytes(received)

    def _wait(self, descriptor: int, event: int, until: float) -> None:
        left = until - time.monotonic()
        poll = select.poll()
        poll.register(descriptor, event)
        if left <= 0 or not poll.poll(left * 1000):
            raise TimeoutError


def _nonsense_error(error: Exception) -> ReaderDiedError:
    return ReaderDiedError(f"the process that read it returned invalid data: {error}")


def _slow_error(seconds: float) -> TooSlowError:
    return TooSlowError(f"took longer than {seconds:.3g} s to read")


def _end_error(status: int, seconds: float) -> ReadingError:
    if status == -signal.SIGXCPU:
        return _slow_error(seconds)
    how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with {status}"
    died = _ReaderKilledError if status == -signal.SIGKILL else ReaderDiedError
    return died(f"the process that read it {how}")


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    path = str(Path(knowledge.__file__).resolve().parent.parent)
    return {**kept, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
