"""Defines what the two processes send each other: frames of bytes.

A request is a line of JSON and the bytes of the document. An answer is JSON, too: what comes from
the process that reads is checked against its types, and never runs code as a pickle would.
"""

import json
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import PurePosixPath
from struct import Struct

import orjson
from pydantic import TypeAdapter

from knowledge.documents import errors
from knowledge.documents.errors import ReadingError
from knowledge.documents.formats import Item
from knowledge.documents.location import Location
from knowledge.isolation.preparation import Preparation

HEADER = Struct("!Qc?")
"""Of an answer: how many bytes follow, their kind, and whether the process ends after it."""
REQUEST_HEADER = Struct("!Qd")
"""Of a request: how many bytes follow, and the seconds that it may take."""

_PREPARATION: TypeAdapter[Preparation] = TypeAdapter(Preparation)
_ERRORS: dict[str, type[ReadingError]] = {
    found.__name__: found
    for found in vars(errors).values()
    if isinstance(found, type) and issubclass(found, ReadingError)
}


class Kind(bytes, Enum):
    """What an answer holds."""

    READY = b"R"
    PREPARATION = b"P"
    TITLE = b"T"
    ERROR = b"E"
    MEMORY = b"M"


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A document to read; `title_only` asks for nothing but its title."""

    item: Item
    path: PurePosixPath
    location: Location
    title_only: bool = False

    def encode(self) -> bytes:
        """Return the request as bytes."""
        fields = {
            "source": self.item.source,
            "place": self.item.place,
            "path": str(self.path),
            "location": asdict(self.location),
            "title_only": self.title_only,
        }
        return json.dumps(fields).encode() + b"\n" + self.item.data


def decode_request(frame: bytes) -> ReadRequest:
    """Return the request that `frame` holds."""
    head, _, data = frame.partition(b"\n")
    fields = json.loads(head)
    stated = fields["location"]
    return ReadRequest(
        item=Item(fields["source"], data, fields["place"]),
        path=PurePosixPath(fields["path"]),
        location=Location(**{**stated, "folders": tuple(stated["folders"])}),
        title_only=fields["title_only"],
    )


def encode_preparation(preparation: Preparation) -> bytes:
    """Return a preparation as JSON."""
    return orjson.dumps(preparation)


def decode_preparation(body: bytes) -> Preparation:
    """Return a preparation; raise `ValueError` for anything else."""
    return _PREPARATION.validate_json(body)


def encode_error(error: Exception) -> bytes:
    """Return an error as JSON: its class's name and its message."""
    told = str(error).encode("utf-8", "replace").decode()
    return orjson.dumps([type(error).__name__, told[:1000]])


def decode_error(body: bytes) -> ReadingError:
    """Return the error; one that no reader announces is an `UnforeseenError`."""
    name, message = (str(part) for part in orjson.loads(body))
    known = _ERRORS.get(name)
    if known is None:
        return errors.UnforeseenError(f"its reader failed with {name}: {message[:200]}")
    return known(message)
