"""Documents that a person gave to one conversation: how they are stored and found by id.

Attachments are not indexed; they can be read only by id.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import orjson

from envelope.question import Question
from knowledge.chunking import ChunkText, name_chunks
from knowledge.document import Chunk
from knowledge.index.listing import ListedDocument

_ID = re.compile(r"attached:[0-9a-f]{32}")


class AttachmentSource(Protocol):
    """Finds the stored documents of the conversation of a question."""

    async def find(
        self, question: Question, document_ids: Sequence[str]
    ) -> Mapping[str, bytes]: ...

    async def all(self, question: Question) -> Mapping[str, bytes]: ...


@dataclass(frozen=True, slots=True)
class AttachedDocument:
    """A document of one conversation; `groups` are those that a reader must have, all of them.

    `name` is the file name that the person gave, `language` in ISO 639-1.
    """

    id: str
    name: str
    title: str
    language: str
    passages: tuple[ChunkText, ...]
    groups: tuple[str, ...] = ()

    def encode(self) -> bytes:
        """Return the document in the form in which it is stored."""
        return zlib.compress(orjson.dumps(self))

    @classmethod
    def decode(cls, value: bytes) -> "AttachedDocument":
        """Return a stored document."""
        fields = orjson.loads(zlib.decompress(value))
        passages = tuple(
            ChunkText(field["text"], tuple(field["heading_path"]), field["anchor"])
            for field in fields.pop("passages")
        )
        return cls(**{**fields, "passages": passages, "groups": tuple(fields["groups"])})

    def is_visible_to(self, groups: Sequence[str]) -> bool:
        """Return whether a person of these groups may read it."""
        return set(self.groups) <= set(groups)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The passages with their ids."""
        return name_chunks(self.passages, self.id)

    @property
    def listed(self) -> ListedDocument:
        """The entry that a document of an index has in a list."""
        return ListedDocument(
            id=self.id,
            title=self.title,
            source=self.name,
            root="",
            language=self.language,
            chunks=len(self.passages),
            content_hash=self.id,
            groups=self.groups,
        )


def is_attached_id(document_id: str) -> bool:
    """Return whether an id names a document of a conversation, and none of an index."""
    return _ID.fullmatch(document_id) is not None
