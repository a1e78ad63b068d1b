from benchmarks.quality.readers import Counts, compare

EXPECTED = "# Fees\n\nA late fee is due.\n\n| Item | Fee |\n|---|---|\n| Badge | 35 |\n"


def test_a_text_that_is_read_as_expected_has_all_words_headings_and_rows() -> None:
    assert compare(EXPECTED, EXPECTED) == Counts((10, 10), (10, 10), (1, 1), (2, 2))


def test_rows_that_became_one_are_not_intact_and_lines_in_order_are() -> None:
    joined = "| Item Badge | Fee 35 |\n"
    lines = "Item Fee\nBadge 35\n"

    assert compare(EXPECTED, f"| a | b |\n|---|---|\n{joined}").rows == (0, 2)
    assert compare(EXPECTED, lines, is_whole=False) == Counts(rows=(2, 2))
