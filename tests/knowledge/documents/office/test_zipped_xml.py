"""Archives and XML that are traps: each is one clear line, in bounded time and memory."""

import io
import zipfile
from pathlib import PurePosixPath

import pytest

from knowledge.documents.errors import ReadingError, TooLargeError, WrongFormatError
from knowledge.documents.formats import Item
from knowledge.documents.location import locate
from knowledge.documents.office.zipped_xml import MOST_PARTS, ZippedXml, parse_xml
from knowledge.isolation.reader_process import ReaderProcess

NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def make_zip(**parts: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), data)
    return file.getvalue()


def read(reader: ReaderProcess, name: str, data: bytes) -> str:
    path = PurePosixPath(name)
    return reader.prepare(Item(name, data, name), path, locate(path, ())).page.content


def test_a_zip_bomb_is_one_clear_line(reader: ReaderProcess) -> None:
    bomb = make_zip(word__document_xml=b"<a>" + b" " * 300_000_000)

    assert len(bomb) < 400_000
    with pytest.raises(TooLargeError, match="a part can have at most"):
        read(reader, "bomb.docx", bomb)


def test_entities_that_multiply_are_refused(reader: ReaderProcess) -> None:
    entities = "".join(
        f'<!ENTITY e{number} "{f"&e{number - 1};" * 10}">' for number in range(1, 10)
    )
    bomb = f'<!DOCTYPE a [<!ENTITY e0 "lol">{entities}]><a>&e9;</a>'.encode()

    with pytest.raises(WrongFormatError, match="defines entities, which is not accepted"):
        read(reader, "bomb.docx", make_zip(word__document_xml=bomb))


def test_entities_that_name_a_file_are_refused() -> None:
    with pytest.raises(WrongFormatError, match="defines entities"):
        parse_xml(b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>', "a document")


def test_deep_nesting_is_one_clear_line(reader: ReaderProcess) -> None:
    deep = f'<w:document xmlns:w="{NAMESPACE}"><w:body>'.encode() + b"<w:p>" * 200_000

    with pytest.raises(ReadingError, match=r"expected|needed"):
        read(reader, "deep.docx", make_zip(word__document_xml=deep))


def test_more_parts_than_a_document_may_have_are_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(MOST_PARTS + 1):
            archive.writestr(f"{number}", b"")

    with pytest.raises(TooLargeError, match="parts"):
        ZippedXml(file.getvalue(), "a document")


def test_a_damaged_archive_is_one_clear_line() -> None:
    data = bytearray(make_zip(word__document_xml=b"<a>" + bytes(range(256)) * 50))
    data[60:90] = b"\x00" * 30

    with pytest.raises(WrongFormatError, match="damaged"):
        ZippedXml(bytes(data), "a document").read("word/document.xml")


def test_the_names_of_parts_may_have_the_separator_of_windows() -> None:
    data = make_zip(**{"word\\document_xml": b"<a/>"})

    assert ZippedXml(data, "a document").parse("word/document.xml").tag == "a"
