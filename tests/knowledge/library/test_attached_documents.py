"""Documents of one conversation: how they are stored, and what a library finds of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from envelope.question import Question
from envelope.run import Run
from knowledge.chunking import ChunkText
from knowledge.index.embedded import open_embedded
from knowledge.library.attached_documents import AttachedDocument, is_attached_id
from knowledge.library.library import Library
from tests.knowledge.searching.conftest import identity

ID = f"attached:{'0' * 32}"
DOCUMENT = AttachedDocument(
    id=ID,
    name="contract.md",
    title="Contract",
    language="en",
    passages=(
        ChunkText("The provider keeps records.", ("Records",), "records"),
        ChunkText("Ünïcode, and a second passage."),
    ),
    groups=("legal", "sales"),
)


RUN = Run(Question(tenant="t", assistant="a", conversation_id="c", message_id="m"))


class OneConversation:
    """The documents of every conversation."""

    def __init__(self, *documents: AttachedDocument) -> None:
        self._documents = {document.id: document.encode() for document in documents}

    async def find(self, question: Question, document_ids: Sequence[str]) -> Mapping[str, bytes]:
        return {name: self._documents[name] for name in document_ids if name in self._documents}

    async def all(self, question: Question) -> Mapping[str, bytes]:
        return self._documents


def test_a_stored_document_is_read_as_it_was() -> None:
    assert AttachedDocument.decode(DOCUMENT.encode()) == DOCUMENT
    assert [chunk.chunk_id for chunk in DOCUMENT.chunks] == [f"{ID}#0", f"{ID}#1"]


def test_a_user_who_lacks_one_of_its_groups_does_not_see_an_attachment() -> None:
    assert DOCUMENT.is_visible_to(("sales", "legal", "hr"))
    assert not DOCUMENT.is_visible_to(("legal",))
    assert not DOCUMENT.is_visible_to(())


def test_only_ids_of_its_form_name_a_document_of_a_conversation() -> None:
    assert is_attached_id(ID)
    assert not is_attached_id("attached:handbook")
    assert not is_attached_id(f"{ID}#0")


async def test_a_library_finds_it_by_its_id_for_people_of_its_groups(tmp_path: Path) -> None:
    index = await open_embedded(tmp_path / "index", identity())
    library = Library(index)
    assert await library.read([ID], DOCUMENT.groups) == []

    library.attach(OneConversation(DOCUMENT))
    [found] = await library.read([ID, "nothing"], DOCUMENT.groups, RUN)

    assert (found.listed.id, found.listed.title, found.listed.source) == (
        ID,
        "Contract",
        "contract.md",
    )
    assert [section.text for section in found.sections] == [
        passage.text for passage in DOCUMENT.passages
    ]
    assert await library.read([ID], ("legal",), RUN) == []
    assert await library.read([ID], DOCUMENT.groups) == [], "outside of a question"
    assert await library.list_documents(DOCUMENT.groups) == []
    assert [document.id for document in await library.list_attached(DOCUMENT.groups, RUN)] == [ID]
    assert await library.list_attached(("legal",), RUN) == []
    await index.close()
