"""Defines the messages between the two processes, as frames of bytes, and the limits for reading.

A request consists of a line of JSON, the bytes of pictures and style sheets next to the document,
and the bytes of the document. A response is JSON as well. It is validated against its types and,
unlike a pickle, cannot run code.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import PurePosixPath
from struct import Struct

import orjson
from pydantic import TypeAdapter

from knowledge.documents import errors
from knowledge.documents.errors import ReadingError
from knowledge.documents.formats import Item
from knowledge.documents.interchange.mail_parsing import ParsedMail
from knowledge.documents.location import Location
from knowledge.documents.markup.page_links import PageLinks
from knowledge.isolation.preparation import Preparation

HEADER = Struct("!Qc?d")
"""The header of a response: the number of bytes that follow, their kind, whether the process ends
afterwards, and the processor time used in seconds.
"""
REQUEST_HEADER = Struct("!Qd")
"""The header of a request: the number of bytes that follow, and the seconds that it may take."""

_PREPARATION: TypeAdapter[Preparation] = TypeAdapter(Preparation)
_LINKS: TypeAdapter[PageLinks] = TypeAdapter(PageLinks)
_ITEMS: TypeAdapter[list[tuple[str, str, str, bool]]] = TypeAdapter(
    list[tuple[str, str, str, bool]]
)
_MAIL: TypeAdapter[ParsedMail] = TypeAdapter(ParsedMail)
_ERRORS: dict[str, type[ReadingError]] = {
    found.__name__: found
    for found in vars(errors).values()
    if isinstance(found, type) and issubclass(found, ReadingError)
}
CLOCK_FACTOR = 6.0
"""How much longer than its processor time a document may take on a busy machine."""


class Kind(bytes, Enum):
    """The kind of content of a response."""

    READY = b"R"
    PREPARATION = b"P"
    TITLE = b"T"
    ITEMS = b"I"
    LINKS = b"L"
    MAIL = b"A"
    ERROR = b"E"
    MEMORY = b"M"


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A document to read; `wanted` is the kind of response, such as a preparation.

    `most_characters` limits the text of the page; None means that only time and memory limit it.
    """

    item: Item
    path: PurePosixPath
    location: Location
    wanted: Kind = Kind.PREPARATION
    most_characters: int | None = None

    def encode(self) -> bytes:
        """Return the request as bytes."""
        fields = {
            "source": self.item.source,
            "place": self.item.place,
            "is_record": self.item.is_record,
            "path": str(self.path),
            "location": asdict(self.location),
            "wanted": self.wanted.value.decode(),
            "most_characters": self.most_characters,
            "beside": {address: len(data) for address, data in self.item.beside.items()},
        }
        parts = (json.dumps(fields).encode(), b"\n", *self.item.beside.values(), self.item.data)
        return b"".join(parts)


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """The limits for reading one document; a file with many documents may take more in total.

    `seconds` is processor time; the elapsed time may be up to `CLOCK_FACTOR` times as long.
    `memory_mb` is the memory that the reader process may use in addition to that of an idle one.
    """

    seconds: float = 20.0
    memory_mb: int = 512

    def seconds_for(self, size: int) -> float:
        """Return how many seconds all documents in a file of `size` bytes may take together."""
        return self.seconds * (1 + size // 1_000_000)


def decode_request(frame: bytes) -> ReadRequest:
    """Return the request in `frame`."""
    head, _, data = frame.partition(b"\n")
    fields = json.loads(head)
    stated = fields["location"]
    beside: dict[str, bytes] = {}
    for address, size in fields["beside"].items():
        beside[address], data = data[:size], data[size:]
    return ReadRequest(
        item=Item(fields["source"], data, fields["place"], fields["is_record"], beside),
        path=PurePosixPath(fields["path"]),
        location=Location(**{**stated, "folders": tuple(stated["folders"])}),
        wanted=Kind(fields["wanted"].encode()),
        most_characters=fields["most_characters"],
    )


def encode_preparation(preparation: Preparation) -> bytes:
    """Return a preparation as JSON."""
    return orjson.dumps(preparation)


def decode_preparation(body: bytes) -> Preparation:
    """Return a preparation; raises `ValueError` for anything else."""
    return _PREPARATION.validate_json(body)


def encode_items(items: Iterable[Item]) -> bytes:
    """Return the documents in one file as JSON."""
    return orjson.dumps(
        [(item.source, item.data.decode(), item.place, item.is_record) for item in items]
    )


def decode_items(body: bytes) -> list[Item]:
    """Return the documents in one file; raises `ValueError` for anything else."""
    return [
        Item(source, data.encode(), place, is_record)
        for source, data, place, is_record in _ITEMS.validate_json(body)
    ]


def encode_links(links: PageLinks) -> bytes:
    """Return the links in a page as JSON."""
    return orjson.dumps(links)


def decode_links(body: bytes) -> PageLinks:
    """Return the links in a page; raises `ValueError` for anything else."""
    return _LINKS.validate_json(body)


def encode_mail(mail: ParsedMail) -> bytes:
    """Return an email as JSON."""
    return orjson.dumps(mail)


def decode_mail(body: bytes) -> ParsedMail:
    """Return an email; raises `ValueError` for anything else."""
    return _MAIL.validate_json(body)


def encode_error(error: Exception) -> bytes:
    """Return an error as JSON, which contains the name of its class and its message."""
    message = str(error).encode("utf-8", "replace").decode()
    return orjson.dumps([type(error).__name__, message[:1000]])


def decode_error(body: bytes) -> ReadingError:
    """Return the error; an unknown one becomes an `UnforeseenError`."""
    name, message = (str(part) for part in orjson.loads(body))
    known = _ERRORS.get(name)
    if known is None:
        return errors.UnforeseenError(f"the reader failed with {name}: {message[:200]}")
    return known(message)
