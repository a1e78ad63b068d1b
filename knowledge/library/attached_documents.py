"""Documents that a person attached to one conversation: how they are stored and found by id.

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
    """A document of one conversation; a reader must be in all of its `groups`.

    `name` is the file name given by the person, and `language` is an ISO 639-1 code.
    """

    id: str
    name: str
    title: str
    language: str
    passages: tuple[ChunkText, ...]
    groups: tuple[str, ...] = ()

    def encode(self) -> bytes:
        """Return the document in its stored format."""
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
        """Return whether a person in these groups may read it."""
        return set(self.groups) <= set(groups)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The passages, with their ids."""
        return name_chunks(self.passages, self.id)

    @property
    def listed(self) -> ListedDocument:
        """The entry that represents it in a list, like that of an indexed document."""
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
    """Return whether an id refers to a document of a conversation, rather than an indexed one."""
    return _ID.fullmatch(document_id) is not None
