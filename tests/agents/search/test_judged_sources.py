import pytest

from agents.search.judged_sources import CANDIDATES, LEADING, select_sources
from citations.faults import CheckedAnswer
from envelope.sources import SourceReference, SourceUsed

PAGES = 40
OTHERS = tuple(
    f"Line {number} reports its state every {number} minutes." for number in range(PAGES)
)


def select(
    response: str, texts: tuple[str, ...], cited: tuple[int, ...], language: str = "en"
) -> list[str]:
    """Return the texts that the judge reads; `cited` are positions of `texts`, in their order."""
    context = "\n\n".join(texts)
    ids = [f"page{position // 4}#{position % 4}" for position in range(len(texts))]
    answer = CheckedAnswer(
        text=response,
        context=context,
        references=tuple(
            SourceReference(
                number=position + 1,
                chunk_id=ids[position],
                title="Lines",
                language="en",
                span=(context.index(text), context.index(text) + len(text)),
            )
            for position, text in enumerate(texts)
        ),
        used=tuple(
            SourceUsed(number=number, chunk_id=ids[position], title="Lines", language="en")
            for number, position in enumerate(cited, start=1)
        ),
        language=language,
    )
    return [source.text for source in select_sources(answer)]


@pytest.mark.parametrize(
    ("claim", "right"),
    [
        ("An insured line costs 75 EUR.", "Insurance of a line costs 75 EUR a year."),
        ("Set `retry_after` to wait.", "The field `retry_after` is the time to wait."),
        ("Eine versicherte Leitung kostet 75 EUR.", "Insurance of a line costs 75 EUR a year."),
    ],
    ids=["words", "identifier", "a number, in another language"],
)
def test_the_judge_reads_the_source_that_a_wrong_citation_should_have_named(
    claim: str, right: str
) -> None:
    texts = (*OTHERS, right)

    read = select(f"{claim} [1]", texts, cited=(7,), language="de" if "Leitung" in claim else "en")

    assert right in read
    assert texts[7] in read


def test_the_judge_reads_the_source_of_a_claim_that_cites_nothing() -> None:
    right = "A refund is paid within a fortnight."

    assert right in select("A refund takes a fortnight.", (*OTHERS, right), cited=(7,))


def test_the_judge_reads_the_source_of_a_short_sentence_without_a_mark_in_a_long_paragraph() -> (
    None
):
    right = "A voucher lapses after a year."
    paragraph = " ".join(("Vouchers end.", *(OTHERS[at] for at in (21, 27, 33, 39)), "[1]"))

    assert right in select(paragraph, (*OTHERS, right), cited=(21,))


def test_the_judge_reads_the_version_that_says_something_else() -> None:
    now, before = "Fee: a refund costs 3 EUR.", "Fee: a refund costs 5 EUR."

    assert before in select("A refund costs 3 EUR. [1]", (now, *OTHERS, before), cited=(0,))


def test_the_judge_reads_what_stands_next_to_a_cited_source_and_what_the_search_found_first() -> (
    None
):
    read = select("Yes. [1]", OTHERS, cited=(21,))

    assert set(read) == {*OTHERS[:LEADING], *OTHERS[20:23]}


def test_the_judge_does_not_read_what_has_nothing_to_do_with_the_answer() -> None:
    answer = "Line 21 reports its state every 21 minutes. [1]"

    read = select(answer, OTHERS, cited=(21,))

    assert len(read) <= LEADING + 3 + CANDIDATES
