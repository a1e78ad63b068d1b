"""Files that people give to a conversation: read like all documents, or refused with the reason."""

from pathlib import PurePosixPath

import pytest

from knowledge.documents.errors import (
    NoTextError,
    PicturesError,
    ReadingError,
    TooLargeError,
    WrongFormatError,
)
from knowledge.documents.formats import Item
from knowledge.documents.location import Location
from knowledge.isolation import preparation
from knowledge.isolation.preparation import Preparation
from knowledge.library import attachment_reading
from knowledge.library.attached_documents import AttachedDocument
from knowledge.library.attachment_reading import clean_name, read_attachment
from knowledge.library.library import ChunkWithVector, WholeDocument
from tests.knowledge.documents import layouts

CONTRACT = b"# Service contract\n\nThe provider keeps records of all transfers.\n"


class PlainReader:
    """Reads in this process."""

    def prepare(
        self, item: Item, path: PurePosixPath, location: Location, *, most_characters: int | None
    ) -> Preparation:
        return preparation.prepare(item, path, location, most_characters)


async def read(name: str, data: bytes, *groups: str) -> AttachedDocument:
    return await read_attachment(
        PlainReader(), name, data, groups=groups, language_of=lambda _text: "en"
    )


async def test_a_file_becomes_a_document_with_title_passages_and_groups() -> None:
    document = await read("Contract.md", CONTRACT, "sales", "legal", "sales")

    assert (document.name, document.title, document.language) == (
        "Contract.md",
        "Service contract",
        "en",
    )
    assert document.groups == ("legal", "sales")
    assert "records of all transfers" in document.passages[0].text


async def test_the_same_file_is_the_same_document_and_another_one_is_not() -> None:
    first, again = await read("a.md", CONTRACT), await read("a.md", CONTRACT)
    other, renamed = await read("a.md", CONTRACT + b"!"), await read("b.md", CONTRACT)

    assert first == again
    assert len({first.id, other.id, renamed.id}) == 3


async def test_claims_of_a_file_about_its_id_and_groups_change_nothing() -> None:
    claimed = b"---\nid: handbook\ngroups: [board]\nurl: https://acme.test/x\n---\n" + CONTRACT

    document = await read("contract.md", claimed)

    assert document.id.startswith("attached:")
    assert document.groups == ()


@pytest.mark.parametrize(
    ("name", "data", "expected", "words"),
    [
        ("a.md", b"", NoTextError, "the file is empty"),
        ("a.md", b" \n\n ", NoTextError, "the file is empty"),
        ("a.docx", b"PK no archive", ReadingError, "expected"),
        ("a.exe", b"MZ", WrongFormatError, "expected one of"),
        ("a", b"text", WrongFormatError, "no suffix"),
        ("many.jsonl", b'{"text": "one"}', WrongFormatError, "several documents"),
        ("mail.mbox", b"From a", WrongFormatError, "several documents"),
    ],
)
async def test_bad_input_is_refused_with_the_reason(
    name: str, data: bytes, expected: type[ReadingError], words: str
) -> None:
    with pytest.raises(expected, match=words):
        await read(name, data)


async def test_a_scan_is_refused_as_pictures() -> None:
    with pytest.raises(PicturesError, match="pictures"):
        await read("scan.pdf", layouts.scan(2))


async def test_too_much_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachment_reading, "MOST_CHARACTERS", 20)

    with pytest.raises(TooLargeError, match="expected at most 20 characters"):
        await read("a.md", CONTRACT)


def test_a_name_is_one_line_without_folders() -> None:
    assert clean_name("../../etc/pass\nwd.md") == "pass wd.md"
    assert clean_name("C:\\files\\contract.pdf") == "contract.pdf"
    assert len(clean_name("x" * 500 + ".pdf")) == 201


async def test_the_text_of_a_whole_document_has_its_headings() -> None:
    sections = "Preamble.\n\n# Sale\n\nNo sale. [1]\n\n# Sources\n\n1. Law > Sale"

    result = await read("act.md", f"# Act\n\n{sections}".encode())

    chunks = tuple(ChunkWithVector(chunk, None) for chunk in result.chunks)
    assert WholeDocument(result.listed, (result.title,), result.name, chunks).text == sections
