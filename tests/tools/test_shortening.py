from hypothesis import given
from hypothesis import strategies as st

from tools.executor import LONGEST_TEXT, shorten


def test_a_short_text_stays_as_it_is() -> None:
    assert shorten("x" * LONGEST_TEXT) == "x" * LONGEST_TEXT


def test_of_a_long_text_the_first_60_and_the_last_35_percent_stay() -> None:
    text = "a" * 5_000 + "z" * 5_000

    shown = shorten(text)

    assert shown.startswith("a" * 900 + "\n... [8575 characters left out] ...\n")
    assert shown.endswith("\n" + "z" * 525)


@given(st.integers(0, 12), st.integers(400, 2_000))
def test_no_citation_is_cut_in_two(offset: int, longest: int) -> None:
    cited = "x" * offset + "[page#12] " * 300

    shown = shorten(cited, longest)

    assert len(shown) <= longest + 50
    for part in ("page#1", "page#", "page", "12]", "[p"):
        assert shown.count(part) == shown.count("[page#12]")
