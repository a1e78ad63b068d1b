"""Packs writes into the memory of a conversation."""

from collections.abc import Iterable

from broker.settle.layout import pack_memory_write
from broker.transport.scripts import Argument
from envelope.memory_write import Append, Delete, Increment, MemoryWrite, SetFields

SHORT = 64
"""Texts of fewer characters stay in the JSON that `ScriptCall.fold` writes."""


def encode_memory_write(write: MemoryWrite) -> Iterable[Argument]:
    """Return the arguments of a write."""
    ttl, keep = str(write.ttl_seconds) if not isinstance(write, Delete) else 0, 0
    values: list[Argument] = []
    match write:
        case Append():
            keep = write.keep
            values = [value.encode() for value in write.values]
        case SetFields():
            values = [_encode_long(part) for field in write.fields.items() for part in field]
        case Increment():
            added = write.fields.items()
            values = [part for name, by in added for part in (_encode_long(name), repr(by))]
        case Delete():
            pass
    head = pack_memory_write(kind=write.kind, ttl_seconds=ttl, keep=keep, values=len(values))
    return (*head, *values)


def _encode_long(text: str) -> Argument:
    """Return a short ASCII text as it is, for the JSON of the call; any other as bytes."""
    return text if len(text) < SHORT and text.isascii() else text.encode()
