"""The text of a section's given chunks: what is left out is marked, what is given is unchanged."""

import pytest

from knowledge.search.section_text import SectionText, write_section

PROSE = ("One two three.", "Four five six seven.", "Eight nine.")
HEADER = "| Country | Price |\n|---|---|"
TABLE = (
    f"Prices:\n\n{HEADER}\n| France | 4 |\n| Germany | 5 |",
    f"{HEADER}\n| Italy | 6 |\n| Spain | 7 |",
    f"{HEADER}\n| Poland | 8 |",
)


def write(texts: tuple[str, ...], *given: int, goes_on: bool = False) -> SectionText:
    return write_section(texts, set(given), goes_on=goes_on)


def test_a_whole_section_has_no_mark() -> None:
    written = write(PROSE, 0, 1, 2)

    assert written.text == "\n\n".join(PROSE)
    assert not written.is_cut


def test_what_is_left_out_is_marked_where_it_stood_with_its_number_of_words() -> None:
    assert write(PROSE, 0, 2).text == "One two three.\n\n[... 4 words left out]\n\nEight nine."
    assert write(PROSE, 1).text == (
        "[... 3 words left out]\n\nFour five six seven.\n\n[... 2 words left out]"
    )
    assert write(PROSE, 1).is_cut


def test_words_that_a_given_chunk_repeats_are_not_counted_as_left_out() -> None:
    overlapping = ("One two three. Four five.", "Four five. Six seven.", "Six seven. Eight.")

    assert write(overlapping, 0).text.endswith("[... 3 words left out]")
    assert "[... 2 words" not in write(overlapping, 0, 2).text


def test_a_section_that_nobody_read_to_its_end_says_so() -> None:
    assert write(PROSE, 0, goes_on=True).text.endswith("[... more than 6 words left out]")
    assert write(PROSE, 0, 1, 2, goes_on=True).text.endswith("[... more left out]")


@pytest.mark.parametrize(
    ("given", "rows"), [((0,), "2 of 5 rows"), ((1,), "2 of 5 rows"), ((0, 1), "4 of 5 rows")]
)
def test_a_part_of_a_table_says_how_many_of_its_rows_it_has(
    given: tuple[int, ...], rows: str
) -> None:
    written = write(TABLE, *given).text

    assert f"; {rows}]" in written
    assert written.count(HEADER) == 1


def test_spans_show_where_each_given_chunk_stands() -> None:
    written = write(PROSE, 0, 2)

    assert {at: written.text[slice(*span)] for at, span in written.spans.items()} == {
        0: PROSE[0],
        2: PROSE[2],
    }


def test_an_address_stands_only_in_the_chunk_that_has_the_link() -> None:
    texts = ("The guide is short.", "Read the guide first.")

    written = write_section(texts, {0, 1}, {1: [("guide", "https://a.example")]}, goes_on=False)

    assert written.text == "The guide is short.\n\nRead the guide (https://a.example) first."


def test_the_address_of_a_link_follows_its_label_outside_of_code() -> None:
    texts = ("```bash\nsee Qdrant docs\n```\n\nRead the Qdrant docs first.", "Then reload.")
    links = {0: [("Qdrant docs", "https://qdrant.example/docs"), ("missing", "https://no.example")]}

    written = write_section(texts, {0, 1}, links, goes_on=False)

    assert written.text == (
        "```bash\nsee Qdrant docs\n```\n\n"
        "Read the Qdrant docs (https://qdrant.example/docs) first.\n\nThen reload."
    )
    assert written.text[slice(*written.spans[1])] == "Then reload."
