"""Chunks put together again are the sections they were cut from."""

from dataclasses import replace
from pathlib import Path

import pytest

from knowledge import chunking
from knowledge.document import Chunk
from knowledge.documents.markup import markdown
from knowledge.documents.page import Block, BlockKind, Page
from knowledge.sections import document_of, join_chunks

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "examples").rglob("*.md"))


def words(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_cut_and_joined_says_everything_once(path: Path) -> None:
    page = replace(markdown.read(path.read_bytes(), path.name), name="page")

    sections = join_chunks(chunking.name_chunks(chunking.passages(page), "page"))

    assert sections
    for section in sections:
        text = "\n\n".join(_blocks_of(page.blocks, section.anchor))
        if "|" not in text:  # a long table repeats its header
            assert words(section.text) == words(text) or not text


def test_the_overlap_of_two_chunks_consists_of_whole_words() -> None:
    chunks = [
        Chunk(chunk_id="d#0", ordinal=0, text="Choose a"),
        Chunk(chunk_id="d#1", ordinal=1, text="a rule. Save it."),
        Chunk(chunk_id="d#2", ordinal=2, text="Save it. it works."),
        Chunk(chunk_id="d#3", ordinal=3, text="s. Done."),
    ]

    [section] = join_chunks(chunks)

    assert section.text == "Choose a rule. Save it. it works.\n\ns. Done."
    assert section.chunk_ids == {"d#0", "d#1", "d#2", "d#3"}


def test_rows_of_a_table_with_a_long_header_stay_rows() -> None:
    header = f"| Name | {'what the law says about the duty ' * 11}| Comment |"
    rows = [f"| duty {number} | {'yes, if it was changed ' * 8}| no |" for number in range(6)]
    table = "\n".join((header, "|---|---|---|", *rows))
    page = Page(source="duties.md", title="Duties", blocks=(Block(BlockKind.TABLE, table),))

    [section] = join_chunks(chunking.name_chunks(chunking.passages(page), "page"))

    assert len(chunking.name_chunks(chunking.passages(page), "page")) > 2
    assert section.text.startswith(header)
    assert [line for line in section.text.split("\n") if line.startswith("| duty")] == rows


@pytest.mark.parametrize("info", ["", "python"])
def test_parts_of_long_code_stay_code(info: str) -> None:
    lines = [f"run step {number} of the long script with care" for number in range(200)]
    code = "\n".join((f"```{info}", *lines, "```"))
    page = Page(source="script.md", title="Script", blocks=(Block(BlockKind.CODE, code),))

    [section] = join_chunks(chunking.name_chunks(chunking.passages(page), "page"))

    parts = section.text.split("\n\n")
    assert len(parts) > 1
    assert all(part.startswith(f"```{info}\n") and part.endswith("\n```") for part in parts)
    assert [line for part in parts for line in part.split("\n")[1:-1]] == lines


def test_a_chunk_names_its_document_also_when_that_has_a_number_sign() -> None:
    assert document_of("guides/c#.md#12") == "guides/c#.md"


def _blocks_of(blocks: tuple[Block, ...], anchor: str | None) -> list[str]:
    """Return the texts below the heading with this anchor."""
    found: list[str] = []
    inside = anchor is None
    for block in blocks:
        if block.kind is BlockKind.HEADING:
            inside = block.anchor == anchor
        elif inside:
            found.append(block.text)
    return found
