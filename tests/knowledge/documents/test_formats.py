from pathlib import PurePosixPath

import pytest

from knowledge.documents.formats import explain_skip
from tests.knowledge.documents.conftest import Desk


async def test_skipped_files_of_a_folder_are_listed_with_their_reasons(desk: Desk) -> None:
    desk.write("a.md", "# A\n\nText.\n")
    desk.write("logo.png", b"\x89PNG")
    desk.write("old.doc", b"\xd0\xcf")
    desk.write("package.json", '{"name": "desk"}')
    desk.write("Makefile", "all:\n")

    result = await desk.ingest()

    assert (result.added, result.failed) == (1, ())
    assert dict(result.skipped) == {
        "Makefile": "the file has no suffix, so its format is unknown",
        "logo.png": "a picture; it is shown with the pages that refer to it",
        "old.doc": "this text document format is not supported; open it and save it as .docx or "
        ".pdf",
        "package.json": "the file contains data, but no prepared documents, articles or API "
        "description (OpenAPI)",
    }


async def test_many_files_of_one_suffix_are_all_counted_and_some_are_named(desk: Desk) -> None:
    for number in range(12):
        desk.write(f"{number:02}.png", b"\x89PNG")

    (left_out,) = (await desk.ingest()).sum_left_out()

    assert left_out.count == 12
    assert str(left_out).startswith("12 files left out (00.png, 01.png, 02.png, ")


@pytest.mark.parametrize("name", ["a.docx", "a.pdf", "a.xlsx", "a.epub", "a.eml"])
async def test_a_file_without_bytes_is_called_empty(desk: Desk, name: str) -> None:
    desk.write(name, b"")

    assert (await desk.ingest()).failed == ((name, "the file is empty"),)


async def test_a_file_without_text_is_reported_with_what_was_left_out(desk: Desk) -> None:
    name = "urn:oasis:names:tc:opendocument:xmlns"
    desk.write(
        "plan.fodt",
        f"<o:document xmlns:o='{name}:office:1.0' xmlns:d='{name}:drawing:1.0'><o:body><o:text>"
        "<d:frame><d:object-ole/></d:frame></o:text></o:body></o:document>",
    )

    assert (await desk.ingest()).warned == (
        (
            "plan.fodt",
            "the document contains no text; 1 embedded file left out: the format is not read "
            "inside other files",
        ),
    )


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.html"])
async def test_a_pdf_with_the_suffix_of_a_text_is_not_read_as_text(desk: Desk, name: str) -> None:
    desk.write(name, b"%PDF-1.7\n1 0 obj <</Type /Catalog>> endobj\n")

    suffix = PurePosixPath(name).suffix
    reason = f"the name ends with {suffix}, but the content is .pdf"
    assert (await desk.ingest()).failed == ((name, reason),)


def test_a_suffix_that_nobody_knows_has_a_reason_too() -> None:
    assert explain_skip(PurePosixPath("a.xyz")) == "this format is not supported"


async def test_an_interface_is_ingested_as_one_document_for_each_operation(desk: Desk) -> None:
    paths = "{'/a/{id}': {get: {summary: Find}}, /b: {post: {summary: Make}}}"
    desk.write("api.yaml", f"openapi: 3.1.0\ninfo: {{title: Things}}\npaths: {paths}\n")

    first = await desk.ingest()
    second = await desk.ingest()

    assert set(desk.index.documents) == {
        "docs/api.yaml/overview",
        "docs/api.yaml/GET/a/{id}",
        "docs/api.yaml/POST/b",
    }
    assert (first.added, second.unchanged, second.removed) == (3, 3, 0)


async def test_a_damaged_interface_keeps_what_is_indexed(desk: Desk) -> None:
    desk.write("api.yaml", "openapi: 3.1.0\npaths: {/b: {post: {summary: Make}}}\n")
    await desk.ingest()
    desk.write("api.yaml", "openapi: [")

    result = await desk.ingest()

    assert result.failed[0][0] == "api.yaml"
    assert len(desk.index.documents) == 2
