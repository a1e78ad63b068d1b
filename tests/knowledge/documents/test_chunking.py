from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citations.verbatim import keep_literal
from knowledge import chunking
from knowledge.document import Chunk, Document
from knowledge.documents.markup import markdown
from knowledge.documents.page import Block, BlockKind, Page


def cut(text: str, title: str = "Guide") -> tuple[Chunk, ...]:
    page = Page(source="guide.md", title=title, blocks=markdown.blocks_of(text))
    return chunking.name_chunks(chunking.passages(page), "guide")


def prose(sentence_count: int) -> str:
    return " ".join(
        f"Sentence number {n} says something about rates." for n in range(sentence_count)
    )


def test_long_text_becomes_chunks_of_about_seventy_five_words() -> None:
    chunks = cut(prose(100))

    weights = [chunking.weight(chunk.text) for chunk in chunks]
    assert max(weights) <= chunking.WORDS
    assert min(weights[:-1]) >= chunking.WORDS - 10


def test_neighbours_overlap_by_whole_sentences() -> None:
    for before, after in pairwise(cut(prose(60))):
        first = next(chunking.sentences(after.text))

        assert first in before.text
        assert not before.text.startswith(first)


def test_a_chunk_never_crosses_a_heading_and_knows_its_place() -> None:
    chunks = cut(
        "# Guide\n\nLead.\n\n## Set up\n\nFirst.\n\n### On Linux\n\nSecond.\n\n## Use\n\nThird."
    )

    assert [(chunk.text, chunk.heading_path, chunk.anchor) for chunk in chunks] == [
        ("Lead.", (), "guide"),
        ("First.", ("Set up",), "set-up"),
        ("Second.", ("Set up", "On Linux"), "on-linux"),
        ("Third.", ("Use",), "use"),
    ]
    assert [chunk.chunk_id for chunk in chunks] == ["guide#0", "guide#1", "guide#2", "guide#3"]


def test_a_heading_with_nothing_below_it_can_still_be_found() -> None:
    chunks = cut("# Guide\n\n## Empty\n\n## Above\n\n### Below\n\nText.")

    assert [(chunk.text, chunk.heading_path) for chunk in chunks] == [
        ("Empty", ("Empty",)),
        ("Text.", ("Above", "Below")),
    ]


def test_a_page_of_a_title_alone_has_one_chunk() -> None:
    assert [chunk.text for chunk in cut("# Guide\n")] == ["Guide"]


def test_code_is_never_split_below_its_bound() -> None:
    code = "```python\n" + "\n".join(f"value_{n} = call({n})" for n in range(100)) + "\n```"

    chunks = cut(f"{prose(5)}\n\n{code}\n\n{prose(5)}")

    assert sum(code in chunk.text for chunk in chunks) == 1


def test_code_beyond_its_bound_becomes_fences_of_whole_lines() -> None:
    lines = [f"value_{n} = call({n})" for n in range(1000)]

    chunks = cut("```python\n" + "\n".join(lines) + "\n```")

    assert len(chunks) > 1
    assert all(chunk.text.startswith("```python\n") for chunk in chunks)
    assert all(chunk.text.endswith("\n```") for chunk in chunks)
    results = [line for chunk in chunks for line in chunk.text.split("\n")[1:-1]]
    assert results == lines


def test_a_small_table_is_whole_and_a_large_one_repeats_its_header() -> None:
    header = "| plan | price |\n|---|---|"
    rows = [f"| plan {n} | {n} cents a message |" for n in range(60)]

    small, large = cut(f"{header}\n{rows[0]}\n"), cut("\n".join((header, *rows)))

    assert [chunk.text for chunk in small] == [f"{header}\n{rows[0]}"]
    assert len(large) > 1
    assert all(chunk.text.startswith(header) for chunk in large)
    assert [row for chunk in large for row in chunk.text.split("\n")[2:]] == rows


def table_page(*rows: list[str]) -> Page:
    lines = [f"| {' | '.join(row)} |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:])]
    return Page("t.md", "T", (Block(BlockKind.TABLE, "\n".join(lines)),))


def rows_of(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in row[1:-1].split("|")] for row in text.split("\n")]


def test_a_long_row_becomes_rows_with_its_label_below_the_same_columns() -> None:
    steps = [f"Step {step} needs care." for step in range(60)]
    page = table_page(
        ["Hose", "Instruction", "Pressure"],
        ["H1", " ".join(steps), "5 bar"],
        ["H2", "None.", "7 bar"],
    )

    chunks = [rows_of(chunk.text) for chunk in chunking.name_chunks(chunking.passages(page), "t")]

    rows = [row for header, _, *body in chunks for row in body]
    assert all(header == ["Hose", "Instruction", "Pressure"] for header, *_ in chunks)
    assert len(chunks) > 1
    assert {row[0]: row[2] for row in rows if row[2]} == {"H1": "5 bar", "H2": "7 bar"}
    assert " ".join(row[1] for row in rows if row[0] == "H1") == " ".join(steps)


@pytest.mark.parametrize("count", [40, 150])
def test_a_table_of_many_columns_keeps_the_name_of_every_column_and_row(count: int) -> None:
    names = ["Device", *(f"Attribute number {n}" for n in range(1, count))]
    page = table_page(names, *([f"D{r}", *(f"v{r}.{n}" for n in range(1, count))] for r in "123"))

    chunks = [rows_of(chunk.text) for chunk in chunking.name_chunks(chunking.passages(page), "t")]

    read = {
        (row[0], name): value
        for header, _, *body in chunks
        for row in body
        for name, value in zip(header[1:], row[1:], strict=True)
    }
    assert read == {
        (f"D{row}", f"Attribute number {n}"): f"v{row}.{n}"
        for row in "123"
        for n in range(1, count)
    }


def test_a_long_name_of_a_column_is_stated_once_and_stays_above_every_row() -> None:
    name = " ".join(f"Condition {n} holds." for n in range(60))
    page = table_page(
        ["Device", name, "Price"], *([f"D{n}", f"v{n}", f"{n} EUR"] for n in range(60))
    )

    chunks = [rows_of(chunk.text) for chunk in chunking.name_chunks(chunking.passages(page), "t")]

    stated = [chunk for chunk in chunks if len(chunk) == 2]
    assert name in " ".join(header[1] for header, _ in stated)
    tables = [chunk for chunk in chunks if len(chunk) > 2]
    assert len(tables) > 1
    assert {(first, second[:9], last) for (first, second, last), *_ in tables} == {
        ("Device", "Condition", "Price")
    }
    rows = [row for _, _, *body in tables for row in body]
    assert rows == [[f"D{n}", f"v{n}", f"{n} EUR"] for n in range(60)]


def test_a_row_with_more_cells_than_a_long_header_keeps_names_and_label() -> None:
    names = ["Device", *(f"Attribute number {n}" for n in range(1, 40))]
    rows = ([f"D{r}", *(f"v{r}.{n}" for n in range(1, 42))] for r in "123")

    chunks = [
        rows_of(chunk.text)
        for chunk in chunking.name_chunks(chunking.passages(table_page(names, *rows)), "t")
    ]

    read = {
        (row[0], value): name
        for header, _, *body in chunks
        for row in body
        for name, value in zip(header[1:], row[1:], strict=True)
    }
    assert read == {
        (f"D{row}", f"v{row}.{n}"): f"Attribute number {n}" if n < 40 else ""
        for row in "123"
        for n in range(1, 42)
    }


@pytest.mark.parametrize("kind", [BlockKind.TEXT, BlockKind.ITEM])
def test_every_part_of_struck_out_text_is_marked(kind: BlockKind) -> None:
    old = [f"The fare of line {n} is {n} euros." for n in range(60)]
    text = f"Valid since May. ~~{' '.join(old)}~~ The fare is `~~` 5 euros, or ~~ 7."
    page = Page("t.md", "T", (Block(kind, text),))

    chunks = chunking.name_chunks(chunking.passages(page), "t")

    assert len(chunks) > 2
    assert all(f"~~{line}~~" in "".join(c.text for c in chunks) for line in old)
    assert not [c for c in chunks for line in old if line in c.text.replace(f"~~{line}~~", "")]
    assert chunks[-1].text.endswith("~~ The fare is `~~` 5 euros, or ~~ 7.")


def test_code_in_a_sentence_is_not_split() -> None:
    code = '`echo "One. Two.  Three." && run --all`'

    chunks = cut(f"{prose(9)} Then type {code} {'and wait ' * 40} and repeat {code} again.")

    assert sum(chunk.text.count(code) for chunk in chunks) == 2
    assert sum(chunk.text.count("echo") for chunk in chunks) == 2


def test_a_number_in_writing_without_spaces_is_not_cut() -> None:
    amount = "\uff11\uff0c\uff12\uff13\uff14\uff0c\uff15\uff16\uff17\u5186\u3001"

    chunks = cut("\u8aad" * 7 + f"\u91d1\u984d{amount}" * 100)

    assert sum(chunk.text.count(amount) for chunk in chunks) == 100


def test_a_long_line_of_code_is_cut_between_words() -> None:
    line = " ".join(f"value_{number}={number}" for number in range(1000))

    chunks = cut(f"```\n{line}\n```")

    parts = [chunk.text.removeprefix("```\n").removesuffix("\n```") for chunk in chunks]
    assert len(parts) > 1
    assert "".join(parts) == line


LONG_WORDS = ["abcdefghijklmno"] * 66
HOSTILE = {
    "a header much longer than its rows": lambda size: [
        "|".join(LONG_WORDS), "|-|", *["a|b|c|d|e|f|g|h|i|j|k"] * (size // 20),
    ],
    "a header of empty cells": lambda size: [
        "|" * 2_000, "|-|", *["a|b|c|d|e|f|g|h|i|j|k"] * (size // 20),
    ],
    "a header of spaces": lambda size: [
        f"|{' ' * 1_000}|", "|-|", *["a|b|c|d|e|f|g|h|i|j|k"] * (size // 20),
    ],
    "a delimiter row much longer than the rows": lambda size: [
        "|a|b|", "|-" * 2_000, *["a|b|c|d|e|f|g|h|i|j|k"] * (size // 20),
    ],
    "one row": lambda size: ["|".join(LONG_WORDS), "|-|", "a|" * (size // 2)],
    "rows of empty cells": lambda size: ["|".join(LONG_WORDS), "|-|", *["||||||||"] * (size // 9)],
}  # fmt: skip


@pytest.mark.parametrize("rows", HOSTILE.values(), ids=HOSTILE)
def test_a_table_grows_by_a_bounded_factor_whatever_its_header(
    rows: Callable[[int], list[str]],
) -> None:
    for size in (2_000, 20_000, 200_000):
        table = "\n".join(rows(size))
        page = Page(source="t.md", title="T", blocks=(Block(BlockKind.TABLE, table),))

        written = sum(
            len(chunk.text) for chunk in chunking.name_chunks(chunking.passages(page), "t")
        )

        assert written <= (chunking.HEADER_SHARE + 2) * len(table) + 2_000


def test_headings_above_a_chunk_are_repeated_up_to_the_size_of_a_chunk() -> None:
    headings = [f"{'#' * level} {f'level{level} ' * 60}" for level in range(1, 6)]
    parts = [f"###### part{n}\n\na{n}" for n in range(50)]

    chunks = cut("\n\n".join((*headings, *parts)))

    document = Document(
        id="guide",
        source="guide.md",
        title="Guide",
        page="guide",
        crumbs=("crumb " * 50,) * 32,
        content="",
        chunks=chunks,
        content_hash="0",
    )
    for chunk in chunks:
        embedded = chunking.text_to_embed(document, chunk)
        assert chunking.weight(" ".join(chunk.heading_path)) <= chunking.WORDS
        assert chunking.weight(embedded) <= 2 * chunking.WORDS
        assert chunk.heading_path[-1] in embedded


def test_a_chunk_keeps_a_bounded_number_of_links() -> None:
    links = tuple((f"{n % 10}" * (n // 10 + 1), f"https://a.example/{n}") for n in range(100))
    text = " ".join(label for label, _ in links)
    page = Page(source="g.md", title="G", blocks=(Block(BlockKind.TEXT, text),), links=links)

    chunks = chunking.name_chunks(chunking.passages(page), "g")

    assert max(len(chunk.links) for chunk in chunks) == chunking.MOST_LINKS


def test_the_sentence_that_leads_to_code_stands_beside_it() -> None:
    code = "```\n" + " ".join(f"word{n}" for n in range(60)) + "\n```"

    chunks = cut(f"{prose(9)} Send it like this.\n\n{code}")

    assert chunks[-1].text.endswith(f" Send it like this.\n\n{code}")


@pytest.mark.parametrize(
    ("letter", "most"), [("\u8aad", 150), ("\u3042", 150), ("\u0e01", 375), ("x", 1125)]
)
def test_writing_without_spaces_is_cut_by_its_characters(letter: str, most: int) -> None:
    chunks = cut(letter * 5000)

    assert max(len(chunk.text) for chunk in chunks) <= most + chunking.WORDS
    assert "".join(chunk.text for chunk in chunks) == letter * 5000


def test_japanese_is_cut_between_sentences() -> None:
    sentence = "\u6599\u91d1\u8868\u3092\u8aad\u307f\u8fbc\u3080\u3002"

    chunks = cut(sentence * 60)

    assert all(chunk.text.replace(" ", "").count(sentence) > 5 for chunk in chunks)
    assert all(chunk.text.endswith("\u3002") for chunk in chunks)


def test_pages_of_a_print_are_places_of_their_own() -> None:
    blocks = (
        Block(BlockKind.TEXT, "One.", 0, "page=1"),
        Block(BlockKind.TEXT, "Two.", 0, "page=2"),
    )

    chunks = chunking.name_chunks(chunking.passages(Page("a.pdf", "A", blocks)), "a")

    assert [(chunk.text, chunk.anchor) for chunk in chunks] == [
        ("One.", "page=1"),
        ("Two.", "page=2"),
    ]


@pytest.mark.parametrize(
    ("crumbs", "text", "heading_path", "embedded"),
    [
        (("Guide", "Plans"), "Text.", ("Plans", "Peak"), "Guide > Plans > Peak\nText."),
        ((), "Peak", ("Peak",), "Plans\nPeak"),
    ],
)
def test_embedded_text_states_its_location_once(
    crumbs: tuple[str, ...], text: str, heading_path: tuple[str, ...], embedded: str
) -> None:
    chunk = Chunk(chunk_id="g#0", ordinal=0, text=text, heading_path=heading_path)
    document = Document(
        id="g", source="g.md", title="Plans", page="g", crumbs=crumbs, content=text,
        chunks=(chunk,), content_hash="0",
    )  # fmt: skip

    assert chunking.text_to_embed(document, chunk) == embedded


@given(st.text(alphabet="ab. \n#`|-*>\u3002\u8aad", max_size=400))
def test_no_word_is_lost_whatever_the_text(text: str) -> None:
    page = Page("g.md", "Guide", (Block(BlockKind.TEXT, text),))

    result = "".join(chunk.text for chunk in chunking.name_chunks(chunking.passages(page), "g"))

    assert "".join(result.split()) == "".join(keep_literal(text).split())


def test_a_paragraph_of_an_item_s_form_is_told_from_the_item() -> None:
    kinds = (BlockKind.TEXT, BlockKind.ITEM)
    page = Page("g.md", "Guide", tuple(Block(kind, "- 5 K") for kind in kinds))

    (chunk,) = chunking.name_chunks(chunking.passages(page), "g")

    assert chunk.text == "\\- 5 K\n- 5 K"


def test_a_paragraph_of_markup_has_no_items_but_typed_text_may_have_some() -> None:
    typed = Block(BlockKind.TEXT, "- Mon\n- Tue")
    page = Page("g.md", "Guide", (*markdown.blocks_of("\\- Mon\n\n- Tue"), typed))

    (chunk,) = chunking.name_chunks(chunking.passages(page), "g")

    assert chunk.text == "\\- Mon\n- Tue\n\n- Mon\n- Tue"
