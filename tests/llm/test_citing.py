import pytest
from hypothesis import given
from hypothesis import strategies as st

from citations.citing import keep_cited
from citations.claims import UnitKind, citations, only_known, sentences, split_units

PARTS = [
    "[1]",
    "[2]",
    "[9]",
    "[",
    "]",
    "1",
    "9",
    "【9】",
    " ",
    ".",
    "\n",
    "`",
    "```\n",
    "- ",
    "a",
    "(x)",
    "|",
    ":",
]


@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
def test_no_unknown_citation_survives_in_any_text(text: str) -> None:
    left = keep_cited(text, {1, 2})

    assert set(left.order) <= {1, 2}
    for unit in split_units(left.text):
        if unit.kind is not UnitKind.CODE:
            assert set(citations(unit.text)) <= set(range(1, len(left.order) + 1))


def test_a_claim_without_a_known_source_is_dropped_and_named() -> None:
    left = keep_cited("Rules have names. [2] The moon is cheese. [7] Pigs fly.", {2})

    assert left.text == "Rules have names. [1]"
    assert left.order == (2,)
    assert left.dropped == ("The moon is cheese.", "Pigs fly.")


def test_sources_are_numbered_as_the_reader_meets_them() -> None:
    left = keep_cited("B is so. [5] A is so. [2][5]", {2, 5})

    assert left.text == "B is so. [1] A is so. [2][1]"
    assert left.order == (5, 2)


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        ("x [1]", (1,)),
        ("x [1, 2]", (1, 2)),
        ("x [1-3]", (1, 2, 3)),
        ("x【2】", (2,)),
        ("x [1](https://evil.example/)", (1,)),
        ("x `a[1]`", ()),
        ("x [^4]", (4,)),
        ("x [99999999999999999999]", (0,)),
    ],
)
def test_citations_are_read_in_every_form_models_write_them(
    written: str, numbers: tuple[int, ...]
) -> None:
    assert citations(written) == numbers


def test_what_closes_up_to_a_citation_after_a_removal_is_removed_too() -> None:
    assert citations(only_known("so [[7]7]", {1})) == ()


def test_code_stays_as_it_is_and_goes_with_the_source_after_it() -> None:
    fence = "```python\nprices = rates[9]  # two\n\n\nrun()\n```"

    left = keep_cited(f"Run this:\n\n{fence}\n\n[3]", {3})

    assert fence in left.text
    assert left.text.endswith("[1]")
    assert left.claims == 1


def test_code_without_a_source_is_dropped() -> None:
    left = keep_cited("It works. [1]\n\nUnrelated. [9]\n\n```\nrm -r data\n```", {1})

    assert left.text == "It works. [1]"


def test_a_table_goes_with_the_source_on_the_line_after_it() -> None:
    table = "| Code | Meaning |\n|---|---|\n| 12 | slow |"

    left = keep_cited(f"{table}\n\n[4]", {4})

    assert left.text == f"{table}\n\n[1]"
    assert left.claims == 1


def test_a_line_that_leads_over_to_nothing_goes_too() -> None:
    assert keep_cited("These are the steps:\n\n- Fly. [9]", {1}).text == ""


def test_a_list_keeps_its_form() -> None:
    answer = "Do this:\n\n1. Open it. [2]\n2. Save. It takes a while. [2]"

    assert keep_cited(answer, {2}).text == answer.replace("[2]", "[1]")


def test_sentences_end_where_a_reader_ends_them() -> None:
    text = "Use v2.0, e.g. Europe. [1] 価格は10円です。[2]次です。 Is it? Yes."

    assert list(sentences(text)) == [
        "Use v2.0, e.g. Europe. [1]",
        "価格は10円です。[2]",
        "次です。",
        "Is it?",
        "Yes.",
    ]
