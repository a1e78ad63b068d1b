"""The text of a section's given chunks: what is left out is marked, what is given is unchanged."""

import re

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


def test_an_omission_is_marked_at_its_position_with_its_number_of_words() -> None:
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
    ("given", "rows"),
    [((0,), ["3 rows"]), ((1,), ["2 rows", "1 row"]), ((0, 1), ["1 row"]), ((0, 2), ["2 rows"])],
)
def test_a_cut_in_a_table_says_how_many_rows_it_leaves_out(
    given: tuple[int, ...], rows: list[str]
) -> None:
    written = write(TABLE, *given).text

    assert re.findall(r"left out, with (.*) of the table]", written) == rows


def test_a_chunk_whose_words_its_neighbours_have_leaves_no_gap_and_no_repetition() -> None:
    costs = ("Costs:\n- staff;", "- staff;\n- paper.", "- staff;\n- paper.\n\nAll are counted.")

    written = write(costs, 0, 2)

    assert written.text == "Costs:\n- staff;\n- paper.\n\nAll are counted."
    assert not written.is_cut


def test_a_section_that_nobody_read_from_its_beginning_says_so() -> None:
    whole = write_section(PROSE, {0, 1, 2}, begins_before=True, goes_on=False)
    end = write_section(PROSE, {2}, begins_before=True, goes_on=False)

    assert whole.text.startswith("[... more left out]\n\nOne two three.")
    assert whole.is_cut
    assert end.text.startswith("[... more than 7 words left out]")


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
