"""Data that the processes of an ingestion exchange: documents in transit, and paid vectors.

Documents are larger than the maximum size of an envelope, so they are stored in pieces, separately
from the messages that refer to them. The sender removes its data, and the data of a killed process
expires.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from pydantic import BaseModel

from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

PIECE_BYTES = 1 << 20
KEPT_SECONDS = 3600


class Parcel(BaseModel, frozen=True, extra="ignore"):
    """The name of the stored data, and the number of its pieces."""

    name: str
    pieces: int


class RedisExchange:
    """Sends bytes through Redis in pieces of one megabyte."""

    def __init__(self, client: "Redis") -> None:
        self._client = client

    async def send(self, data: bytes) -> Parcel:
        """Send bytes under a new name."""
        pieces = range(0, max(1, len(data)), PIECE_BYTES)
        parcel = Parcel(name=uuid4().hex, pieces=len(pieces))
        for key, start in zip(_name_pieces(parcel), pieces, strict=True):
            piece = data[start : start + PIECE_BYTES]
            await await_answer(self._client.set(key, piece, ex=KEPT_SECONDS))
        return parcel

    async def receive(self, parcel: Parcel) -> bytes | None:
        """Return the data of a parcel, or None if it was removed or has expired."""
        data = bytearray()
        for key in _name_pieces(parcel):
            piece: bytes | None = await await_answer(self._client.get(key))
            if piece is None:
                return None
            data += piece
        return bytes(data)

    async def remove(self, parcel: Parcel) -> None:
        """Remove the data of a parcel, if it still exists."""
        for key in _name_pieces(parcel):
            await await_answer(self._client.delete(key))


class RedisKeptAnswers:
    """Stores paid answers of models until their documents are written, possibly by another
    process.
    """

    def __init__(self, client: "Redis") -> None:
        self._client = client

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the stored answers of these keys."""
        pipeline = self._client.pipeline(transaction=False)
        for key in keys:
            pipeline.get(_name_answer(key))
        found: list[bytes | None] = await await_answer(pipeline.execute())
        return {key: answer for key, answer in zip(keys, found, strict=True) if answer is not None}

    async def put(self, answers: Mapping[str, bytes]) -> None:
        """Store answers by their keys."""
        pipeline = self._client.pipeline(transaction=False)
        for key, answer in answers.items():
            pipeline.set(_name_answer(key), answer, ex=KEPT_SECONDS)
        await await_answer(pipeline.execute())

    async def remove(self, keys: Collection[str]) -> None:
        """Remove answers that are no longer needed."""
        pipeline = self._client.pipeline(transaction=False)
        for key in keys:
            pipeline.delete(_name_answer(key))
        await await_answer(pipeline.execute())


def _name_pieces(parcel: Parcel) -> list[str]:
    return [f"rd:parcel:{parcel.name}:{number}" for number in range(parcel.pieces)]


def _name_answer(key: str) -> str:
    return f"rd:paid:{key}"
