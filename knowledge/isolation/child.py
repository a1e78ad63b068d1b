"""The main loop of a reader process, which sets its own limits, then handles one request after the
other.

The limits are enforced by the kernel, so that they apply inside C code and endless loops, even
after the parent has ended. Time is measured as processor time, so that a busy machine does not make
documents appear malicious.
"""

import gc
import math
import os
import resource
import sys
from typing import BinaryIO

from knowledge.documents import formats
from knowledge.documents.furniture import name_folder
from knowledge.documents.interchange.mail_parsing import parse_mail
from knowledge.documents.markup.page_links import read_links
from knowledge.isolation.messages import (
    HEADER,
    REQUEST_HEADER,
    Kind,
    ReadRequest,
    decode_request,
    encode_error,
    encode_items,
    encode_links,
    encode_mail,
    encode_preparation,
)
from knowledge.isolation.preparation import prepare
from knowledge.isolation.process_memory import forgo_privileges, hide_memory

_SWEEP_BYTES = 1_000_000


def main() -> None:
    """Handle requests from standard input, writing the responses to standard output, until there
    are no more requests.
    """
    hide_memory()
    forgo_privileges()
    memory = int(sys.argv[1]) * 1024 * 1024
    requests, answers = _own_streams()
    # Looking for garbage again and again in a tree that grows takes most of the time of reading it.
    gc.disable()
    gc.freeze()
    _limit(memory)
    ready_bytes = _resident_bytes()
    _send(answers, Kind.READY, b"", ends=False, seconds=0.0)
    unswept = 0
    while len(header := requests.read(REQUEST_HEADER.size)) == REQUEST_HEADER.size:
        size, seconds = REQUEST_HEADER.unpack(header)
        began = _processor_seconds()
        _limit_processor(began + seconds)
        kind, body = _answer(requests, size)
        ends = kind is Kind.MEMORY or _resident_bytes() - ready_bytes > memory // 2
        _send(answers, kind, body, ends=ends, seconds=_processor_seconds() - began)
        if ends:
            return
        unswept += size + len(body)
        if unswept > _SWEEP_BYTES:
            gc.collect()
            # What is left is kept for the next documents, such as the rules of a style sheet.
            gc.freeze()
            unswept = 0


def _own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Keep the streams private, so that output printed by a library cannot be mistaken for a
    response.
    """
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    return requests, answers


def _limit(memory: int) -> None:
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_AS, _present_bytes() + memory)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _limit_processor(until: float) -> None:
    # The kernel counts whole seconds.
    allowed = math.ceil(until)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard == resource.RLIM_INFINITY or allowed < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (allowed, hard))


def _lower(kind: int, limit: int) -> None:
    """Set a limit, unless a lower one is already set."""
    soft, _ = resource.getrlimit(kind)
    if soft == resource.RLIM_INFINITY or limit < soft:
        resource.setrlimit(kind, (limit, limit))


def _present_bytes() -> int:
    """Return the address space in use. macOS does not report it, so nothing is limited there."""
    pages = _pages()
    return 1024 * 1024 * 1024 if pages is None else pages[0] * resource.getpagesize()


def _resident_bytes() -> int:
    """Return the memory in use, or 0 if the system does not report it.

    The peak from `getrusage` cannot be used, because it starts with that of the parent process.
    """
    pages = _pages()
    return 0 if pages is None else pages[1] * resource.getpagesize()


def _pages() -> tuple[int, int] | None:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            size, resident = file.read().split()[:2]
    except OSError:
        return None
    return int(size), int(resident)


def _answer(requests: BinaryIO, size: int) -> tuple[Kind, bytes]:
    try:
        return _read(decode_request(requests.read(size)))
    except MemoryError:
        return Kind.MEMORY, b""
    except Exception as error:  # noqa: BLE001 - any error of a library is reported
        return Kind.ERROR, encode_error(error)


def _read(request: ReadRequest) -> tuple[Kind, bytes]:
    if request.wanted is Kind.ITEMS:
        return Kind.ITEMS, encode_items(formats.split(request.path, request.item.data))
    if request.wanted is Kind.LINKS:
        return Kind.LINKS, encode_links(read_links(request.item.data))
    if request.wanted is Kind.MAIL:
        return Kind.MAIL, encode_mail(parse_mail(request.item.data))
    if request.wanted is Kind.TITLE:
        page = formats.read(request.item, request.path, request.location)
        return Kind.TITLE, name_folder(page, request.location.name).encode()
    return Kind.PREPARATION, encode_preparation(
        prepare(request.item, request.path, request.location, request.most_characters)
    )


def _send(answers: BinaryIO, kind: Kind, body: bytes, *, ends: bool, seconds: float) -> None:
    answers.write(HEADER.pack(len(body), kind.value, ends, seconds))
    answers.write(body)
    answers.flush()


if __name__ == "__main__":
    main()
